/* Strings, buffers, maps, clock, digest, ids. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suites.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/error.h"
#include "taskgate/core/map.h"
#include "taskgate/core/markdown.h"
#include "taskgate/core/random.h"
#include "taskgate/core/str.h"
#include "taskgate/core/visible.h"

static void expect_str(struct str actual, const char *expected)
{
    ck_assert_msg(str_equal(actual, str_from(expected)), "got \"%.*s\", want \"%s\"",
                  STR_ARGS(actual), expected);
}

START_TEST(utf8_is_checked_strictly)
{
    ck_assert(str_is_utf8(STR("plain")));
    ck_assert(str_is_utf8(STR("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80")));
    ck_assert(!str_is_utf8(STR("\xC0\xAF")));         /* overlong */
    ck_assert(!str_is_utf8(STR("\xED\xA0\x80")));     /* surrogate */
    ck_assert(!str_is_utf8(STR("\xF4\x90\x80\x80"))); /* beyond U+10FFFF */
    ck_assert(!str_is_utf8(STR("\xE2\x82")));         /* cut */
}
END_TEST

START_TEST(numbers_are_digits_only)
{
    uint64_t value = 7;
    ck_assert(str_to_u64(STR("18446744073709551615"), &value));
    ck_assert_uint_eq(value, UINT64_MAX);
    ck_assert(!str_to_u64(STR("18446744073709551616"), &value));
    ck_assert(!str_to_u64(STR("-1"), &value));
    ck_assert(!str_to_u64(STR(" 1"), &value));
    ck_assert(!str_to_u64(STR_EMPTY, &value));
    char digits[STR_U64_BYTES];
    ck_assert(str_equal(str_from_u64(0, digits), STR("0")));
    ck_assert(str_equal(str_from_u64(1090, digits), STR("1090")));
    ck_assert(str_equal(str_from_u64(UINT64_MAX, digits), STR("18446744073709551615")));
    ck_assert(!str_to_u64(STR("99999999999999999999"), &value));
    ck_assert(!str_to_u64(STR("184467440737095516150"), &value));
    ck_assert(!str_to_u64(STR("1/"), &value) && !str_to_u64(STR("1:"), &value));
    for (uint64_t power = 1; power <= UINT64_MAX / 10; power *= 10) {
        for (uint64_t number = power - 1; number <= power + 11; number++) {
            char text[32];
            snprintf(text, sizeof text, "%llu", (unsigned long long)number);
            ck_assert(str_equal(str_from_u64(number, digits), str_from(text)));
            ck_assert(str_to_u64(str_from(text), &value));
            ck_assert_uint_eq(value, number);
        }
    }
}
END_TEST

START_TEST(joined_texts_are_cut_to_their_room)
{
    char out[6];
    str_join(out, sizeof out, STR("ab"), STR("cde"));
    ck_assert_str_eq(out, "abcde");
    str_join(out, sizeof out, STR("ab"), STR("cdef"));
    ck_assert_str_eq(out, "abcde");
    str_join(out, sizeof out, STR("abcdef"), STR("g"));
    ck_assert_str_eq(out, "abcde");
    str_join(out, sizeof out, STR_EMPTY, STR_EMPTY);
    ck_assert_str_eq(out, "");
}
END_TEST

START_TEST(cut_splits_at_the_first_separator)
{
    struct str before, rest;
    ck_assert(str_cut(STR("a=b=c"), '=', &before, &rest));
    expect_str(before, "a");
    expect_str(rest, "b=c");
    ck_assert(!str_cut(STR("abc"), '=', &before, &rest));
    expect_str(before, "abc");
    ck_assert_uint_eq(rest.length, 0);
}
END_TEST

START_TEST(json_strings_hide_nothing_and_mislead_nobody)
{
    struct buffer buffer;
    buffer_init(&buffer);
    buffer_append_json_string(&buffer, STR("a\"\\\n\x01\x7F\xC2\x9B\xE2\x80\xAE\xFF\xC3\xA9"));
    expect_str(buffer_str(&buffer), "\"a\\\"\\\\\\n\\u0001\\u007f\\u009b\\u202e\\ufffd\xC3\xA9\"");
    buffer_finish(&buffer);
}
END_TEST

