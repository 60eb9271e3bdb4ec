/* Globs: rows for each rule of the pattern language, and random ones against a matcher that
 * tries everything. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suites.h"
#include "taskgate/config/glob.h"

static const struct {
    const char *pattern, *subject;
    bool matches;
} rows[] = {
    {"delete_user", "delete_user", true},
    {"delete_user", "delete_users", false},
    {"delete_user", "Delete_user", false},
    {"delete_*", "delete_", true},
    {"delete_*", "delete_a/b.c", true},
    {"*", "", true},
    {"*", ".hidden/x", true},
    {"*_unsafe", "run_unsafe", true},
    {"*_unsafe", "run_unsafe_", false},
    {"*a*b*", "xaxbx", true},
    {"*a*b*", "xbxax", false},
    {"a*a", "a", false},
    {"a*a", "aa", true},
    {"?", "x", true},
    {"?", "", false},
    {"?", "xy", false},
    {"?", "\xC3\xA9", true},
    {"??", "\xC3\xA9", false},
    {"*?", "\xC3\xA9", true},
    {"*??", "\xC3\xA9", false},
    {"[abc]x", "bx", true},
    {"[abc]x", "dx", false},
    {"[a-c]x", "cx", true},
    {"[a-c]x", "-x", false},
    {"[!a-c]x", "dx", true},
    {"[!a-c]x", "bx", false},
    {"[!a]", "", false},
    {"[^a]", "^", true}, /* only "!" negates */
    {"[^a]", "b", false},
    {"[]]", "]", true},
    {"[!]]", "]", false},
    {"[!]]", "x", true},
    {"[-a]", "-", true},
    {"[a-]", "-", true},
    {"[*]", "*", true},
    {"[*]", "x", false},
    {"[?]x", "?x", true},
    {"[[]x", "[x", true},
    {"[\xC3\xA0-\xC3\xBF]", "\xC3\xA9", true},
    {"a]b", "a]b", true},
    {"{a,b}", "{a,b}", true}, /* braces and backslashes mean themselves */
    {"{a,b}", "a", false},
    {"a\\*", "a\\bc", true},
    {"a\\*", "a*", false},
    {"**", "a/b", true},
    {"**", "", true},
    {"a/**", "a/", true},
    {"a/**", "a/b/c", true},
    {"a/**", "a", false},
    {"a/**", "ab", false},
    {"**/b", "b", true},
    {"**/b", "a/c/b", true},
    {"**/b", "ab", false},
    {"a/**/b", "a/b", true},
    {"a/**/b", "a/x/y/b", true},
    {"a/**/b", "a/xb", false},
    {"a/**/**/b", "a/b", true},
    {"*/**/b", "x/a/b", true},
    {"*/**/b*c", "x/bb/bxc", true},
    {"a/**/", "a/b", true},
    {"file:///**/*.key", "file:///etc/x.key", true},
    {"", "", true},
    {"", "a", false},
};

START_TEST(a_pattern_matches_whole_names)
{
    struct error error;
    struct glob *glob = glob_compile(str_from(rows[_i].pattern), &error);
    ck_assert_msg(glob != NULL, "%s: %s", rows[_i].pattern, error.message);
    ck_assert_msg(glob_matches(glob, str_from(rows[_i].subject)) == rows[_i].matches, "%s on %s",
                  rows[_i].pattern, rows[_i].subject);
    glob_destroy(glob);
}
END_TEST

