/* Regular expressions of list_tools: as regcomp() understands them, in the time of the name. */

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "scaling.h"
#include "suites.h"
#include "taskgate/core/buffer.h"
#include "tools/list_tools.h"

static const struct {
    const char *pattern, *name;
    bool fits;
} rows[] = {
    {"", "", true},
    {"", "a", true},
    {"a", "bab", true},
    {"a", "", false},
    {"^a", "ba", false},
    {"a$", "ab", false},
    {"^a$", "a", true},
    {"^$", "", true},
    {"^$", "a", false},
    {"^(a|bc)+$", "abca", true},
    {"^(a|bc)+$", "abb", false},
    {"(^a|b$)", "cb", true},
    {"^a?b*$", "bbb", true},
    {"a.c", "xabcx", true},
    {"^.$", "", false},
    {"[a-c]", "b", true},
    {"^[^a-c]$", "b", false},
    {"[]x]", "]", true},
    {"[^]x]", "]", false},
    {"[a-]", "-", true},
    {"[[:digit:]_]", "_", true},
    {"^[[:alpha:]]+$", "a1", false},
    {"\\.", "a", false},
    {"\\.", ".", true},
    {"^\\w+$", "a_1", true},
    {"\\W", "a_1", false},
    {"\\d", "tool7", true},
    {"\\D", "77", false},
    {"(|a)b", "b", true},
    {"^(^a)", "a", true},
    {"a**", "", true},
    {"\xC3\xA9+$", "caf\xC3\xA9", true},
};

START_TEST(a_pattern_is_found_anywhere_in_a_name)
{
    const char *fault;
    struct name_pattern *pattern = name_pattern_create(str_from(rows[_i].pattern), &fault);
    ck_assert_msg(pattern != NULL, "%s %s", rows[_i].pattern, fault);
    ck_assert_msg(name_pattern_matches(pattern, str_from(rows[_i].name)) == rows[_i].fits,
                  "\"%s\" on \"%s\"", rows[_i].pattern, rows[_i].name);
    name_pattern_destroy(pattern);
}
END_TEST

static const struct {
    const char *pattern, *fault;
} refused[] = {
    {"(", "has a ( without its )"},
    {"a)", "has a ) without its ("},
    {"[a", "has a [ without its ]"},
    {"[[:alfa:]]", "has a class that is not known"},
    {"[b-a]", "has a range that ends before it begins"},
    {"a|*", "repeats nothing"},
    {"a{9}", "has a repetition count, which is not supported"},
    {"(a)\\1", "has a back reference, which is not supported"},
    {"\\ba", "has an escape that is not supported"},
    {"a\\", "ends with a backslash"},
};

START_TEST(a_bad_pattern_is_refused_with_its_fault)
{
    const char *fault = NULL;
    ck_assert_ptr_null(name_pattern_create(str_from(refused[_i].pattern), &fault));
    ck_assert_str_eq(fault, refused[_i].fault);
}
END_TEST

START_TEST(a_pattern_is_text_of_at_most_256_bytes)
{
    char text[257];
    const char *fault;
    memset(text, 'a', sizeof text);
    struct name_pattern *pattern = name_pattern_create(str_slice(text, 256), &fault);
    ck_assert_ptr_nonnull(pattern);
    ck_assert(name_pattern_matches(pattern, str_slice(text, 256)));
    ck_assert(!name_pattern_matches(pattern, str_slice(text, 255)));
    name_pattern_destroy(pattern);
    ck_assert_ptr_null(name_pattern_create(str_slice(text, 257), &fault));
    ck_assert_str_eq(fault, "is longer than 256 bytes");
    ck_assert_ptr_null(name_pattern_create(STR("a\0b"), &fault));
    ck_assert_str_eq(fault, "holds a NUL");
}
END_TEST

static unsigned next_random(unsigned *state)
{
    *state = *state * 1103515245u + 12345u;
    return *state >> 16;
}

/* Patterns that both read alike: "^" only first and "$" only last, because regexec() reads them
 * differently within a pattern. */
START_TEST(random_patterns_agree_with_those_of_the_library)
{
    static const char *const pieces[] = {"a", "b", ".", "(",    ")",   "|",
                                         "*", "+", "?", "[ab]", "[^a]"};
    unsigned random = 7, compared = 0, matched = 0;
    for (int round = 0; round < 60000; round++) {
        char text[64] = "", name[9] = "";
        if (next_random(&random) % 4 == 0)
            strcat(text, "^");
        for (unsigned i = next_random(&random) % 9; i > 0; i--)
            strcat(text, pieces[next_random(&random) % 11]);
        if (next_random(&random) % 4 == 0)
            strcat(text, "$");
        for (unsigned i = next_random(&random) % 8, at = 0; at < i; at++)
            name[at] = "abc"[next_random(&random) % 3];
        const char *fault;
        regex_t regex;
        struct name_pattern *pattern = name_pattern_create(str_from(text), &fault);
        if (pattern && regcomp(&regex, text, REG_EXTENDED | REG_NOSUB) == 0) {
            bool expected = regexec(&regex, name, 0, NULL, 0) == 0;
            ck_assert_msg(name_pattern_matches(pattern, str_from(name)) == expected,
                          "\"%s\" on \"%s\": %d", text, name, expected);
            regfree(&regex);
            compared++;
            matched += expected;
        }
        name_pattern_destroy(pattern);
    }
    ck_assert_uint_gt(compared, 10000);
    ck_assert_uint_gt(matched, 3000);
}
END_TEST

struct search {
    const struct name_pattern *pattern;
    char name[4096];
    size_t length;
};

static void find(void *input)
{
    const struct search *search = input;
    ck_assert(!name_pattern_matches(search->pattern, str_slice(search->name, search->length)));
}

/* The library makes a state for each set of places where an "a" has stood: 2^25 of them. */
START_TEST(no_pattern_takes_more_time_than_the_name_is_long)
{
    struct buffer text = {0};
    const char *fault;
    buffer_append_text(&text, "(a|b)*a");
    for (int i = 0; i < 25; i++)
        buffer_append_text(&text, "(a|b)");
    buffer_append_text(&text, "c");
    struct name_pattern *pattern = name_pattern_create(buffer_str(&text), &fault);
    ck_assert_ptr_nonnull(pattern);
    struct search little = {.pattern = pattern, .length = 1024};
    unsigned random = 7;
    for (size_t i = 0; i < sizeof little.name; i++)
        little.name[i] = "ab"[next_random(&random) % 2];
    struct search much = little;
    much.length = 4096;
    expect_scaling(find, &little, &much, 8);
    name_pattern_destroy(pattern);
    buffer_finish(&text);
}
END_TEST

TCase *name_pattern_tests(void)
{
    TCase *tests = tcase_create("name_pattern");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, a_pattern_is_found_anywhere_in_a_name, 0,
                        sizeof rows / sizeof *rows);
    tcase_add_loop_test(tests, a_bad_pattern_is_refused_with_its_fault, 0,
                        sizeof refused / sizeof *refused);
    tcase_add_test(tests, a_pattern_is_text_of_at_most_256_bytes);
    tcase_add_test(tests, random_patterns_agree_with_those_of_the_library);
    tcase_add_test(tests, no_pattern_takes_more_time_than_the_name_is_long);
    return tests;
}