static void expect_shown(void (*append)(struct buffer *, struct str), struct str text,
                         const char *expected)
{
    struct buffer buffer;
    buffer_init(&buffer);
    append(&buffer, text);
    expect_str(buffer_str(&buffer), expected);
    buffer_finish(&buffer);
}

START_TEST(each_hidden_character_is_spelt_out)
{
    static const struct {
        const char *text, *shown;
    } rows[] = {
        {"a\u200Bb", "a\\u200bb"},                                /* zero width space */
        {"a\u2060\uFEFF", "a\\u2060\\ufeff"},                     /* word joiner, byte order mark */
        {"\U000E0041\U000E007F", "\\udb40\\udc41\\udb40\\udc7f"}, /* tags */
        {"\uFE0F\U000E0100", "\\ufe0f\\udb40\\udd00"},            /* variation selectors */
        {"\u3164\uFFA0\u115F", "\\u3164\\uffa0\\u115f"},          /* fillers */
        {"\u00A0\u2003\u2800", "\\u00a0\\u2003\\u2800"},          /* blanks */
        {"\u202E\u2066\u061C", "\\u202e\\u2066\\u061c"},          /* bidirectional controls */
        {"\x1B[31m\xC2\x9B\x7F", "\\u001b[31m\\u009b\\u007f"},
        {"\U0010FFFF\uE000", "\\udbff\\udfff\\ue000"},
        {"\xFF\xC3", "\\ufffd\\ufffd"},
        {"caf\u00E9 \u65E5\u672C \U0001F600", "caf\u00E9 \u65E5\u672C \U0001F600"},
        {"say \"\\u200b\"", "say \"\\u200b\""},
        {"a\r\n\tb", "a\\r\\n\\tb"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_shown(visible_append, str_from(rows[i].text), rows[i].shown);
    expect_shown(visible_append_lines, STR("a\n\t\x1B\u202E\r\u05D0"),
                 "a\n\t\\u001b\\u202e\\r\u05D0");
    expect_shown(visible_append_json_string, STR("\"\\\n\u200B\u05D0                    x"),
                 "\"\\\"\\\\\\n\\u200b\u05D0                    x\"");
}
END_TEST

START_TEST(letters_from_right_to_left_are_isolated)
{
    expect_shown(visible_append, STR("rm \u05D0\u05D1 12"), "rm \u2068\u05D0\u05D1\u2069 12");
    expect_shown(visible_append, STR("\u05D0 \u0627 x"), "\u2068\u05D0 \u0627\u2069 x");
    expect_shown(visible_append, STR("\u05D0"), "\u2068\u05D0\u2069");
    expect_shown(visible_append, STR("\u05D0 "), "\u2068\u05D0\u2069 ");
    expect_shown(visible_append, STR("\u05D0\u202E\u05D1"),
                 "\u2068\u05D0\u2069\\u202e\u2068\u05D1\u2069");
}
END_TEST

START_TEST(a_long_run_of_white_space_is_one_mark)
{
    expect_shown(visible_append, STR("a\n\n\nb"), "a\\n\\n\\nb");
    expect_shown(visible_append, STR("a\n\r\n \nx\n \n\nb"), "a\\n\\r\\n \\nx\\n \\n\\nb");
    expect_shown(visible_append, STR("a\n\r\n \n\u2028b"), "a[4 line breaks]b");
    expect_shown(visible_append, STR("a               b"), "a               b");
    expect_shown(visible_append, STR("a        \u00A0       b"), "a[16 blanks]b");
    struct buffer many;
    buffer_init(&many);
    for (int i = 0; i < 3000; i++)
        buffer_append_char(&many, ' ');
    expect_shown(visible_append, buffer_str(&many), "[3,000 blanks]");
    buffer_finish(&many);
}
END_TEST

START_TEST(a_quoted_text_is_cut_inside_its_quotes)
{
    struct buffer buffer;
    buffer_init(&buffer);
    visible_append_quoted(&buffer, STR("a\"\u200B\u00E9\u00E9"), 4);
    expect_str(buffer_str(&buffer), "\"a\\\"\\u200b\u00E9…\"");
    buffer_clear(&buffer);
    visible_append_quoted(&buffer, STR("a\xFF"), 2);
    visible_append_quoted(&buffer, STR_EMPTY, 0);
    expect_str(buffer_str(&buffer), "\"a\\ufffd\"\"\"");
    buffer_finish(&buffer);
}
END_TEST

START_TEST(blanks_are_no_content)
{
    ck_assert(!visible_has_content(STR_EMPTY));
    ck_assert(!visible_has_content(STR(" \t\n\u00A0\u200B\u3164\u2800\uFEFF\U000E0041\xFF")));
    ck_assert(visible_has_content(STR("\u200B.")));
}
END_TEST

/* Eight bytes are looked at together: each byte at each place among them is as it is alone. */
START_TEST(a_byte_of_a_json_string_is_the_same_at_each_place)
{
    char text[17];
    struct buffer alone, whole, expected;
    buffer_init(&alone), buffer_init(&whole), buffer_init(&expected);
    for (int byte = 0; byte <= UINT8_MAX; byte++) {
        for (size_t place = 0; place < sizeof text; place++) {
            memset(text, 'a', sizeof text);
            text[place] = (char)byte;
            buffer_clear(&alone), buffer_clear(&whole), buffer_clear(&expected);
            buffer_append_json_string(&alone, str_slice(text + place, 1));
            buffer_append_json_string(&whole, str_slice(text, sizeof text));
            buffer_append_format(&expected, "\"%.*s%.*s%.*s\"", (int)place, "aaaaaaaaaaaaaaaa",
                                 (int)alone.length - 2, alone.bytes + 1,
                                 (int)(sizeof text - 1 - place), "aaaaaaaaaaaaaaaa");
            ck_assert(str_equal(buffer_str(&whole), buffer_str(&expected)));
        }
    }
    buffer_finish(&alone), buffer_finish(&whole), buffer_finish(&expected);
}
END_TEST

START_TEST(buffer_grows_drops_and_gives_away)
{
    struct buffer buffer;
    buffer_init(&buffer);
    for (int i = 0; i < 1000; i++)
        buffer_append_format(&buffer, "%03d", i);
    ck_assert_uint_eq(buffer.length, 3000);
    buffer_drop(&buffer, 2997);
    expect_str(buffer_str(&buffer), "999");
    size_t length;
    char *bytes = buffer_take(&buffer, &length);
    ck_assert_str_eq(bytes, "999");
    ck_assert_uint_eq(length, 3);
    ck_assert_ptr_null(buffer.bytes);
    free(bytes);
}
END_TEST

START_TEST(a_part_is_replaced_where_it_lies)
{
    const struct str whole = STR("{\"a\":1,\"b\":2}");
    struct buffer buffer = {0};
    buffer_append_replaced(&buffer, whole, str_slice(whole.bytes + 5, 1), STR("[3]"));
    buffer_append_char(&buffer, ' ');
    buffer_append_replaced(&buffer, whole, whole, STR("all"));
    buffer_append_char(&buffer, ' ');
    buffer_append_replaced(&buffer, whole, str_slice(whole.bytes + whole.length, 0), STR(";"));
    expect_str(buffer_str(&buffer), "{\"a\":[3],\"b\":2} all {\"a\":1,\"b\":2};");
    buffer_finish(&buffer);
}
END_TEST

START_TEST(a_part_of_other_bytes_stops_the_process)
{
    const struct str whole = STR("{\"a\":1}");
    char copy[] = "{\"a\":1}";
    struct buffer buffer = {0};
    buffer_append_replaced(&buffer, whole, str_slice(copy + 5, 1), STR("2"));
}
END_TEST

START_TEST(a_part_that_ends_behind_the_whole_stops_the_process)
{
    const struct str whole = STR("{\"a\":1}");
    str_offset(str_slice(whole.bytes, 4), str_slice(whole.bytes + 3, 2));
}
END_TEST

START_TEST(a_size_that_overflows_stops_the_process)
{
    struct buffer buffer = {0};
    buffer_append(&buffer, STR("many bytes"));
    buffer_reserve(&buffer, SIZE_MAX - 5);
}
END_TEST

START_TEST(an_item_of_a_list_ends_within_120_columns)
{
    struct buffer out, text;
    buffer_init(&out);
    buffer_init(&text);
    /* 118 columns, and then "é" twice: four bytes, two columns. */
    for (int i = 0; i < 58; i++)
        buffer_append_text(&text, "a ");
    buffer_append_text(&text, "éé next");
    markdown_append_item(&out, buffer_str(&text));
    const char *end = memchr(out.bytes, '\n', out.length);
    ck_assert_uint_eq((size_t)(end - out.bytes), 122);
    ck_assert(str_equal(str_slice(end, out.length - 122), STR("\n  next\n")));
    buffer_finish(&out);
    buffer_finish(&text);
}
END_TEST

START_TEST(map_survives_growth_and_removal)
{
    struct map *map = map_create();
    static int values[2000];
    char key[16];
    for (int i = 0; i < 2000; i++) {
        snprintf(key, sizeof key, "key-%d", i);
        ck_assert_ptr_null(map_put(map, str_from(key), &values[i]));
    }
    for (int i = 0; i < 2000; i += 2) {
        snprintf(key, sizeof key, "key-%d", i);
        ck_assert_ptr_eq(map_remove(map, str_from(key)), &values[i]);
    }
    ck_assert_uint_eq(map_count(map), 1000);
    for (int i = 0; i < 2000; i++) {
        snprintf(key, sizeof key, "key-%d", i);
        ck_assert_ptr_eq(map_get(map, str_from(key)), i % 2 ? &values[i] : NULL);
    }
    size_t position = 0, seen = 0;
    while (map_next(map, &position, NULL, NULL))
        seen++;
    ck_assert_uint_eq(seen, 1000);
    map_destroy(map, NULL);
}
END_TEST

START_TEST(hashes_depend_on_every_byte_and_the_length)
{
    char bytes[300] = {0}; /* whole blocks, and what is behind them */
    for (size_t length = 0; length < sizeof bytes; length++) {
        uint64_t hash = str_hash(str_slice(bytes, length));
        ck_assert_uint_eq(str_hash(str_slice(bytes, length)), hash);
        ck_assert_uint_ne(str_hash(str_slice(bytes, length + 1)), hash);
        for (size_t i = 0; i < length; i++) {
            bytes[i] = 1;
            ck_assert_uint_ne(str_hash(str_slice(bytes, length)), hash);
            bytes[i] = 0;
        }
    }
}
END_TEST

START_TEST(clock_writes_rfc_3339)
{
    char text[CLOCK_TEXT_BYTES];
    ck_assert_str_eq(clock_format(1768257000123, text), "2026-01-12T22:30:00.123Z");
    ck_assert_str_eq(clock_format(-1, text), "1969-12-31T23:59:59.999Z");
    ck_assert_str_eq(clock_format(951825600007, text), "2000-02-29T12:00:00.007Z");
    ck_assert_str_eq(clock_format(253402300799999, text), "9999-12-31T23:59:59.999Z");
    ck_assert_str_eq(clock_format(INT64_MAX, text), "9999-12-31T23:59:59.999Z");
    ck_assert_str_eq(clock_format(-62167219200000, text), "0000-01-01T00:00:00.000Z");
    ck_assert_str_eq(clock_format(INT64_MIN, text), "0000-01-01T00:00:00.000Z");
}
END_TEST

START_TEST(digest_as_base64url_is_that_of_pkce)
{
    char text[DIGEST_BASE64URL_BYTES];
    /* RFC 7636, appendix B */
    digest_sha256_base64url(STR("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"), text);
    ck_assert_str_eq(text, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
}
END_TEST

START_TEST(digest_is_sha256)
{
    char hex[DIGEST_HEX_BYTES];
    digest_sha256_hex(STR("abc"), hex);
    ck_assert_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
END_TEST

START_TEST(uuid_is_version_4)
{
    char a[RANDOM_UUID_BYTES], b[RANDOM_UUID_BYTES];
    random_uuid(a);
    random_uuid(b);
    ck_assert_uint_eq(strlen(a), 36);
    ck_assert_int_eq(a[14], '4');
    ck_assert_ptr_nonnull(strchr("89ab", a[19]));
    ck_assert_str_ne(a, b);
}
END_TEST

/* 122 of 128 bits: the others say version and variant. */
START_TEST(each_free_bit_of_a_uuid_is_random)
{
    static const char digits[] = "0123456789abcdef";
    char id[RANDOM_UUID_BYTES];
    unsigned ones[RANDOM_UUID_BYTES] = {0}, zeros[RANDOM_UUID_BYTES] = {0};
    int changing = 0;
    for (int i = 0; i < 100; i++) {
        random_uuid(id);
        for (size_t at = 0; id[at]; at++) {
            unsigned digit = id[at] == '-' ? 0 : (unsigned)(strchr(digits, id[at]) - digits);
            ones[at] |= digit;
            zeros[at] |= ~digit & 15;
        }
    }
    for (size_t at = 0; id[at]; at++)
        changing += __builtin_popcount(ones[at] & zeros[at]);
    ck_assert_int_eq(changing, 122);
}
END_TEST

static const char crockford[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

START_TEST(ulids_sort_in_the_order_they_were_made)
{
    char before[RANDOM_ULID_BYTES] = "", id[RANDOM_ULID_BYTES];
    int64_t from_ms = clock_now_ms();
    for (int i = 0; i < 20000; i++) {
        random_ulid(id);
        ck_assert_uint_eq(strlen(id), 26);
        ck_assert_uint_eq(strspn(id, crockford), 26);
        ck_assert_int_lt(strcmp(before, id), 0);
        memcpy(before, id, sizeof id);
    }
    int64_t ms = 0;
    for (int i = 0; i < 10; i++)
        ms = ms * 32 + (strchr(crockford, id[i]) - crockford);
    ck_assert_int_ge(ms, from_ms);
    ck_assert_int_le(ms, clock_now_ms());
}
END_TEST

START_TEST(errors_take_a_prefix_and_a_hint_and_are_cut)
{
    struct error error;
    ck_assert(!error_set(&error, "%s", "what"));
    error_prefix(&error, "where");
    ck_assert_str_eq(error.message, "where: what");
    ck_assert(!error_suffix(&error, "do that"));
    ck_assert_str_eq(error.message, "where: what; do that");
    char longer[2 * ERROR_MESSAGE_BYTES];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    error_set(&error, "%s", longer);
    error_prefix(&error, "where");
    ck_assert_uint_eq(strlen(error.message), ERROR_MESSAGE_BYTES - 1);
    ck_assert(!error_suffix(&error, "do that"));
    ck_assert_uint_eq(strlen(error.message), ERROR_MESSAGE_BYTES - 1);
    ck_assert(!error_suffix(NULL, "do that"));
    ck_assert(!error_set(NULL, "nobody listens"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core");
    TCase *tests = tcase_create("core");
    tcase_add_test(tests, utf8_is_checked_strictly);
    tcase_add_test(tests, numbers_are_digits_only);
    tcase_add_test(tests, cut_splits_at_the_first_separator);
    tcase_add_test(tests, joined_texts_are_cut_to_their_room);
    tcase_add_test(tests, json_strings_hide_nothing_and_mislead_nobody);
    tcase_add_test(tests, a_byte_of_a_json_string_is_the_same_at_each_place);
    tcase_add_test(tests, each_hidden_character_is_spelt_out);
    tcase_add_test(tests, letters_from_right_to_left_are_isolated);
    tcase_add_test(tests, a_long_run_of_white_space_is_one_mark);
    tcase_add_test(tests, a_quoted_text_is_cut_inside_its_quotes);
    tcase_add_test(tests, blanks_are_no_content);
    tcase_add_test(tests, buffer_grows_drops_and_gives_away);
    tcase_add_test(tests, a_part_is_replaced_where_it_lies);
    tcase_add_test_raise_signal(tests, a_part_of_other_bytes_stops_the_process, SIGABRT);
    tcase_add_test_raise_signal(tests, a_part_that_ends_behind_the_whole_stops_the_process,
                                SIGABRT);
    tcase_add_test_raise_signal(tests, a_size_that_overflows_stops_the_process, SIGABRT);
    tcase_add_test(tests, an_item_of_a_list_ends_within_120_columns);
    tcase_add_test(tests, map_survives_growth_and_removal);
    tcase_add_test(tests, hashes_depend_on_every_byte_and_the_length);
    tcase_add_test(tests, clock_writes_rfc_3339);
    tcase_add_test(tests, digest_is_sha256);
    tcase_add_test(tests, digest_as_base64url_is_that_of_pkce);
    tcase_add_test(tests, uuid_is_version_4);
    tcase_add_test(tests, each_free_bit_of_a_uuid_is_random);
    tcase_add_test(tests, ulids_sort_in_the_order_they_were_made);
    tcase_add_test(tests, errors_take_a_prefix_and_a_hint_and_are_cut);
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, assert_case());
    suite_add_tcase(suite, magic_case());
    suite_add_tcase(suite, marks_case());
    suite_add_tcase(suite, state_seal_case());
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
