/* The outcomes of the other calls of a tool, beside one of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "taskgate/core/memory.h"
#include "taskgate/store/tally.h"

#define DAY_MS INT64_C(86400000)

static struct scratch scratch;
static struct bench bench;

static void set_up(void)
{
    scratch_init(&scratch);
    bench_open(&bench, &scratch);
}

static void tear_down(void)
{
    bench_close(&bench);
    scratch_finish(&scratch);
}

/* ---- helpers ---- */

/* "approved rejected expired failed" of all, of the owner; the last decision; the same. */
struct received {
    size_t arrived;
    enum store_status status;
    char *text;
    int64_t same_ms, decided_ms;
};

static void keep(void *context, const struct store_reply *reply)
{
    struct received *received = context;
    const struct store_tally *tally = reply->tally;
    received->arrived++;
    received->status = reply->status;
    if (!tally)
        return;
    const struct store_tally_counts *all = &tally->all, *own = &tally->owner;
    received->text = memory_format(
        "%d %d %d %d, %d %d %d %d, %s %s %s, %d", (int)all->approved, (int)all->rejected,
        (int)all->expired, (int)all->failed, (int)own->approved, (int)own->rejected,
        (int)own->expired, (int)own->failed, tally->has_last ? task_state_name(tally->state) : "-",
        tally->has_last ? tally->person : "-", tally->has_last ? tally->reason : "-",
        (int)tally->same_approved);
    received->same_ms = tally->same_ms;
    received->decided_ms = tally->decided_ms;
}

static struct received ask(const char *id)
{
    struct received received = {.arrived = 0};
    store_task_get_with_tally(bench.store, str_from(id),
                              (struct store_call){bench.loop, keep, &received});
    bench_wait_count(bench.loop, &received.arrived, 1);
    return received;
}

static struct received expect(const char *id, const char *expected)
{
    struct received received = ask(id);
    ck_assert_int_eq(received.status, STORE_OK);
    ck_assert_str_eq(received.text, expected);
    free(received.text);
    return received;
}

static struct task *make(const char *owner, const char *tool, const char *digest)
{
    struct task *task = new_task(owner);
    task_set_text(&task->tool, str_from(tool));
    snprintf(task->arguments_digest, sizeof task->arguments_digest, "%s", digest);
    return create_task(&bench, task);
}

static void end(const struct task *task, struct task_change change)
{
    task_unref(move_task(&bench, task->id, &change));
}

static const struct task_change approve = {.to = TASK_APPROVED, .by = "alice", .reason = "good"},
                                reject = {.to = TASK_REJECTED, .by = "alice", .reason = "no"},
                                start = {.to = TASK_EXECUTING},
                                fail = {.to = TASK_FAILED,
                                        .status_message = "gone",
                                        .failure = TASK_FAILURE_OUTCOME_UNKNOWN};

/* ---- tests ---- */

START_TEST(others_of_the_tool_and_of_the_owner_are_counted)
{
    struct task *seen = make("auth:ab", "drop", "d1");
    expect(seen->id, "0 0 0 0, 0 0 0 0, - - -, 0");

    struct task *first = make("auth:ab", "drop", "d1"), *second = make("auth:cd", "drop", "d1");
    struct task *third = make("auth:cd", "drop", "d2"), *other = make("auth:ab", "read", "d1");
    end(first, approve);
    end(first, start);
    end(first, fail);
    end(second, approve);
    end(third, reject);
    end(other, approve);
    struct received received = expect(seen->id, "2 1 0 1, 1 0 0 1, rejected alice no, 2");
    ck_assert_int_ge(received.same_ms, seen->created_ms);
    ck_assert_int_ge(received.decided_ms, received.same_ms);

    /* Without what was counted for the task itself. */
    expect(first->id, "1 1 0 0, 0 0 0 0, rejected alice no, 1");
    expect(third->id, "2 0 0 1, 1 0 0 0, approved alice good, 0");
    expect(other->id, "0 0 0 0, 0 0 0 0, - - -, 0");
    end(seen, reject);
    expect(seen->id, "2 1 0 1, 1 0 0 1, rejected alice no, 2");

    struct received unknown = ask("01ARZ3NDEKTSV4RRFFQ69G5FAV");
    ck_assert_int_eq(unknown.status, STORE_NOT_FOUND);
    ck_assert_ptr_null(unknown.text);
    struct task *const all[] = {seen, first, second, third, other};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        task_unref(all[i]);
}
END_TEST

