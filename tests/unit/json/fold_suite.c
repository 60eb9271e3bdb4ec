/* Folding of names: exactly the names that a lenient reader confuses fold alike. */
#include <stdlib.h>
#include <string.h>

#include "json_test.h"
#include "taskgate/json/fold.h"
#include "taskgate/json/text.h"

static void expect_fold(const char *text, const char *expected)
{
    struct buffer folded;
    struct str exact = exact_copy(str_from(text));
    buffer_init(&folded);
    fold_append(&folded, exact);
    expect_str(buffer_str(&folded), expected);
    ck_assert_int_eq(fold_is_folded(exact), strcmp(text, expected) == 0);
    buffer_finish(&folded);
    free((char *)exact.bytes);
}

START_TEST(names_fold_by_case_and_look)
{
    static const char *const pairs[][2] = {
        {"", ""},
        {"path", "path"},
        {"PaTh_09-z{}@[`", "path_09-z{}@[`"},
        {"\u00C9t\u00E9", "e\u0301te\u0301"},    /* composed and not */
        {"\u00DF\u1E9E\uFB05", "ssssst"},        /* sharp s, ligature */
        {"\u212A\u017F\u0130\u0131", "ksii"},    /* kelvin, long s, dotted and dotless i */
        {"\uFF30\uFF41th", "path"},              /* full width */
        {"\U0001D429\U0001D41A\u24E3h", "path"}, /* mathematical, circled */
        {"\u03A3\u03C2\u03C3", "\u03C3\u03C3\u03C3"},
        {"\u0416\u0436", "\u0436\u0436"},
        {"\U00010400", "\U00010428"},
        {"pa\u200Bth\uFEFF\u00AD\U000E0041", "path"}, /* not shown */
        {"\u0390", "\u03B9\u0308\u0301"},             /* three times its bytes */
        {"\u4E2D\U0001F600\uAC00", "\u4E2D\U0001F600\uAC00"},
        {"\u0440\u0430th", "\u0440\u0430th"}, /* Cyrillic letters stay unchanged */
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        expect_fold(pairs[i][0], pairs[i][1]);
}
END_TEST

/* The UTF-8 of a character; the length. */
static size_t encode(unsigned character, char out[4])
{
    if (character < 0x80) {
        out[0] = (char)character;
        return 1;
    }
    size_t length = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, character >>= 6)
        out[i] = (char)(0x80 | (character & 0x3F));
    out[0] = (char)((0xF00 >> length & 0xFF) | character);
    return length;
}

START_TEST(every_character_folds_once_and_within_bounds)
{
    struct buffer once, twice;
    size_t changed = 0;
    buffer_init(&once);
    buffer_init(&twice);
    for (unsigned character = 0; character < 0x110000; character++) {
        char text[4];
        size_t length = encode(character, text);
        buffer_clear(&once);
        buffer_clear(&twice);
        fold_append(&once, str_slice(text, length));
        fold_append(&twice, buffer_str(&once));
        bool is_same = str_equal(buffer_str(&once), str_slice(text, length));
        if (!str_equal(buffer_str(&once), buffer_str(&twice)) ||
            once.length > length * FOLD_GROWTH ||
            is_same != fold_is_folded(str_slice(text, length)))
            ck_abort_msg("U+%04X", character);
        changed += !is_same;
    }
    ck_assert_uint_gt(changed, 8000);
    buffer_finish(&once);
    buffer_finish(&twice);
}
END_TEST

START_TEST(bytes_that_are_no_text_stay_within_bounds)
{
    static const char *const texts[] = {"\xFF",      "\xC3",  "\xE2\x84",     "\xF0\x9D\x90",
                                        "a\x80\xBF", "\xC3(", "\xED\xA0\x80", "\xF4\x90\x80\x80"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect_fold(texts[i], texts[i]);
}
END_TEST

static const struct {
    const char *json, *error; /* NULL: there are none */
} documents[] = {
    {"{\"path\":1,\"Path\":2}", "a key that only case or look tells from another at byte 10"},
    {"{\"a\":[[{\"\u017Fet\":1,\"SET\":2}]]}",
     "a key that only case or look tells from another at byte 17"},
    {"{\"o\":{\"p\\u0061th\":1,\"\\uFF50ath\":2}}",
     "a key that only case or look tells from another at byte 20"},
    {"{\"\":1,\"\u200B\":2}", "a key that only case or look tells from another at byte 6"},
    {"{\"path\":1,\"paths\":2,\"o\":{\"Path\":3}}", NULL},
    {"{\"a\":{\"x\":1},\"b\":{\"X\":1}}", NULL},
    {"{\"A\":\"{\\\"a\\\":1,\\\"A\\\":2}\"}", NULL},
    {"[{\"a\":1},{\"A\":2}]", NULL},
    {"{}", NULL},
};

START_TEST(siblings_that_fold_alike_are_found_at_any_depth)
{
    struct error error = {""};
    const char *expected = documents[_i].error;
    struct str json = exact_copy(str_from(documents[_i].json));
    ck_assert(json_check(json, NULL));
    ck_assert_int_eq(fold_finds_variants(json, &error), expected != NULL);
    if (expected)
        ck_assert_str_eq(error.message, expected);
    free((char *)json.bytes);
}
END_TEST

/* An object of `count` keys that need folding, all different, and the last one twice but for its
 * case where `twice` says so. */
static void write_many(struct buffer *json, unsigned count, bool twice)
{
    buffer_append_char(json, '{');
    for (unsigned i = 0; i < count; i++)
        buffer_append_format(json, "\"\u0390K%u\\u0041\":1,", i);
    buffer_append_format(json, "\"%sk%uA\":1}", twice ? "\u0390" : "", count - 1);
}

START_TEST(many_keys_are_compared_by_their_folds)
{
    for (unsigned count = 1; count <= 4096; count *= 8) {
        struct buffer json;
        buffer_init(&json);
        write_many(&json, count, true);
        ck_assert(fold_finds_variants(buffer_str(&json), NULL));
        buffer_clear(&json);
        write_many(&json, count, false);
        ck_assert(!fold_finds_variants(buffer_str(&json), NULL));
        buffer_finish(&json);
    }
}
END_TEST

Suite *fold_suite(void)
{
    Suite *suite = suite_create("fold");
    TCase *tcase = tcase_create("fold");
    tcase_add_test(tcase, names_fold_by_case_and_look);
    tcase_add_test(tcase, every_character_folds_once_and_within_bounds);
    tcase_add_test(tcase, bytes_that_are_no_text_stay_within_bounds);
    tcase_add_loop_test(tcase, siblings_that_fold_alike_are_found_at_any_depth, 0,
                        sizeof documents / sizeof *documents);
    tcase_add_test(tcase, many_keys_are_compared_by_their_folds);
    suite_add_tcase(suite, tcase);
    return suite;
}
