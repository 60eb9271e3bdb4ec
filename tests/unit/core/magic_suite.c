/* Magic numbers in objects behind `void *`. */
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "suites.h"
#include "taskgate/core/magic.h"

#define DOOR_MAGIC 0xd0017531
#define ROOM_MAGIC 0x40035197

struct door {
    const char *name;
    uint32_t magic;
};

struct room {
    const char *name;
    uint32_t magic;
};

static struct door *door_from(void *context)
{
    return MAGIC_CAST(struct door, DOOR_MAGIC, context);
}

START_TEST(the_right_object_is_cast)
{
    struct door door = {.name = "front"};
    MAGIC_SET(&door, DOOR_MAGIC);
    ck_assert_ptr_eq(door_from(&door), &door);
}
END_TEST

/* Check forks each test: its stderr and its end are its own. */
static void stop_with(void *context)
{
    dup2(STDOUT_FILENO, STDERR_FILENO);
    door_from(context);
}

START_TEST(another_object_stops_the_process)
{
    struct room room = {.name = "hall"};
    MAGIC_SET(&room, ROOM_MAGIC);
    stop_with(&room);
}
END_TEST

START_TEST(an_object_that_has_ended_stops_the_process)
{
    struct door door = {.name = "front"};
    MAGIC_SET(&door, DOOR_MAGIC);
    MAGIC_CLEAR(&door);
    stop_with(&door);
}
END_TEST

START_TEST(no_object_stops_the_process)
{
    stop_with(NULL);
}
END_TEST

START_TEST(the_log_names_the_type)
{
    int ends[2];
    char line[512] = "";
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    ck_assert_int_ne(child, -1);
    if (child == 0) {
        struct room room = {.name = "hall"};
        MAGIC_SET(&room, ROOM_MAGIC);
        dup2(ends[1], STDERR_FILENO);
        door_from(&room);
        _exit(0);
    }
    close(ends[1]);
    ck_assert_int_gt(read(ends[0], line, sizeof(line) - 1), 0);
    close(ends[0]);
    ck_assert_ptr_nonnull(strstr(line, "\"level\":\"error\""));
    ck_assert_ptr_nonnull(strstr(line, "\"type\":\"struct door\""));
    ck_assert_ptr_nonnull(strstr(line, "\"magic\":1073959319"));
    ck_assert_ptr_nonnull(strstr(line, "\"expected\":3489756465"));
}
END_TEST

TCase *magic_case(void)
{
    TCase *tests = tcase_create("magic");
    tcase_add_test(tests, the_right_object_is_cast);
    tcase_add_test_raise_signal(tests, another_object_stops_the_process, SIGABRT);
    tcase_add_test_raise_signal(tests, an_object_that_has_ended_stops_the_process, SIGABRT);
    tcase_add_test_raise_signal(tests, no_object_stops_the_process, SIGABRT);
    tcase_add_test(tests, the_log_names_the_type);
    return tests;
}
