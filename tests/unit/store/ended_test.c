/* The parts of an ended task that the store keeps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "taskgate/core/buffer.h"

#define SECRET "hunter2-do-not-keep"
#define REDACTED                                                                                   \
    "SELECT count(*) FROM task_request WHERE length(body) = 0 AND redacted = 1"                    \
    " AND arguments = '\"ops-hidden\"' AND meta = '{}' AND other_params = '\"ops-hidden\"'"

static struct scratch scratch;
static struct bench bench;

/* Hides a value as a whole if the secret is in it. */
static bool hide(void *context, struct buffer *out, struct str value, const char *workflow)
{
    int *calls = context;
    bool is_hidden =
        value.length > 0 && memmem(value.bytes, value.length, SECRET, strlen(SECRET)) != NULL;
    (*calls)++;
    if (is_hidden)
        buffer_append_format(out, "\"%s-hidden\"", workflow);
    else
        buffer_append(out, value);
    return is_hidden;
}

static int redactions;
static const struct store_redaction redaction = {hide, NULL, &redactions};

static void set_up(void)
{
    redactions = 0;
    scratch_init(&scratch);
    scratch.redaction = &redaction;
    bench_open(&bench, &scratch);
}

static void tear_down(void)
{
    bench_close(&bench);
    scratch_finish(&scratch);
}

static struct task *create_with_secret(void)
{
    struct task *task = new_task("session:ab");
    task_set_text(&task->session, STR("ab"));
    task_set_text(&task->workflow, STR("ops"));
    task_set_text(&task->arguments, STR("{\"password\":\"" SECRET "\"}"));
    task_set_text(&task->meta, STR("{}"));
    task_set_text(&task->other_params, STR("{\"x\":\"" SECRET "\"}"));
    task_set_text(&task->mirrored_headers, STR("mcp-param-x:" SECRET "\n"));
    task_set_request(task, STR("{\"jsonrpc\":\"2.0\",\"id\":1,\"x\":\"" SECRET "\"}"));
    return create_task(&bench, task);
}

static void expect_redacted(const char *id)
{
    struct task *task = get_task(&bench, id);
    ck_assert_str_eq(task->arguments, "\"ops-hidden\"");
    ck_assert_str_eq(task->meta, "{}");
    ck_assert_str_eq(task->other_params, "\"ops-hidden\"");
    ck_assert_uint_eq(task->request_length, 0);
    ck_assert_str_eq(task->mirrored_headers, "");
    ck_assert_int_eq(scratch_query(&scratch, REDACTED), 1);
    task_unref(task);
}

static const struct task_change approve = {.to = TASK_APPROVED, .by = "alice"};
static const struct task_change execute = {.to = TASK_EXECUTING};
static const struct task_change complete = {
    .to = TASK_COMPLETED, .outcome = TASK_OUTCOME_RESULT, .outcome_text = STR("{\"done\":true}")};
static const struct task_change reject = {.to = TASK_REJECTED, .by = "alice", .reason = "no"};

START_TEST(values_stay_whole_until_the_end_and_are_redacted_then)
{
    struct task *task = create_with_secret();
    const struct task_change *const changes[] = {&approve, &execute};
    for (size_t i = 0; i < 2; i++) {
        struct task *moved = move_task(&bench, task->id, changes[i]);
        ck_assert_str_eq(moved->arguments, "{\"password\":\"" SECRET "\"}");
        ck_assert_ptr_nonnull(strstr(moved->request, SECRET));
        task_unref(moved);
    }
    ck_assert_int_eq(redactions, 0);
    struct task *ended = move_task(&bench, task->id, &complete);
    ck_assert_str_eq(ended->arguments, "\"ops-hidden\"");
    ck_assert_str_eq(ended->outcome_text, "{\"done\":true}");
    ck_assert_int_eq(redactions, 3);
    expect_redacted(task->id);
    task_unref(ended);
    task_unref(task);
}
END_TEST

START_TEST(a_task_without_secrets_is_kept_and_not_marked)
{
    struct task *task = create_task(&bench, new_task("a"));
    task_unref(move_task(&bench, task->id, &reject));
    struct task *ended = get_task(&bench, task->id);
    ck_assert_str_eq(ended->arguments, "{\"name\":\"prod\"}");
    ck_assert_int_eq(scratch_query(&scratch, "SELECT redacted FROM task_request"), 0);
    task_unref(ended);
    task_unref(task);
}
END_TEST

static void end_by_operator(const struct task *task)
{
    task_unref(move_task(&bench, task->id, &reject));
}

static void end_by_session(const struct task *task)
{
    struct answer answer = {0};
    store_task_cancel_session(bench.store, STR("files"), STR("ab"), STR("anonymous"),
                              bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_OK);
    answer_finish(&answer);
}

static void end_by_clock(const struct task *task)
{
    ck_assert_int_eq(scratch_execute(&scratch, "UPDATE task SET decide_by_ms = 1, created_ms = 1"),
                     SQLITE_OK);
}

/* The process died while the call was running. */
static void end_by_crash(const struct task *task)
{
    task_unref(move_task(&bench, task->id, &approve));
    task_unref(move_task(&bench, task->id, &execute));
    bench_close(&bench);
    bench_open(&bench, &scratch);
}

static void (*const ends[])(const struct task *task) = {end_by_operator, end_by_session,
                                                        end_by_clock, end_by_crash};

START_TEST(every_end_redacts)
{
    struct task *task = create_with_secret();
    ends[_i](task);
    expect_redacted(task->id);
    task_unref(task);
}
END_TEST

static bool file_has_secret(void)
{
    char bytes[65536 + sizeof SECRET];
    bool has = false;
    size_t length;
    FILE *file = fopen(scratch.path, "re");
    ck_assert_ptr_nonnull(file);
    while (!has && (length = fread(bytes, 1, sizeof bytes, file)) > 0) {
        has = memmem(bytes, length, SECRET, strlen(SECRET)) != NULL;
        if (length == sizeof bytes)
            ck_assert_int_eq(fseek(file, -(long)sizeof SECRET, SEEK_CUR), 0);
    }
    fclose(file);
    return has;
}

/* SQLite would leave them in the free room of its pages. */
START_TEST(nothing_of_what_is_hidden_stays_in_the_file)
{
    struct task *task = create_with_secret();
    bench_close(&bench);
    ck_assert(file_has_secret());
    bench_open(&bench, &scratch);
    task_unref(move_task(&bench, task->id, &reject));
    bench_close(&bench);
    ck_assert(!file_has_secret());
    bench_open(&bench, &scratch);
    task_unref(task);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store ended");
    TCase *tests = tcase_create("ended");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, values_stay_whole_until_the_end_and_are_redacted_then);
    tcase_add_test(tests, a_task_without_secrets_is_kept_and_not_marked);
    tcase_add_loop_test(tests, every_end_redacts, 0, (int)(sizeof ends / sizeof *ends));
    if (!scratch_is_postgres())
        tcase_add_test(tests, nothing_of_what_is_hidden_stays_in_the_file);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
