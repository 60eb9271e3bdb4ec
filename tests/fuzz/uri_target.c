/*
 * URIs in their one spelling against its invariants: normalizing it again changes
 * nothing, its scheme is in lower case, its path has no dot segments, and no escape stands
 * for an unreserved character.
 */
#include <ctype.h>
#include <string.h>

#include "fuzz.h"
#include "taskgate/core/memory.h"
#include "taskgate/policy/uri.h"

static void expect_escapes(struct str normal)
{
    for (size_t i = 0; i + 2 < normal.length; i++) {
        char text[3] = {normal.bytes[i + 1], normal.bytes[i + 2], '\0'};
        if (normal.bytes[i] != '%' || !isxdigit((unsigned char)text[0]) ||
            !isxdigit((unsigned char)text[1]))
            continue;
        unsigned char c = (unsigned char)strtoul(text, NULL, 16);
        FUZZ_EXPECT(!(c < 0x80 && (isalnum(c) || (c && strchr("-._~", c)))));
        FUZZ_EXPECT(!islower((unsigned char)text[0]) && !islower((unsigned char)text[1]));
        i += 2;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str uri = str_slice((const char *)data, size), path, rest, segment;
    struct buffer once = {0}, twice = {0};
    uri_normalize(&once, uri);
    struct str normal = buffer_str(&once);
    uri_normalize(&twice, normal);
    FUZZ_EXPECT(str_equal(normal, buffer_str(&twice)));
    expect_escapes(normal);
    /* Of absolute paths alone: elsewhere a dot segment may be part of an authority. */
    if (str_starts_with(normal, STR("/")) && !str_starts_with(normal, STR("//"))) {
        str_cut(normal, '?', &path, &rest);
        str_cut(path, '#', &path, &rest);
        while (path.length) {
            str_cut(path, '/', &segment, &path);
            FUZZ_EXPECT(!str_equal(segment, STR("..")) && !str_equal(segment, STR(".")));
        }
    }
    buffer_finish(&once);
    buffer_finish(&twice);
    return 0;
}
