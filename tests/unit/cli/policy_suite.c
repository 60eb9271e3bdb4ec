/* taskgate policy: files in, lines and exit codes out. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/memory.h"

static char folder[] = "/tmp/taskgate-policy-XXXXXX";

static void start(void)
{
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

static void finish(void)
{
    char *command = memory_format("rm -rf %s", folder);
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(system(command), 0);
    free(command);
    forget_run();
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, strlen(text), file), strlen(text));
    ck_assert_int_eq(fclose(file), 0);
}

/* ---- parse ---- */

START_TEST(good_policies_are_exit_0_without_a_word)
{
    write_file("good.cedar", "// \xC3\xA9\n@id(\"a\")\npermit(principal, action, resource,);");
    ck_assert_int_eq(run("policy parse good.cedar"), CLI_DONE);
    ck_assert_str_eq(captured[0], "");
    ck_assert_str_eq(captured[1], "");
    write_file("empty.cedar", "");
    ck_assert_int_eq(run("policy parse empty.cedar"), CLI_DONE);
}
END_TEST

START_TEST(every_error_of_policies_has_its_place)
{
    write_file("bad.cedar", "permit(principal, action);\n"
                            "permit(principal, action, resource) when { 1 + };\n"
                            "forbid(principal, action, resource)\n  when { true }");
    ck_assert_int_eq(run("policy parse bad.cedar"), CLI_USAGE);
    ck_assert_str_eq(captured[0], "");
    ck_assert_str_eq(
        captured[1],
        "bad.cedar:1:25: unexpected \")\"; expected \",\", \"==\" or \"in\" behind action\n"
        "bad.cedar:2:48: unexpected \"}\"; expected an operand\n"
        "bad.cedar:4:16: unexpected the end of the text; expected \"when\", \"unless\" "
        "or \";\"\n");
}
END_TEST

START_TEST(files_that_cannot_be_read_are_exit_2)
{
    ck_assert_int_eq(run("policy parse missing.cedar"), CLI_USAGE);
    ck_assert_str_eq(captured[1], "taskgate: missing.cedar cannot be read: No such file or "
                                  "directory\n");
    ck_assert_int_eq(run("policy parse ."), CLI_USAGE);
    ck_assert_str_eq(captured[1], "taskgate: . cannot be read: Is a directory\n");
}
END_TEST

TCase *policy_cases(void)
{
    TCase *cases = tcase_create("policy");
    tcase_add_checked_fixture(cases, start, finish);
    tcase_add_test(cases, good_policies_are_exit_0_without_a_word);
    tcase_add_test(cases, every_error_of_policies_has_its_place);
    tcase_add_test(cases, files_that_cannot_be_read_are_exit_2);
    return cases;
}
