/* governance.shadow: a second file, found beside the first, checked like it, and without effect on
 * the first. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "suites.h"
#include "support.h"
#include "taskgate/core/buffer.h"

#define MAIN_BEGIN                                                                                 \
    "schema: 1\n"                                                                                  \
    "sources: [{id: up, kind: mcp, url: 'http://a/'}, {id: other, kind: mcp, url: 'http://b/'}]\n" \
    "governance:\n"                                                                                \
    "  defaults: {action: forward}\n"
#define MAIN MAIN_BEGIN "  shadow: shadow.yaml\n"

static char folder[sizeof "/tmp/taskgate-config-XXXXXX"];

static void write_file(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    fclose(file);
}

static void set_up(void)
{
    strcpy(folder, "/tmp/taskgate-config-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void tear_down(void)
{
    static const char *const names[] = {"main.yaml", "shadow.yaml", "a.cedar"};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    test_environment(NULL);
    ck_assert_int_eq(rmdir(folder), 0);
}

/* Loads main.yaml, and compares the messages, without the folder in each line, with `said`. */
static struct config *load(struct config_problems *problems, const char *said)
{
    char path[128];
    struct buffer text, seen;
    snprintf(path, sizeof path, "%s/main.yaml", folder);
    struct config *config = config_load(path, test_getenv, problems);
    buffer_init(&text);
    buffer_init(&seen);
    config_problems_write(problems, &text);
    struct str rest = buffer_str(&text), line;
    size_t prefix = strlen(folder) + 1;
    while (rest.length) {
        str_cut(rest, '\n', &line, &rest);
        if (str_starts_with(line, str_from(folder)))
            line = str_slice(line.bytes + prefix, line.length - prefix);
        buffer_append(&seen, line);
        buffer_append_char(&seen, '\n');
    }
    buffer_append_char(&seen, '\0');
    ck_assert_str_eq(seen.bytes, said);
    buffer_finish(&seen);
    buffer_finish(&text);
    return config;
}

START_TEST(a_shadow_is_read_from_beside_the_file_and_watched_with_it)
{
    struct config_problems problems = {0};
    write_file("main.yaml", MAIN);
    write_file("shadow.yaml", MAIN_BEGIN "  rules: [{match: x, action: deny}]\n");
    struct config *config = load(&problems, "");
    ck_assert_ptr_nonnull(config->shadow);
    ck_assert_uint_eq(config->rule_count, 0);
    ck_assert_uint_eq(config->shadow->rule_count, 1);
    ck_assert_ptr_null(config->shadow->shadow);
    ck_assert_str_eq(config->shadow_path, config->shadow->path);
    ck_assert_uint_eq(config->file_count, 2);
    ck_assert_str_eq(config->files[0].path, config->shadow_path);
    ck_assert(config->record);
    config_unref(config);
    config_problems_finish(&problems);
}
END_TEST

/* In the order of the files, the shadow's last; nothing twice. */
START_TEST(the_faults_of_both_files_are_told_at_once)
{
    static const char *const pairs[] = {"THOUGHTGATE_OUTBOUND_PORT=many", NULL};
    struct config_problems problems = {0};
    write_file("main.yaml", MAIN "  roles: []\n");
    write_file("shadow.yaml", "schema: 1\n" MAIN);
    test_environment(pairs);
    ck_assert_ptr_null(load(&problems,
                            "main.yaml:6:3: governance.roles: unknown key; did you mean "
                            "\"rules\"?\n"
                            "THOUGHTGATE_OUTBOUND_PORT: warning: this is no whole number, the "
                            "variable is ignored\n"
                            "shadow.yaml:2:1: schema: the key stands here twice, first in "
                            "line 1; keep one of them\n"
                            "shadow.yaml:6:11: governance.shadow: this file is itself a shadow, "
                            "and a shadow has none of its own; remove the key from this file\n"));
    ck_assert_uint_eq(problems.file_count, 2);
    config_problems_finish(&problems);
}
END_TEST

START_TEST(a_shadow_has_no_shadow)
{
    struct config_problems problems = {0};
    write_file("main.yaml", MAIN);
    write_file("shadow.yaml", MAIN);
    ck_assert_ptr_null(load(&problems,
                            "shadow.yaml:5:11: governance.shadow: this file is itself a shadow, "
                            "and a shadow has none of its own; remove the key from this file\n"));
    config_problems_finish(&problems);
}
END_TEST

/* So that its coming is seen. */
START_TEST(a_shadow_that_is_not_there_is_an_error_and_waited_for)
{
    struct config_problems problems = {0};
    write_file("main.yaml", MAIN);
    ck_assert_ptr_null(load(&problems, "shadow.yaml: the configuration file cannot be read: No "
                                       "such file or directory\n"));
    ck_assert_uint_eq(problems.file_count, 2);
    ck_assert_ptr_nonnull(strstr(problems.files[0].path, "shadow.yaml"));
    ck_assert_uint_eq(problems.files[0].inode, 0);
    ck_assert_ptr_nonnull(strstr(problems.files[1].path, "main.yaml"));
    ck_assert_uint_ne(problems.files[1].inode, 0);
    config_problems_finish(&problems);
}
END_TEST

START_TEST(a_source_that_the_shadow_lacks_is_warned_of)
{
    struct config_problems problems = {0};
    write_file("main.yaml", MAIN);
    write_file("shadow.yaml", "schema: 1\nsources: [{id: up, kind: mcp, url: 'http://a/'}]\n"
                              "governance: {defaults: {action: deny}}\n");
    struct config *config =
        load(&problems, "main.yaml:5:11: warning: governance.shadow: the shadow has no source "
                        "other, so it hides every call of it; add the source to the shadow\n");
    ck_assert_ptr_nonnull(config);
    config_unref(config);
    config_problems_finish(&problems);
}
END_TEST

START_TEST(policies_of_a_shadow_are_its_own_files_else_those_in_force)
{
    static const char *const pairs[] = {"THOUGHTGATE_POLICIES=// in force", NULL};
    struct config_problems problems = {0};
    char text[512];
    write_file("main.yaml", MAIN);
    write_file("a.cedar", "// its own");
    snprintf(text, sizeof text, MAIN_BEGIN "cedar: {policies: ['%s/a.cedar']}\n", folder);
    write_file("shadow.yaml", text);
    test_environment(pairs);
    struct config *config = load(&problems, "");
    ck_assert_str_eq(config->policies[0].text, "// in force");
    ck_assert_str_eq(config->shadow->policies[0].text, "// its own");
    ck_assert_uint_eq(config->file_count, 3);
    config_unref(config);
    write_file("shadow.yaml", MAIN_BEGIN);
    config = load(&problems, "");
    ck_assert_str_eq(config->shadow->policies[0].text, "// in force");
    config_unref(config);
    config_problems_finish(&problems);
}
END_TEST

TCase *shadow_case(void)
{
    TCase *tests = tcase_create("shadow");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_shadow_is_read_from_beside_the_file_and_watched_with_it);
    tcase_add_test(tests, the_faults_of_both_files_are_told_at_once);
    tcase_add_test(tests, a_shadow_has_no_shadow);
    tcase_add_test(tests, a_shadow_that_is_not_there_is_an_error_and_waited_for);
    tcase_add_test(tests, a_source_that_the_shadow_lacks_is_warned_of);
    tcase_add_test(tests, policies_of_a_shadow_are_its_own_files_else_those_in_force);
    return tests;
}