START_TEST(tasks_that_are_gone_are_counted_for_thirty_days)
{
    struct task *seen = make("auth:ab", "drop", "d1"), *gone = make("auth:ab", "drop", "d1");
    const bool is_postgres = scratch_is_postgres();
    end(gone, approve);
    ck_assert_int_eq(scratch_execute(&scratch, is_postgres
                                                   ? "DELETE FROM taskgate_task WHERE state = 1"
                                                   : "DELETE FROM task WHERE state = 1"),
                     SQLITE_OK);
    expect(seen->id, "1 0 0 0, 1 0 0 0, approved alice good, 1");
    const char *const older = is_postgres ? "UPDATE taskgate_tally SET day_ms = day_ms - %lld"
                                          : "UPDATE tally SET day_ms = day_ms - %lld";
    char *sql = memory_format(older, (long long)(29 * DAY_MS));
    ck_assert_int_eq(scratch_execute(&scratch, sql), SQLITE_OK);
    expect(seen->id, "1 0 0 0, 1 0 0 0, approved alice good, 1");
    free(sql);
    sql = memory_format(older, (long long)DAY_MS);
    ck_assert_int_eq(scratch_execute(&scratch, sql), SQLITE_OK);
    expect(seen->id, "0 0 0 0, 0 0 0 0, approved alice good, 1");
    free(sql);
    task_unref(seen);
    task_unref(gone);
}
END_TEST

/* As a version leaves it that did not count. */
START_TEST(an_older_database_is_counted_from_its_trail)
{
    struct task *seen = make("auth:ab", "drop", "d1"), *first = make("auth:ab", "drop", "d1");
    struct task *second = make("auth:cd", "drop", "d2");
    end(first, approve);
    end(second, reject);
    bench_close(&bench);
    const char *const back =
        scratch_is_postgres()
            ? "DROP TABLE taskgate_tally CASCADE; DROP INDEX taskgate_audit_decided;"
              "DROP INDEX taskgate_audit_approved;"
              "UPDATE taskgate_schema SET version = version - 1"
            : "DROP TABLE tally; DROP INDEX audit_decided; DROP INDEX audit_approved;"
              "PRAGMA user_version = 35";
    ck_assert_int_eq(scratch_execute(&scratch, back), SQLITE_OK);
    bench_open(&bench, &scratch);
    expect(seen->id, "1 1 0 0, 1 0 0 0, rejected alice no, 1");
    task_unref(seen);
    task_unref(first);
    task_unref(second);
}
END_TEST

static void finish(struct answer *answer)
{
    bench_wait(bench.loop, answer);
    ck_assert_int_eq(answer->status, STORE_OK);
    answer_finish(answer);
}

static struct task *promised(const char *tool)
{
    struct task *task = make("session:ab", tool, "d1");
    struct answer answer = {0};
    store_task_promise(bench.store, str_from(task->id), bench_call(bench.loop, &answer));
    finish(&answer);
    return task;
}

/* One that is approved, and two that have ended, go; what was not promised stays counted. */
START_TEST(counts_go_to_the_heir_of_the_tasks)
{
    struct task *heir = make("anonymous", "drop", "d1"), *left = make("session:ab", "drop", "d1");
    struct task *approved = promised("drop"), *rejected = promised("drop");
    struct task *failed = promised("drop"), *other = promised("read");
    end(left, approve);
    end(approved, approve);
    end(rejected, reject);
    end(failed, approve);
    end(failed, start);
    end(failed, fail);
    end(other, approve);
    expect(heir->id, "3 1 0 1, 0 0 0 0, approved alice good, 3");
    struct answer answer = {0};
    store_task_cancel_session(bench.store, str_from(heir->source), STR("ab"), STR("anonymous"),
                              bench_call(bench.loop, &answer));
    finish(&answer);
    expect(heir->id, "3 1 0 1, 2 1 0 1, approved alice good, 3");
    expect(failed->id, "2 1 0 0, 1 1 0 0, rejected alice no, 2");
    struct task *old = make("session:ab", "drop", "d1");
    expect(old->id, "3 1 0 1, 1 0 0 0, approved alice good, 3");
    struct task *const all[] = {heir, left, approved, rejected, failed, other, old};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        task_unref(all[i]);
}
END_TEST

START_TEST(a_name_of_any_length_is_counted)
{
    char *long_name = memory_alloc(100001);
    memset(long_name, 'x', 100000);
    struct task *seen = make("auth:ab", long_name, "d1"), *other = make("auth:ab", long_name, "d1");
    end(other, reject);
    expect(seen->id, "0 1 0 0, 0 1 0 0, rejected alice no, 0");
    free(long_name);
    task_unref(seen);
    task_unref(other);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store tally");
    TCase *tests = tcase_create("store tally");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, others_of_the_tool_and_of_the_owner_are_counted);
    tcase_add_test(tests, tasks_that_are_gone_are_counted_for_thirty_days);
    tcase_add_test(tests, an_older_database_is_counted_from_its_trail);
    tcase_add_test(tests, counts_go_to_the_heir_of_the_tasks);
    tcase_add_test(tests, a_name_of_any_length_is_counted);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
