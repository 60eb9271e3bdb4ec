/*
 * json_check() against jansson: both accept the same texts, but for what jansson cannot hold and
 * what is nested deeper than ENVELOPE_MAX_DEPTH; and edits mean what they say.
 */
#include <string.h>

#include "fuzz.h"
#include "second_reader.h"
#include "taskgate/core/buffer.h"
#include "taskgate/json/canonical.h"
#include "taskgate/json/text.h"

static void check_edits(struct str text, struct second_value *value)
{
    struct buffer out;
    buffer_init(&out);
    FUZZ_EXPECT(json_count(text) == second_count(value));
    canonical_write(text, &out);
    FUZZ_EXPECT(second_equals(value, buffer_str(&out)));
    if (second_is_object(value)) {
        buffer_clear(&out);
        json_write_with_member(&out, text, "k1", STR("[7]"));
        second_set(value, "k1", STR("[7]"));
        FUZZ_EXPECT(second_equals(value, buffer_str(&out)));
        buffer_clear(&out);
        json_write_without_member(&out, text, "k1");
        second_delete(value, "k1");
        FUZZ_EXPECT(second_equals(value, buffer_str(&out)));
    }
    buffer_finish(&out);
}

/* What is canonical stays as it is. */
static void check_canonical(struct str text)
{
    struct buffer once, twice;
    buffer_init(&once);
    buffer_init(&twice);
    canonical_write(text, &once);
    FUZZ_EXPECT(json_check(buffer_str(&once), NULL));
    canonical_write(buffer_str(&once), &twice);
    FUZZ_EXPECT(str_equal(buffer_str(&once), buffer_str(&twice)));
    buffer_finish(&once);
    buffer_finish(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = str_slice((const char *)data, size);
    struct error error = {""};
    struct second_refusal refusal = {"", false};
    bool ours = json_check(text, &error);
    struct second_value *theirs = second_read(text, &refusal);
    if (ours && !theirs)
        FUZZ_EXPECT(refusal.intended);
    if (!ours && theirs)
        FUZZ_EXPECT(strstr(error.message, "nested too deep") || second_overlooks(text));
    if (ours)
        check_canonical(text);
    if (ours && theirs)
        check_edits(text, theirs);
    second_free(theirs);
    return 0;
}
