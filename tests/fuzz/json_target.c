/*
 * json_check() against jansson: both accept the same texts, except values that jansson cannot hold
 * and nesting deeper than ENVELOPE_MAX_DEPTH. And edits have their intended effect.
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

/* A canonical text does not change. */
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

/* One walk, the check itself and a look for one thing alone all find the same. */
static void check_finding(struct str text, bool is_good)
{
    static const char *const keys[] = {"k1", "b"};
    struct str values[2], inner_values[2], element, same;
    size_t at = 0, other = 0;
    bool is_object = is_good && json_type(text) == JSON_OBJECT;
    const struct json_wanted inner = {keys, 2, inner_values, 0, NULL},
                             wanted = {keys, 2, values, 1, &inner};
    FUZZ_EXPECT(json_check_members(text, &wanted) == is_object);
    for (size_t i = 0; is_object && i < 2; i++)
        FUZZ_EXPECT(str_equal(values[i], json_member(text, keys[i])) &&
                    str_equal(inner_values[i], json_member(values[1], keys[i])));
    while (is_good && json_type(text) == JSON_ARRAY &&
           json_next_element_members(text, &at, &element, keys, 2, values)) {
        FUZZ_EXPECT(json_next_element(text, &other, &same) && at == other);
        FUZZ_EXPECT(element.bytes == same.bytes && element.length == same.length);
        for (size_t i = 0; i < 2; i++)
            FUZZ_EXPECT(str_equal(values[i], json_member(element, keys[i])));
    }
    FUZZ_EXPECT(!is_good || json_type(text) != JSON_ARRAY ||
                !json_next_element(text, &other, &same));
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
    check_finding(text, ours);
    if (ours)
        check_canonical(text);
    if (ours && theirs)
        check_edits(text, theirs);
    second_free(theirs);
    return 0;
}
