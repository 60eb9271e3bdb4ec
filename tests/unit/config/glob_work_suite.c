/* How much work a match is: the matcher is compiled once more, with its steps counted. */
#include <check.h>
#include <stdlib.h>

static size_t steps;

#define GLOB_STEP() (steps++)
#define glob_matches counted_matches
#define glob_class_holds counted_class_holds
#define glob_position_fits counted_position_fits
#include "glob_match.c"
#undef glob_matches

#include "suites.h"

#define BYTES ((size_t)100000)

/* Names that nearly fit, everywhere. */
static const struct {
    const char *pattern, *piece;
    size_t most_steps; /* for each byte of the name, in hundredths */
} rows[] = {
    {"*a?b", "a", 100},
    {"*a?b*", "a", 100},
    {"*a[xy]b*c", "a", 100},
    {"*aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa?b", "a", 100},
    {"*a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?b*", "a", 100},
    {"*[!b]a?[!c]*z", "a", 100},
    {"*?a*?a*?a*?a*?a*b?b", "a", 100},
    {"**/a?b", "/a", 100},
    {"**/a/**/a/**/a/**/b?", "a/", 100},
    {"*\xC3\xA9?b", "\xC3\xA9", 150},
    {"*[\xC3\xA0-\xC3\xBF]\xC3\xA9[\xC3\xA0-\xC3\xBF]b", "\xC3\xA9", 250},
    {"*a?b", "\xFF", 100},
};

START_TEST(a_name_is_read_once)
{
    size_t length = strlen(rows[_i].piece);
    char *name = malloc(BYTES);
    for (size_t i = 0; i < BYTES; i++)
        name[i] = rows[_i].piece[i % length];
    struct glob *glob = glob_compile(str_from(rows[_i].pattern), NULL);
    ck_assert_ptr_nonnull(glob);
    steps = 0;
    ck_assert(!counted_matches(glob, str_slice(name, BYTES)));
    ck_assert_msg(steps * 100 <= BYTES * rows[_i].most_steps, "\"%s\": %zu steps for %zu bytes",
                  rows[_i].pattern, steps, BYTES);
    glob_destroy(glob);
    free(name);
}
END_TEST

#define STARS ((size_t)20000)

START_TEST(many_stars_do_not_read_a_name_again)
{
    static char pattern[2 * STARS + 2];
    char *name = malloc(BYTES);
    for (size_t i = 0; i < STARS; i++)
        memcpy(pattern + 2 * i, "*a", 2);
    memcpy(pattern + 2 * STARS, "b", 2);
    memset(name, 'a', BYTES);
    struct glob *glob = glob_compile(str_from(pattern), NULL);
    ck_assert_ptr_nonnull(glob);
    steps = 0;
    ck_assert(!counted_matches(glob, str_slice(name, BYTES)));
    ck_assert_uint_le(steps, 2 * BYTES);
    glob_destroy(glob);
    free(name);
}
END_TEST

TCase *glob_work_case(void)
{
    TCase *tests = tcase_create("glob_work");
    tcase_add_loop_test(tests, a_name_is_read_once, 0, (int)(sizeof rows / sizeof *rows));
    tcase_add_test(tests, many_stars_do_not_read_a_name_again);
    return tests;
}
