/* The index against a walk over all globs: same answers, far fewer globs tried. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "index.h"
#include "suites.h"
#include "taskgate/core/buffer.h"

#define RULES 1000

/* A fixed sequence, so that a failure can be seen again. */
static uint32_t random_state = 9;

static unsigned next_random(void)
{
    random_state ^= random_state << 13; /* xorshift, Marsaglia 2003 */
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state;
}

static const char *const words[] = {"delete", "user", "file", "read", "db", "a", "_", "x"};

static void append(char text[64], const char *more)
{
    size_t length = strlen(text);
    snprintf(text + length, 64 - length, "%s", more);
}

static void random_name(char text[64])
{
    text[0] = '\0';
    for (unsigned i = next_random() % 5; i > 0; i--)
        append(text, words[next_random() % 8]);
}

static void random_pattern(char text[64])
{
    static const char *const wild[] = {"*", "?", "[a-f]", "[!x]"};
    random_name(text);
    if (next_random() % 4 == 0)
        return;
    append(text, wild[next_random() % 4]);
    if (next_random() % 2)
        append(text, words[next_random() % 8]);
    if (next_random() % 3 == 0)
        append(text, "*");
}

static bool walk(struct glob *const *globs, size_t count, struct str name,
                 const unsigned char *allowed, size_t *position)
{
    for (*position = 0; *position < count; (*position)++) {
        if ((!allowed || allowed[*position]) && glob_matches(globs[*position], name))
            return true;
    }
    return false;
}

static bool is_given(const void *given, size_t position)
{
    return !given || ((const unsigned char *)given)[position];
}

START_TEST(a_thousand_random_rules_decide_as_a_walk_does)
{
    struct glob *globs[RULES];
    unsigned char allowed[RULES];
    char text[64];
    size_t matched = 0;
    for (int round = 0; round < 10; round++) {
        size_t count = round == 0 ? 0 : round == 1 ? 1 : RULES;
        for (size_t i = 0; i < count; i++) {
            do { /* "a**" is no pattern; later rounds have fewer that match everything */
                random_pattern(text);
                globs[i] =
                    round > 4 && strlen(text) < 8 ? NULL : glob_compile(str_from(text), NULL);
            } while (!globs[i]);
            allowed[i] = next_random() % 4 == 0;
        }
        struct index *index = index_create(globs, count);
        for (int i = 0; i < 3000; i++) {
            size_t found, expected;
            const unsigned char *given = i % 2 ? allowed : NULL;
            const struct index_filter by_list = {.allowed = given};
            const struct index_filter by_call = {.fits = is_given, .context = given};
            random_name(text);
            bool is_match = walk(globs, count, str_from(text), given, &expected);
            ck_assert_msg(index_first(index, str_from(text), i % 3 ? &by_list : &by_call, &found) ==
                              is_match,
                          "%s", text);
            if (is_match)
                ck_assert_msg(found == expected, "%s: %zu, not %zu", text, found, expected);
            matched += is_match;
        }
        index_destroy(index);
        for (size_t i = 0; i < count; i++)
            glob_destroy(globs[i]);
    }
    ck_assert_uint_gt(matched, 5000);
    index_destroy(NULL);
}
END_TEST

START_TEST(names_may_hold_any_byte)
{
    struct glob *globs[] = {glob_compile(STR("\xC3\xA9*"), NULL), glob_compile(STR("?"), NULL)};
    struct index *index = index_create(globs, 2);
    size_t found;
    ck_assert(index_first(index, STR("\xC3\xA9t\xC3\xA9"), NULL, &found));
    ck_assert_uint_eq(found, 0);
    ck_assert(index_first(index, STR("\xFF"), NULL, &found));
    ck_assert_uint_eq(found, 1);
    ck_assert(!index_first(index, STR("\xFF\xFE"), NULL, &found));
    ck_assert(index_first(index, STR("\0"), NULL, &found));
    ck_assert(!index_first(index, STR_EMPTY, NULL, &found));
    index_destroy(index);
    glob_destroy(globs[0]);
    glob_destroy(globs[1]);
}
END_TEST

/* The linker puts this in the place of glob_matches(): meson.build. */
bool __wrap_glob_matches(const struct glob *glob, struct str text);
bool __real_glob_matches(const struct glob *glob, struct str text);
static size_t globs_tried;

bool __wrap_glob_matches(const struct glob *glob, struct str text)
{
    globs_tried++;
    return __real_glob_matches(glob, text);
}

