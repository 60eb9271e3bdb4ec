/* The rights that the file of the state keys may have. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "private_file.h"
#include "taskgate/core/memory.h"

#define KEY "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n"
#define OTHER 4321

static const struct {
    uid_t owner; /* 0: this process's */
    gid_t group;
    mode_t mode, becomes; /* 0: refused */
} files[] = {
    {0, 0, 0600, 0600},     {0, 0, 0400, 0400},  {0, 0, 0660, 0600},      {0, 0, 0640, 0600},
    {0, OTHER, 0660, 0600}, {0, 0, 0644, 0},     {0, 0, 0604, 0},         {OTHER, 0, 0440, 0440},
    {OTHER, 0, 0640, 0640}, {OTHER, 0, 0444, 0}, {OTHER, OTHER, 0440, 0}, {OTHER, OTHER, 0660, 0},
};

START_TEST(a_key_is_loaded_when_nobody_else_can_read_it)
{
    char folder[] = "/tmp/taskgate-state-key-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    char *store = memory_format("%s/tasks.db", folder),
         *path = memory_format("%s/state.key", folder);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fputs(KEY, file) >= 0 && fclose(file) == 0, 1);
    uid_t owner = files[_i].owner ? files[_i].owner : geteuid();
    gid_t group = files[_i].group ? files[_i].group : getegid();
    bool is_set = chown(path, owner, group) == 0 && chmod(path, files[_i].mode) == 0;
    ck_assert(is_set || geteuid() != 0); /* another's file can be made by root alone */

    static const struct config config;
    struct state_keys keys;
    struct error error = {""};
    struct stat status;
    if (is_set) {
        bool good = state_key_load(&config, store, &keys, &error);
        ck_assert_msg(good == (files[_i].becomes != 0), "%s", error.message);
        ck_assert_int_eq(stat(path, &status), 0);
        ck_assert_uint_eq(status.st_mode & 0777, good ? files[_i].becomes : files[_i].mode);
    }
    unlink(path);
    rmdir(folder);
    free(path);
    free(store);
}
END_TEST

START_TEST(the_name_of_a_variable_that_is_not_set_is_not_repeated)
{
    char secret[] = "AKIAIOSFODNN7EXAMPLE";
    const struct config config = {.state_key_env = secret};
    struct state_keys keys;
    struct error error = {""};
    ck_assert(!state_key_load(&config, "/nowhere/tasks.db", &keys, &error));
    ck_assert_str_eq(error.message, "state_key.env: the variable is not set");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("server");
    TCase *keys = tcase_create("state key");
    tcase_add_loop_test(keys, a_key_is_loaded_when_nobody_else_can_read_it, 0,
                        sizeof files / sizeof files[0]);
    tcase_add_test(keys, the_name_of_a_variable_that_is_not_set_is_not_repeated);
    suite_add_tcase(suite, keys);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failures = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
