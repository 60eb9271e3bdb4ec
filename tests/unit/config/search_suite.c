/* The places of the configuration file and of the policies. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "suites.h"
#include "support.h"

static struct config *load_file(const char *path, const char *variable, const char *said)
{
    const char *pairs[] = {variable, NULL};
    struct config_problems problems = {0};
    struct buffer text;
    buffer_init(&text);
    test_environment(pairs);
    struct config *config = config_load(path, test_getenv, &problems);
    test_environment(NULL);
    config_problems_write(&problems, &text);
    buffer_append_char(&text, '\0');
    ck_assert_str_eq(text.bytes, said);
    buffer_finish(&text);
    config_problems_finish(&problems);
    return config;
}

START_TEST(the_file_is_found_in_the_order_of_the_search_path)
{
    char folder[] = "/tmp/taskgate-config-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    if (access("/etc/thoughtgate/config.yaml", F_OK) != 0)
        ck_assert_ptr_null(load_file(NULL, NULL,
                                     "no configuration file was found; searched: "
                                     "/etc/thoughtgate/config.yaml, ./config.yaml; name one with "
                                     "--config or THOUGHTGATE_CONFIG\n"));
    FILE *file = fopen("config.yaml", "w");
    fputs(minimal, file);
    fclose(file);
    ck_assert_int_eq(link("config.yaml", "named.yaml"), 0);
    if (access("/etc/thoughtgate/config.yaml", F_OK) != 0) {
        struct config *found = load_file(NULL, "THOUGHTGATE_CONFIG=", "");
        ck_assert_str_eq(found->path, "./config.yaml");
        config_unref(found);
    }
    struct config *named = load_file(NULL, "THOUGHTGATE_CONFIG=named.yaml", "");
    ck_assert_str_eq(named->path, "named.yaml");
    config_unref(named);
    struct config *given = load_file("config.yaml", "THOUGHTGATE_CONFIG=absent.yaml", "");
    ck_assert_str_eq(given->path, "config.yaml");
    config_unref(given);
    ck_assert_ptr_null(load_file("absent.yaml", NULL,
                                 "absent.yaml: the configuration file cannot be read: No such "
                                 "file or directory\n"));
    ck_assert_ptr_null(load_file(NULL, "THOUGHTGATE_CONFIG=absent.yaml",
                                 "absent.yaml: the configuration file cannot be read: No such "
                                 "file or directory\n"));
    ck_assert_ptr_null(
        load_file(".", NULL, ".: the configuration file cannot be read: Is a directory\n"));
    unlink("config.yaml");
    unlink("named.yaml");
    ck_assert_int_eq(chdir("/"), 0);
    rmdir(folder);
}
END_TEST

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    fclose(file);
}

/* The first place that has policies counts, alone; all that was read is watched later. */
START_TEST(policies_come_from_the_first_place_that_has_some)
{
    static const struct {
        const char *first, *second, *name, *text;
        size_t files; /* beside the configuration */
        enum config_on_policy_error on_policy_error;
    } rows[] = {
        {"THOUGHTGATE_POLICY_FILE=a.cedar", "THOUGHTGATE_POLICIES=// inline", "a.cedar", "// a", 1,
         ON_POLICY_ERROR_SKIP},
        {"THOUGHTGATE_POLICIES=// inline", NULL, "THOUGHTGATE_POLICIES", "// inline", 0,
         ON_POLICY_ERROR_SKIP},
        {"THOUGHTGATE_POLICY_FILE=", "THOUGHTGATE_POLICIES=", "b.cedar", "// b", 2,
         ON_POLICY_ERROR_SKIP},
    };
    char folder[] = "/tmp/taskgate-config-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    char *text = with("cedar: {policies: [b.cedar, a.cedar], on_policy_error: skip}\n");
    write_file("a.cedar", "// a");
    write_file("b.cedar", "// b");
    write_file("config.yaml", text);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *pairs[] = {rows[i].first, rows[i].second, NULL};
        struct config_problems problems = {0};
        test_environment(pairs);
        struct config *config = config_load("config.yaml", test_getenv, &problems);
        test_environment(NULL);
        ck_assert_ptr_nonnull(config);
        ck_assert_str_eq(config->policies[0].name, rows[i].name);
        ck_assert_str_eq(config->policies[0].text, rows[i].text);
        ck_assert_uint_eq(config->policies[0].length, strlen(rows[i].text));
        ck_assert_uint_eq(config->policy_count, i == 2 ? 2 : 1);
        ck_assert_int_eq(config->on_policy_error, rows[i].on_policy_error);
        ck_assert_uint_eq(config->file_count, rows[i].files + 1);
        for (size_t j = 0; j < config->file_count; j++) {
            struct config_file now = config->files[j];
            config_file_look(&now);
            ck_assert_uint_ne(now.inode, 0);
            ck_assert_uint_eq(now.inode, config->files[j].inode);
        }
        config_unref(config);
        config_problems_finish(&problems);
    }
    free(text);
    unlink("config.yaml");
    unlink("a.cedar");
    unlink("b.cedar");
    ck_assert_int_eq(chdir("/"), 0);
    rmdir(folder);
}
END_TEST

TCase *search_case(void)
{
    TCase *tests = tcase_create("search");
    tcase_add_test(tests, the_file_is_found_in_the_order_of_the_search_path);
    tcase_add_test(tests, policies_come_from_the_first_place_that_has_some);
    return tests;
}
