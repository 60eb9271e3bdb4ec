/* Sealed texts: opened by their secret alone, and never the same twice. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "sessions.h"

#define SECRET "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdee"

static bool opens(const char *secret, const char *sealed, const char *expected)
{
    char *text = seal_open(str_from(secret), str_from(sealed));
    bool is_expected = text && strcmp(text, expected) == 0;
    free(text);
    return is_expected;
}

static bool is_refused(const char *secret, const char *sealed)
{
    char *text = seal_open(str_from(secret), str_from(sealed));
    free(text);
    return text == NULL;
}

START_TEST(a_text_comes_back_by_its_secret_alone)
{
    static const char *const texts[] = {"", "x", "eyJhbGciOiJub25lIn0.e30.", "letters \xC3\xA9"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *sealed = seal_close(STR(SECRET), str_from(texts[i]));
        ck_assert_uint_eq(strlen(sealed), 2 * (12 + strlen(texts[i]) + 16));
        ck_assert(opens(SECRET, sealed, texts[i]));
        ck_assert(is_refused(OTHER, sealed));
        free(sealed);
    }
}
END_TEST

START_TEST(one_text_is_never_sealed_alike)
{
    char *first = seal_close(STR(SECRET), STR("text")),
         *second = seal_close(STR(SECRET), STR("text"));
    ck_assert_str_ne(first, second);
    free(first);
    free(second);
}
END_TEST

START_TEST(a_changed_seal_is_refused)
{
    char *sealed = seal_close(STR(SECRET), STR("text"));
    for (size_t i = 0; sealed[i]; i++) {
        char before = sealed[i];
        sealed[i] = before == '0' ? '1' : '0';
        ck_assert(is_refused(SECRET, sealed));
        sealed[i] = 'g';
        ck_assert(is_refused(SECRET, sealed));
        sealed[i] = before;
    }
    ck_assert(opens(SECRET, sealed, "text"));
    for (size_t length = strlen(sealed); length-- > 0;) {
        sealed[length] = '\0';
        ck_assert(is_refused(SECRET, sealed));
    }
    free(sealed);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("admin seal");
    TCase *all = tcase_create("all");
    tcase_add_test(all, a_text_comes_back_by_its_secret_alone);
    tcase_add_test(all, one_text_is_never_sealed_alike);
    tcase_add_test(all, a_changed_seal_is_refused);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