START_TEST(a_bad_pattern_is_refused_with_its_reason)
{
    static const struct {
        const char *pattern, *reason;
    } bad[] = {
        {"***", "wildcards are * or **, not more stars"},
        {"a/***", "wildcards are * or **, not more stars"},
        {"a**", "** must be a whole path component, such as a/**/b"},
        {"**a", "** must be a whole path component, such as a/**/b"},
        {"a/**b", "** must be a whole path component, such as a/**/b"},
        {"[/]**", "** must be a whole path component, such as a/**/b"},
        {"[", "the class has no closing ]"},
        {"[]", "the class has no closing ]"},
        {"[!]", "the class has no closing ]"},
        {"[!", "the class has no closing ]"},
        {"x[abc", "the class has no closing ]"},
        {"\xFF", "the pattern is not UTF-8"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct error error;
        ck_assert_msg(!glob_compile(str_from(bad[i].pattern), &error), "%s", bad[i].pattern);
        ck_assert_str_eq(error.message, bad[i].reason);
    }
    glob_destroy(NULL);
}
END_TEST

START_TEST(bytes_that_are_no_character_match_only_wildcards)
{
    struct glob *any = glob_compile(STR("?"), NULL);
    struct glob *latin = glob_compile(STR("[\xC3\xA0-\xC3\xBF]"), NULL);
    ck_assert(glob_matches(any, STR("\xE9")));
    ck_assert(!glob_matches(latin, STR("\xE9")));
    ck_assert(!glob_matches(any, STR("\xE2\x82"))); /* two stray bytes */
    ck_assert(glob_matches(any, STR("\0")));
    glob_destroy(any);
    glob_destroy(latin);
}
END_TEST

START_TEST(literals_are_what_every_match_holds)
{
    struct glob *glob = glob_compile(STR("ab[*]c*de?[xy]f"), NULL);
    static const char *const literals[] = {"ab*c", "de", "f"};
    size_t position = 0;
    struct str literal;
    for (size_t i = 0; i < sizeof literals / sizeof *literals; i++) {
        ck_assert(glob_next_literal(glob, &position, &literal));
        ck_assert(str_equal(literal, str_from(literals[i])));
    }
    ck_assert(!glob_next_literal(glob, &position, &literal));
    glob_destroy(glob);
}
END_TEST

/* Tries every way; patterns of the alphabet below, without classes' odd corners. */
static bool naive(const char *pattern, const char *start, const char *subject)
{
    bool at_component = pattern == start || pattern[-1] == '/';
    if (*pattern == '\0')
        return *subject == '\0';
    if (strncmp(pattern, "**", 2) == 0 && at_component) {
        if (pattern[2] == '\0')
            return true;
        if (pattern[3] == '\0') /* "**" and "/" at the end mean any run */
            return true;
        for (const char *end = subject;; end++) {
            if ((end == subject || end[-1] == '/') && naive(pattern + 3, start, end))
                return true;
            if (*end == '\0')
                return naive(pattern + 3, start, end); /* only stars are left to match nothing */
        }
    }
    if (*pattern == '*') {
        for (const char *end = subject;; end++) {
            if (naive(pattern + 1, start, end))
                return true;
            if (*end == '\0')
                return false;
        }
    }
    if (*subject == '\0')
        return false;
    if (*pattern == '[') { /* always [ab] or [!ab] here */
        bool is_negated = pattern[1] == '!';
        const char *members = pattern + 1 + is_negated;
        bool is_member = members[0] == *subject || members[1] == *subject;
        return is_member != is_negated && naive(members + 3, start, subject + 1);
    }
    return (*pattern == '?' || *pattern == *subject) && naive(pattern + 1, start, subject + 1);
}

/* A fixed sequence, so that a failure can be seen again. */
static unsigned next_random(uint32_t *state)
{
    *state ^= *state << 13; /* xorshift, Marsaglia 2003 */
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static void append(char text[64], const char *more)
{
    size_t length = strlen(text);
    snprintf(text + length, 64 - length, "%s", more);
}

START_TEST(random_patterns_agree_with_a_matcher_that_tries_everything)
{
    static const char *const pieces[] = {"a", "b", "/", "*", "?", "**", "/**/", "[ab]", "[!ab]"};
    static const char letters[] = "abc/";
    uint32_t random = 7;
    unsigned compared = 0, matched = 0;
    while (compared < 200000) {
        char pattern[64] = "", subject[16] = "";
        for (unsigned i = next_random(&random) % 7; i > 0; i--)
            append(pattern, pieces[next_random(&random) % 9]);
        struct glob *glob = glob_compile(str_from(pattern), NULL);
        for (unsigned i = 0; glob && i < 20; i++, compared++) {
            unsigned length = next_random(&random) % 9;
            for (unsigned j = 0; j < length; j++)
                subject[j] = letters[next_random(&random) % 4];
            subject[length] = '\0';
            bool expected = naive(pattern, pattern, subject);
            matched += expected;
            ck_assert_msg(glob_matches(glob, str_from(subject)) == expected, "\"%s\" on \"%s\"",
                          pattern, subject);
        }
        glob_destroy(glob);
    }
    ck_assert_uint_gt(matched, 20000);
}
END_TEST

START_TEST(no_pattern_takes_exponential_time)
{
    char *subject = calloc(20001, 1);
    memset(subject, 'a', 20000);
    struct glob *glob = glob_compile(STR("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b"), NULL);
    ck_assert(!glob_matches(glob, str_from(subject)));
    glob_destroy(glob);
    free(subject);
}
END_TEST

TCase *glob_case(void)
{
    TCase *tests = tcase_create("glob");
    tcase_add_loop_test(tests, a_pattern_matches_whole_names, 0, sizeof rows / sizeof *rows);
    tcase_add_test(tests, a_bad_pattern_is_refused_with_its_reason);
    tcase_add_test(tests, bytes_that_are_no_character_match_only_wildcards);
    tcase_add_test(tests, literals_are_what_every_match_holds);
    tcase_add_test(tests, random_patterns_agree_with_a_matcher_that_tries_everything);
    tcase_add_test(tests, no_pattern_takes_exponential_time);
    return tests;
}
