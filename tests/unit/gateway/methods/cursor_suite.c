/* Cursors: a written cursor is read back, and no other text is. */
#include <string.h>

#include "methods/cursor.h"
#include "suites.h"

/* The text of a cursor without the quotes of its JSON string. */
static struct str written(const struct cursor *cursor, struct buffer *out)
{
    cursor_write(cursor, out);
    struct str text = buffer_str(out);
    ck_assert_uint_gt(text.length, 2);
    return str_slice(text.bytes + 1, text.length - 2);
}

static void expect_back(const struct cursor *cursor)
{
    struct buffer text = {0};
    struct cursor back;
    cursor_init(&back);
    ck_assert(cursor_read(&back, written(cursor, &text)));
    ck_assert_int_eq(back.upstream, cursor->upstream);
    ck_assert_int_eq(back.sequence, cursor->sequence);
    ck_assert_uint_eq(back.skip, cursor->skip);
    ck_assert(str_equal(buffer_str(&back.wrapped), buffer_str(&cursor->wrapped)));
    cursor_finish(&back);
    buffer_finish(&text);
}

START_TEST(a_cursor_comes_back_as_it_was_written)
{
    static const int64_t sequences[] = {1, 12, 123, 1234, INT64_MAX};
    static const char *const wrapped[] = {"", "\"\"", "\"p\"", "\"a\\\"b\\u0000\"", "\"\xC3\xA9\""};
    struct cursor cursor;
    for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++) {
        cursor_init(&cursor);
        cursor.sequence = sequences[i];
        expect_back(&cursor);
    }
    for (size_t i = 0; i < sizeof wrapped / sizeof *wrapped; i++) {
        cursor_init(&cursor);
        cursor.upstream = true;
        cursor.skip = i == 0 ? UINT64_MAX : i;
        buffer_append_text(&cursor.wrapped, wrapped[i]);
        expect_back(&cursor);
        cursor_finish(&cursor);
    }
}
END_TEST

START_TEST(a_foreign_text_is_no_cursor)
{
    static const char *const texts[] = {
        "",
        "x",
        "====",
        "AAAA",
        "page-2",
        "e30=",                                     /* {} */
        "eyJiZWZvcmUiOjB9",                         /* {"before":0} */
        "eyJiZWZvcmUiOi0xfQ==",                     /* {"before":-1} */
        "eyJiZWZvcmUiOjkyMjMzNzIwMzY4NTQ3NzU4MDh9", /* one more than INT64_MAX */
        "eyJiZWZvcmUiOiIxIn0=",                     /* {"before":"1"} */
        "eyJ1cHN0cmVhbSI6MSwic2tpcCI6MH0=",         /* {"upstream":1,"skip":0} */
        "eyJ1cHN0cmVhbSI6bnVsbH0=",                 /* {"upstream":null} */
        " eyJiZWZvcmUiOjEyfQ==",                    /* a good one, but for the space */
        "eyJiZWZvcmUiOjEyfR==",                     /* the same bytes in another spelling */
        "eyJiZWZvcmUiOjEyfQ==\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct cursor cursor;
        cursor_init(&cursor);
        ck_assert_msg(!cursor_read(&cursor, str_from(texts[i])), "%s", texts[i]);
        cursor_finish(&cursor);
    }
}
END_TEST

START_TEST(no_cut_or_changed_cursor_is_read_as_another)
{
    struct cursor cursor, back;
    struct buffer text = {0};
    cursor_init(&cursor);
    cursor.upstream = true;
    buffer_append_text(&cursor.wrapped, "\"upstream's own\"");
    struct str whole = written(&cursor, &text);
    for (size_t length = 0; length < whole.length; length++) {
        cursor_init(&back);
        ck_assert(!cursor_read(&back, str_slice(whole.bytes, length)));
        cursor_finish(&back);
    }
    cursor_init(&back);
    text.bytes[text.length - 2] = '!';
    ck_assert(!cursor_read(&back, whole));
    cursor_finish(&back);
    cursor_finish(&cursor);
    buffer_finish(&text);
}
END_TEST

TCase *cursor_tests(void)
{
    TCase *tests = tcase_create("cursor");
    tcase_add_test(tests, a_cursor_comes_back_as_it_was_written);
    tcase_add_test(tests, a_foreign_text_is_no_cursor);
    tcase_add_test(tests, no_cut_or_changed_cursor_is_read_as_another);
    return tests;
}
