/* Headers that repeat a part of the body. */
#include "mcp_test.h"

#include "taskgate/mcp/mirrored_header.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static const struct {
    const char *value, *text;
    enum mirrored_verdict verdict;
} rows[] = {
    {"read_file", "read_file", MIRRORED_SAME},
    {" \tread_file\t ", "read_file", MIRRORED_SAME},
    {"Read_file", "read_file", MIRRORED_DIFFERENT},
    {"read_fil", "read_file", MIRRORED_DIFFERENT},
    {"read_file2", "read_file", MIRRORED_DIFFERENT},
    {"", "read_file", MIRRORED_DIFFERENT},
    {"", "", MIRRORED_SAME},
    {"a b", "a b", MIRRORED_SAME},
    {"a b", " a b", MIRRORED_DIFFERENT},
    {"=?base64?IGEgYg==?=", " a b", MIRRORED_SAME},
    {"  =?base64?IGEgYg==?= ", " a b", MIRRORED_SAME},
    {"=?base64?\?=", "", MIRRORED_SAME},
    {"=?base64?\?=", "x", MIRRORED_DIFFERENT},
    {"=?base64?Zg==?=", "f", MIRRORED_SAME},
    {"=?base64?Zm8=?=", "fo", MIRRORED_SAME},
    {"=?base64?Zm9v?=", "foo", MIRRORED_SAME},
    {"=?base64?Zm9vYg==?=", "foob", MIRRORED_SAME},
    {"=?base64?Zm9vYmFy?=", "foobar", MIRRORED_SAME},
    {"=?base64?Zm9vYmFy?=", "foo", MIRRORED_DIFFERENT},
    {"=?base64?Zm9v?=", "foobar", MIRRORED_DIFFERENT},
    {"=?base64?Zm9v?=", "", MIRRORED_DIFFERENT},
    {"=?base64?w7xiZXI=?=", "über", MIRRORED_SAME},
    {"=?base64?+/+/?=", "\xfb\xff\xbf", MIRRORED_SAME},
    /* Raw bytes beyond ASCII: Latin-1 to one reader, UTF-8 to another. */
    {"über", "über", MIRRORED_UNDECODABLE},
    {"a\x01z", "a\x01z", MIRRORED_UNDECODABLE},
    /* Not canonical: no padding, too much of it, in the middle, dropped bits, url alphabet. */
    {"=?base64?Zg?=", "f", MIRRORED_UNDECODABLE},
    {"=?base64?Zg=?=", "f", MIRRORED_UNDECODABLE},
    {"=?base64?Zg===?=", "f", MIRRORED_UNDECODABLE},
    {"=?base64?Z===?=", "f", MIRRORED_UNDECODABLE},
    {"=?base64?====?=", "", MIRRORED_UNDECODABLE},
    {"=?base64?Zg==Zg==?=", "ff", MIRRORED_UNDECODABLE},
    {"=?base64?Z=g=?=", "f", MIRRORED_UNDECODABLE},
    {"=?base64?Zh==?=", "f", MIRRORED_UNDECODABLE},
    {"=?base64?Zm9=?=", "fo", MIRRORED_UNDECODABLE},
    {"=?base64?-_-_?=", "\xfb\xff\xbf", MIRRORED_UNDECODABLE},
    {"=?base64?Zm 9?=", "foo", MIRRORED_UNDECODABLE},
    /* Broken behind a place that differs already. */
    {"=?base64?Zm9v!!!!?=", "bar", MIRRORED_UNDECODABLE},
    /* No sentinel: in another case, without its end, too short for both marks. */
    {"=?BASE64?Zg==?=", "=?BASE64?Zg==?=", MIRRORED_SAME},
    {"=?base64?Zg==", "=?base64?Zg==", MIRRORED_SAME},
    {"=?base64?=", "=?base64?=", MIRRORED_SAME},
    /* A literal that looks like a sentinel is a sentinel. */
    {"=?base64?Zg==?=", "=?base64?Zg==?=", MIRRORED_DIFFERENT},
    {"=?base64?PT9iYXNlNjQ/Wmc9PT89?=", "=?base64?Zg==?=", MIRRORED_SAME},
};

static struct mirrored_header header_of(const char *value)
{
    struct mirrored_header header = {0};
    mirrored_header_add(&header, str_from(value));
    return header;
}

START_TEST(a_value_is_the_text_or_its_base64)
{
    struct mirrored_header header = header_of(rows[_i].value);
    enum mirrored_verdict verdict = mirrored_header_compare(&header, str_from(rows[_i].text));
    ck_assert_msg(verdict == rows[_i].verdict, "%s: %s", rows[_i].value,
                  mirrored_verdict_text(verdict));
}
END_TEST

START_TEST(decoding_agrees_with_comparing)
{
    struct mirrored_header header = header_of(rows[_i].value);
    struct buffer room;
    struct str text;
    buffer_init(&room);
    bool decoded = mirrored_header_decode(header.value, &room, &text);
    bool is_utf8 = str_is_utf8(str_from(rows[_i].text));
    ck_assert_int_eq(decoded, rows[_i].verdict != MIRRORED_UNDECODABLE && is_utf8);
    if (decoded)
        ck_assert_int_eq(mirrored_header_compare(&header, text), MIRRORED_SAME);
    if (rows[_i].verdict == MIRRORED_SAME && is_utf8)
        expect_str(text, rows[_i].text);
    buffer_finish(&room);
}
END_TEST

