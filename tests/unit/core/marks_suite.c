/* Marks of texts that read as others than they are. */
#include <check.h>

#include "suites.h"
#include "taskgate/core/marks.h"

#define BIDI (1U << MARK_BIDI)
#define INVISIBLE (1U << MARK_INVISIBLE)
#define CONTROL (1U << MARK_CONTROL)
#define MIXED (1U << MARK_MIXED_SCRIPT)

START_TEST(marks_of_texts)
{
    static const struct {
        const char *text;
        unsigned marks;
    } rows[] = {
        {"", 0},
        {"plain text, \t\r\n 12", 0},
        {"\u00E9t\u00E9 \u0111\u01B0\u1EE3c", 0}, /* Latin beyond ASCII */
        {"a\u202Eb", BIDI},
        {"\u061C", BIDI},
        {"\u2066x\u2069", BIDI},
        {"a\u200Bb", INVISIBLE},
        {"\u00A0", INVISIBLE},
        {"\u3000", INVISIBLE},
        {"\u3164", INVISIBLE},
        {"\U000E0041", INVISIBLE},
        {"\u2800", 0}, /* neither ignorable nor a space */
        {"\x1B[2J", CONTROL},
        {"\x7F", CONTROL},
        {"\xC2\x85", CONTROL},
        {"p\u0430y", MIXED},      /* Cyrillic */
        {"\u03B1b", MIXED},       /* Greek */
        {"b\u0578", MIXED},       /* Armenian */
        {"\u13A0b", MIXED},       /* Cherokee */
        {"\uFF41\u0430", MIXED},  /* full width */
        {"a\u0301\u0430", MIXED}, /* over a combining mark */
        {"a\u6F22\u0430", MIXED}, /* over a letter of another script */
        {"a\u200D\u0430", INVISIBLE | MIXED},
        {"a \u0430", 0},
        {"a_\u0430 a1\u0430 a\u2192\u0430", 0},
        {"\u0430\u03B1", 0},        /* without Latin */
        {"b\u05D0\u4E00\u0E01", 0}, /* letters that look like no Latin ones */
        {"5\u00B5s", 0},            /* the micro sign is of no script */
        {"a\xFF\u0430", 0},
        {"\x01\u202E\u200Bp\u0430", BIDI | INVISIBLE | CONTROL | MIXED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_msg(marks_of(str_from(rows[i].text)) == rows[i].marks, "row %zu: %x", i,
                      marks_of(str_from(rows[i].text)));
}
END_TEST

START_TEST(marks_have_names_and_words)
{
    for (enum mark mark = 0; mark < MARK_COUNT; mark++) {
        ck_assert_int_eq(mark_of_name(str_from(mark_name(mark))), mark);
        ck_assert(*mark_words(mark));
    }
    ck_assert_int_eq(mark_of_name(STR("mixed")), MARK_COUNT);
}
END_TEST

TCase *marks_case(void)
{
    TCase *tests = tcase_create("marks");
    tcase_add_test(tests, marks_of_texts);
    tcase_add_test(tests, marks_have_names_and_words);
    return tests;
}
