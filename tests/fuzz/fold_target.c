/*
 * Folding against its invariants (folding again changes nothing, bounded growth, the same in one
 * piece and by characters), and the search for siblings that fold alike against all pairs.
 */
#include "fuzz.h"
#include "taskgate/core/buffer.h"
#include "taskgate/json/fold.h"
#include "taskgate/json/text.h"

#define KEYS_MAX 40

static void expect_fold(struct str text, struct buffer *folded)
{
    struct buffer again = {0}, pieces = {0};
    fold_append(folded, text);
    fold_append(&again, buffer_str(folded));
    FUZZ_EXPECT(str_equal(buffer_str(folded), buffer_str(&again)) || !str_is_utf8(text));
    FUZZ_EXPECT(folded->length <= text.length * FOLD_GROWTH);
    FUZZ_EXPECT(fold_is_folded(text) == str_equal(text, buffer_str(folded)));
    for (struct str rest = text; rest.length;)
        buffer_append(&pieces, fold_next(&rest));
    FUZZ_EXPECT(str_equal(buffer_str(folded), buffer_str(&pieces)));
    buffer_finish(&again);
    buffer_finish(&pieces);
}

/* Each line is a key. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = str_slice((const char *)data, size), key;
    struct buffer json = {0}, folds[KEYS_MAX] = {{0}};
    size_t count = 0;
    bool expected = false, is_text = true;
    buffer_append_char(&json, '{');
    for (; rest.length && count < KEYS_MAX; count++) {
        str_cut(rest, '\n', &key, &rest);
        expect_fold(key, &folds[count]);
        is_text = is_text && str_is_utf8(key);
        for (size_t i = 0; i < count; i++)
            expected = expected || str_equal(buffer_str(&folds[i]), buffer_str(&folds[count]));
        buffer_append_text(&json, count ? "," : "");
        buffer_append_json_string(&json, key);
        buffer_append_text(&json, ":1");
    }
    buffer_append_char(&json, '}');
    if (is_text && json_check(buffer_str(&json), NULL))
        FUZZ_EXPECT(fold_finds_variants(buffer_str(&json), NULL) == expected);
    for (size_t i = 0; i < KEYS_MAX; i++)
        buffer_finish(&folds[i]);
    buffer_finish(&json);
    return 0;
}