/* Patterns that neither a table of names nor one of prefixes would tell apart. */
START_TEST(a_thousand_rules_are_not_walked)
{
    struct glob *globs[RULES];
    char name[64];
    size_t found;
    for (int i = 0; i < RULES; i++) {
        char pattern[64];
        snprintf(pattern, sizeof pattern, "*_%d_for*", i);
        globs[i] = glob_compile(str_from(pattern), NULL);
    }
    struct index *index = index_create(globs, RULES);
    for (int i = 0; i < RULES; i++) {
        snprintf(name, sizeof name, "call_%d_for_team", i);
        globs_tried = 0;
        ck_assert(index_first(index, str_from(name), NULL, &found));
        ck_assert_uint_eq(found, (size_t)i);
        ck_assert_uint_eq(globs_tried, 1);
    }
    globs_tried = 0;
    ck_assert(!index_first(index, STR("call_1000_for_team"), NULL, &found));
    ck_assert_uint_eq(globs_tried, 0);
    ck_assert(walk(globs, RULES, str_from(name), NULL, &found));
    ck_assert_uint_eq(globs_tried, RULES);
    index_destroy(index);
    for (int i = 0; i < RULES; i++)
        glob_destroy(globs[i]);
}
END_TEST

/* A name of as many bytes as a body may have, of nothing but the literals of rules that it does not
 * match: tried anew at each of them it would take hours. */
START_TEST(a_long_name_of_a_rules_own_literals_is_no_work)
{
    struct glob *globs[] = {glob_compile(STR("*_delete"), NULL), glob_compile(STR("*lete?x"), NULL),
                            glob_compile(STR("a*_delete*x"), NULL)};
    struct index *index = index_create(globs, 3);
    struct buffer name = {0};
    size_t found;
    for (int i = 0; i < 500000; i++)
        buffer_append_text(&name, "_delete");
    buffer_append_char(&name, 'y');
    ck_assert(!index_first(index, buffer_str(&name), NULL, &found));
    name.bytes[name.length - 1] = 'e';
    memcpy(name.bytes + name.length - 7, "_delete", 7);
    ck_assert(index_first(index, buffer_str(&name), NULL, &found));
    ck_assert_uint_eq(found, 0);
    buffer_finish(&name);
    index_destroy(index);
    for (int i = 0; i < 3; i++)
        glob_destroy(globs[i]);
}
END_TEST

/* Nor one that has the literal of each of many rules. */
START_TEST(a_long_name_of_all_rules_literals_is_no_work)
{
    struct glob *globs[RULES];
    struct buffer name = {0};
    size_t found;
    for (int i = 0; i < RULES; i++) {
        char pattern[64];
        snprintf(pattern, sizeof pattern, i % 2 ? "*_tool%d" : "*_tool%d*_end", i);
        globs[i] = glob_compile(str_from(pattern), NULL);
        buffer_append_format(&name, "_tool%d", i);
    }
    for (int i = 0; i < 4000000; i++)
        buffer_append_char(&name, 'x');
    struct index *index = index_create(globs, RULES);
    ck_assert(!index_first(index, buffer_str(&name), NULL, &found));
    buffer_append_text(&name, "_tool7");
    ck_assert(index_first(index, buffer_str(&name), NULL, &found));
    ck_assert_uint_eq(found, 7);
    buffer_finish(&name);
    index_destroy(index);
    for (int i = 0; i < RULES; i++)
        glob_destroy(globs[i]);
}
END_TEST

/* Both ways of searching give the same: the memory for a long name loses none of its globs. */
START_TEST(a_long_name_is_decided_as_a_walk_does)
{
    struct glob *globs[RULES];
    char text[64];
    for (int i = 0; i < RULES; i++) {
        do
            random_pattern(text);
        while (strlen(text) < 8 || !(globs[i] = glob_compile(str_from(text), NULL)));
    }
    struct index *index = index_create(globs, RULES);
    for (int i = 0; i < 300; i++) {
        struct buffer name = {0};
        size_t found, expected;
        while (name.length < 600) {
            random_name(text);
            buffer_append_text(&name, text);
        }
        bool is_match = walk(globs, RULES, buffer_str(&name), NULL, &expected);
        ck_assert(index_first(index, buffer_str(&name), NULL, &found) == is_match);
        ck_assert(!is_match || found == expected);
        buffer_finish(&name);
    }
    index_destroy(index);
    for (int i = 0; i < RULES; i++)
        glob_destroy(globs[i]);
}
END_TEST

TCase *index_case(void)
{
    TCase *tests = tcase_create("index");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_thousand_random_rules_decide_as_a_walk_does);
    tcase_add_test(tests, names_may_hold_any_byte);
    tcase_add_test(tests, a_thousand_rules_are_not_walked);
    tcase_add_test(tests, a_long_name_of_a_rules_own_literals_is_no_work);
    tcase_add_test(tests, a_long_name_of_all_rules_literals_is_no_work);
    tcase_add_test(tests, a_long_name_is_decided_as_a_walk_does);
    return tests;
}