START_TEST(decoded_texts_lie_beside_each_other)
{
    struct buffer room;
    struct str first, plain, bad;
    buffer_init(&room);
    buffer_reserve(&room, 64); /* so that the bytes stay where they are */
    ck_assert(mirrored_header_decode(STR("=?base64?w7xiZXI=?="), &room, &first));
    ck_assert(mirrored_header_decode(STR(" plain "), &room, &plain));
    ck_assert(!mirrored_header_decode(STR("=?base64?/w==?="), &room, &bad));
    expect_str(first, "über");
    expect_str(plain, "plain");
    buffer_finish(&room);
}
END_TEST

START_TEST(a_header_is_there_once)
{
    struct mirrored_header header = {0};
    ck_assert_int_eq(mirrored_header_compare(&header, STR("a")), MIRRORED_MISSING);
    ck_assert_int_eq(mirrored_header_compare(&header, STR_EMPTY), MIRRORED_MISSING);
    mirrored_header_add(&header, STR("a"));
    ck_assert_int_eq(mirrored_header_compare(&header, STR("a")), MIRRORED_SAME);
    mirrored_header_add(&header, STR("a"));
    ck_assert_int_eq(mirrored_header_compare(&header, STR("a")), MIRRORED_REPEATED);
    expect_str(str_from(mirrored_verdict_text(MIRRORED_REPEATED)), "is there twice");
    expect_str(str_from(mirrored_verdict_text(MIRRORED_UNEXPECTED)),
               "has a value that the body does not have");
}
END_TEST

static const struct {
    const char *value, *json;
    enum mirrored_verdict verdict;
} json_rows[] = {
    {"read_file", "\"read_file\"", MIRRORED_SAME},
    {"read_file", " \"read_file\"\n", MIRRORED_SAME},
    {"read_file", "\"read\\u005ffile\"", MIRRORED_SAME},
    {"read_file", "\"read_dir\"", MIRRORED_DIFFERENT},
    {"a\\u005fb", "\"a\\u005fb\"", MIRRORED_DIFFERENT},
    {"=?base64?w7xiZXI=?=", "\"\\u00fcber\"", MIRRORED_SAME},
    {"=?base64?w7xiZXI=?=", "\"über\"", MIRRORED_SAME},
    {"=?base64?8J+YgA==?=", "\"\\ud83d\\ude00\"", MIRRORED_SAME},
    {"", "\"\"", MIRRORED_SAME},
    {"1", "1", MIRRORED_DIFFERENT},
    {"", "", MIRRORED_DIFFERENT},
};

START_TEST(a_json_string_is_compared_by_its_text)
{
    struct mirrored_header header = header_of(json_rows[_i].value);
    enum mirrored_verdict verdict =
        mirrored_header_compare_json(&header, str_from(json_rows[_i].json));
    ck_assert_msg(verdict == json_rows[_i].verdict, "%s: %s", json_rows[_i].json,
                  mirrored_verdict_text(verdict));
}
END_TEST

static const struct {
    const char *text, *value;
} encoded_rows[] = {
    {"read_file", "read_file"},
    {"a b", "a b"},
    {"", "=?base64?\?="},
    {" a", "=?base64?IGE=?="},
    {"a\t", "=?base64?YQk=?="},
    {"über", "=?base64?w7xiZXI=?="},
    {"=?base64?Zg==?=", "=?base64?PT9iYXNlNjQ/Wmc9PT89?="},
    {"=?base64?Zg==", "=?base64?Zg=="},
    {"a\r\nb", "=?base64?YQ0KYg==?="},
};

START_TEST(a_text_unfit_for_a_header_is_encoded)
{
    struct buffer out;
    buffer_init(&out);
    mirrored_header_encode(str_from(encoded_rows[_i].text), &out);
    struct mirrored_header header = {buffer_str(&out), 1};
    ck_assert_int_eq(mirrored_header_compare(&header, str_from(encoded_rows[_i].text)),
                     MIRRORED_SAME);
    expect_written(&out, encoded_rows[_i].value);
}
END_TEST

Suite *mirrored_header_suite(void)
{
    Suite *suite = suite_create("mirrored_header");
    TCase *tests = tcase_create("mirrored_header");
    tcase_add_loop_test(tests, a_value_is_the_text_or_its_base64, 0, (int)COUNT_OF(rows));
    tcase_add_loop_test(tests, decoding_agrees_with_comparing, 0, (int)COUNT_OF(rows));
    tcase_add_test(tests, decoded_texts_lie_beside_each_other);
    tcase_add_test(tests, a_header_is_there_once);
    tcase_add_loop_test(tests, a_json_string_is_compared_by_its_text, 0, (int)COUNT_OF(json_rows));
    tcase_add_loop_test(tests, a_text_unfit_for_a_header_is_encoded, 0,
                        (int)COUNT_OF(encoded_rows));
    suite_add_tcase(suite, tests);
    return suite;
}
