/* The store as one caller sees it: create, read, change, list, sessions, audit, clocks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"

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

static void reopen(void)
{
    bench_close(&bench);
    bench_open(&bench, &scratch);
}

static const struct task_change approve = {.to = TASK_APPROVED, .by = "alice"};
static const struct task_change execute = {.to = TASK_EXECUTING};
static const struct task_change give_back = {.to = TASK_APPROVED};
static const struct task_change cancel = {.to = TASK_CANCELLED};

/* ---- tasks ---- */

START_TEST(every_field_survives_a_restart)
{
    struct task *task = new_task("auth:ab");
    task_set_text(&task->session, STR("5e55"));
    task_set_text(&task->principal, STR("inspector (ab12)"));
    task_set_text(&task->workflow, STR("dba"));
    task_set_text(&task->action, STR("approve"));
    task_set_text(&task->progress_token, STR("\"p\""));
    task_set_text(&task->status_message, STR("Awaiting approval"));
    memset(task->arguments_digest, 'a', 64);
    memset(task->definition_digest, 'd', 64);
    task->on_result = task->keep_task = true;
    task->poll_interval_ms = 5000;
    struct task *kept = task_copy(task);
    struct task *created = create_task(&bench, task);
    ck_assert_str_eq(created->id, kept->id);
    task_unref(created);
    reopen();

    struct task *read = get_task(&bench, kept->id);
    ck_assert_int_eq(read->state, TASK_PENDING);
    ck_assert_str_eq(read->source, "files");
    ck_assert_str_eq(read->owner, "auth:ab");
    ck_assert_str_eq(read->session, "5e55");
    ck_assert_str_eq(read->principal, "inspector (ab12)");
    ck_assert_str_eq(read->tool, "delete_database");
    ck_assert_str_eq(read->workflow, "dba");
    ck_assert_str_eq(read->action, "approve");
    ck_assert_str_eq(read->arguments, "{\"name\":\"prod\"}");
    ck_assert_str_eq(read->request, "{\"jsonrpc\":\"2.0\",\"id\":1}");
    ck_assert_uint_eq(read->request_length, kept->request_length);
    ck_assert_str_eq(read->arguments_digest, kept->arguments_digest);
    ck_assert_str_eq(read->definition_digest, kept->definition_digest);
    ck_assert_str_eq(read->progress_token, "\"p\"");
    ck_assert_str_eq(read->status_message, "Awaiting approval");
    ck_assert(read->on_result && read->keep_task && !read->accelerated);
    ck_assert_int_eq(read->ttl_ms, 600000);
    ck_assert_int_eq(read->poll_interval_ms, 5000);
    ck_assert_int_eq(read->created_ms, kept->created_ms);
    ck_assert_int_eq(read->updated_ms, kept->updated_ms);
    ck_assert_int_eq(read->decide_by_ms, kept->decide_by_ms);
    ck_assert_int_eq(read->outcome, TASK_OUTCOME_NONE);
    ck_assert_ptr_null(read->outcome_text);
    task_unref(read);

    read = move_task(&bench, kept->id,
                     &(struct task_change){.to = TASK_APPROVED, .by = "alice", .reason = "fine"});
    ck_assert_int_gt(read->execute_by_ms, 0);
    task_unref(read);
    task_unref(move_task(&bench, kept->id, &execute));
    reopen();
    read = get_task(&bench, kept->id);
    ck_assert_str_eq(read->decided_by, "alice");
    ck_assert_str_eq(read->reason, "fine");
    ck_assert_int_gt(read->decided_ms, 0);
    task_unref(read);
    task_unref(kept);
}
END_TEST

START_TEST(unknown_ids_are_not_found)
{
    struct answer answer = {0};
    store_task_get(bench.store, STR("tg_none"), bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_NOT_FOUND);
    ck_assert_ptr_null(answer.task);
    answer_finish(&answer);
    ck_assert_int_eq(change_status(&bench, "tg_none", &cancel), STORE_NOT_FOUND);
    store_task_set_upstream(bench.store, STR("tg_none"), STR("up"),
                            bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_NOT_FOUND);
    answer_finish(&answer);
}
END_TEST

START_TEST(big_bodies_with_nul_come_back_byte_for_byte)
{
    const size_t request_length = (size_t)4 << 20, result_length = (size_t)16 << 20;
    char *request = memory_alloc(request_length), *result = memory_alloc(result_length);
    for (size_t i = 0; i < request_length; i++)
        request[i] = (char)(i * 31 % 251); /* NUL among them */
    for (size_t i = 0; i < result_length; i++)
        result[i] = (char)(i * 17 % 253);
    struct task *task = new_task("anonymous");
    task_set_request(task, str_slice(request, request_length));
    task = create_task(&bench, task);
    task_unref(move_task(&bench, task->id, &approve));
    task_unref(move_task(&bench, task->id, &execute));
    task_unref(move_task(&bench, task->id,
                         &(struct task_change){.to = TASK_COMPLETED,
                                               .outcome = TASK_OUTCOME_RESULT,
                                               .outcome_text = str_slice(result, result_length)}));
    reopen();
    struct task *read = get_task(&bench, task->id);
    ck_assert_int_eq(read->state, TASK_COMPLETED);
    ck_assert_uint_eq(read->request_length, request_length);
    ck_assert_int_eq(memcmp(read->request, request, request_length), 0);
    ck_assert_uint_eq(read->outcome_length, result_length);
    ck_assert_int_eq(memcmp(read->outcome_text, result, result_length), 0);
    task_unref(read);
    task_unref(task);
    free(request);
    free(result);
}
END_TEST

START_TEST(changes_are_compare_and_set)
{
    struct task *task = create_task(&bench, new_task("anonymous"));
    task_unref(move_task(&bench, task->id, &cancel));
    struct answer answer = {0};
    store_task_change(bench.store, str_from(task->id), &approve, &alice,
                      bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_CONFLICT);
    ck_assert_int_eq(answer.task->state, TASK_CANCELLED);
    ck_assert_str_eq(answer.task->status_message, "Cancelled");
    answer_finish(&answer);
    task_unref(task);
}
END_TEST

START_TEST(incomplete_changes_and_tasks_are_refused)
{
    struct task *task = create_task(&bench, new_task("anonymous"));
    ck_assert_int_eq(change_status(&bench, task->id, &(struct task_change){.to = TASK_FAILED}),
                     STORE_FAILED);
    task_unref(task);
    task = new_task("anonymous");
    task->decide_by_ms = 0;
    ck_assert_int_eq(create_status(&bench, task, &no_limits), STORE_FAILED);
    ck_assert(store_is_healthy(bench.store));
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM task"), 1);
}
END_TEST

START_TEST(a_duplicate_id_fails_alone)
{
    struct task *first = create_task(&bench, new_task("anonymous"));
    struct task *same = new_task("anonymous");
    memcpy(same->id, first->id, sizeof same->id);
    struct answer answers[3] = {0};
    /* Queued together, so that they share a transaction as a rule; true in any case. */
    store_task_create(bench.store, new_task("anonymous"), &no_limits,
                      bench_call(bench.loop, &answers[0]));
    store_task_create(bench.store, same, &no_limits, bench_call(bench.loop, &answers[1]));
    store_task_create(bench.store, new_task("anonymous"), &no_limits,
                      bench_call(bench.loop, &answers[2]));
    for (unsigned i = 0; i < 3; i++) {
        bench_wait(bench.loop, &answers[i]);
        ck_assert_int_eq(answers[i].status, i == 1 ? STORE_FAILED : STORE_OK);
        answer_finish(&answers[i]);
    }
    ck_assert(store_is_healthy(bench.store));
    ck_assert_int_eq(store_pending_count(bench.store), 3);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM task"), 3);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM audit"), 3);
    task_unref(first);
}
END_TEST

START_TEST(upstream_ids_belong_to_executions)
{
    struct task *task = create_task(&bench, new_task("anonymous"));
    struct answer answer = {0};
    store_task_set_upstream(bench.store, str_from(task->id), STR("up-1"),
                            bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_CONFLICT);
    answer_finish(&answer);
    task_unref(move_task(&bench, task->id, &approve));
    task_unref(move_task(&bench, task->id, &execute));
    store_task_set_upstream(bench.store, str_from(task->id), STR("up-1"),
                            bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_OK);
    answer_finish(&answer);
    struct task *read = get_task(&bench, task->id);
    ck_assert_str_eq(read->upstream_task, "up-1");
    task_unref(read);
    task_unref(task);
}
END_TEST

START_TEST(calls_that_nobody_waits_for_are_carried_out)
{
    struct task *task = task_ref(new_task("anonymous"));
    store_task_create(bench.store, task, &no_limits, (struct store_call){NULL, NULL, NULL});
    struct task *read = get_task(&bench, task->id);
    ck_assert_int_eq(read->state, TASK_PENDING);
    task_unref(read);
    task_unref(task);
}
END_TEST

/* ---- limits ---- */

START_TEST(limits_count_the_undecided)
{
    const struct store_limits limits = {2, 3};
    struct task *a = new_task("a");
    task_ref(a);
    ck_assert_int_eq(create_status(&bench, a, &limits), STORE_OK);
    ck_assert_int_eq(create_status(&bench, new_accelerated("a"), &limits), STORE_OK);
    ck_assert_int_eq(create_status(&bench, new_task("a"), &limits), STORE_LIMIT_PRINCIPAL);
    ck_assert_int_eq(create_status(&bench, new_task("b"), &limits), STORE_OK);
    ck_assert_int_eq(create_status(&bench, new_task("b"), &limits), STORE_LIMIT_TOTAL);
    ck_assert_int_eq(store_pending_count(bench.store), 2); /* the accelerated one waits for none */
    reopen();
    ck_assert_int_eq(store_pending_count(bench.store), 2);
    ck_assert_int_eq(create_status(&bench, new_task("a"), &limits), STORE_LIMIT_PRINCIPAL);
    ck_assert_int_eq(create_status(&bench, new_task("b"), &limits), STORE_LIMIT_TOTAL);

    ck_assert_int_eq(change_status(&bench, a->id, &approve), STORE_OK);
    ck_assert_int_eq(store_pending_count(bench.store), 1);
    ck_assert_int_eq(create_status(&bench, new_task("a"), &limits), STORE_LIMIT_PRINCIPAL);
    ck_assert_int_eq(change_status(&bench, a->id, &execute), STORE_OK);
    ck_assert_int_eq(create_status(&bench, new_task("a"), &limits), STORE_OK);
    /* Given back: over the limit, but nobody may take its place. */
    ck_assert_int_eq(change_status(&bench, a->id, &give_back), STORE_OK);
    ck_assert_int_eq(change_status(&bench, a->id, &cancel), STORE_OK);
    ck_assert_int_eq(create_status(&bench, new_task("a"), &limits), STORE_LIMIT_PRINCIPAL);
    task_unref(a);
}
END_TEST

/* ---- lists ---- */

static void create_of(const char *owner, const char *session, const char *source, const char *tool)
{
    struct task *task = new_task(owner);
    task_set_text(&task->session, str_from(session));
    task_set_text(&task->source, str_from(source));
    task_set_text(&task->tool, str_from(tool));
    task_unref(create_task(&bench, task));
}

START_TEST(pages_are_complete_newest_first_and_end)
{
    char *ids[45];
    for (unsigned i = 0; i < 45; i++) {
        struct task *task = create_task(&bench, new_task(i % 2 ? "a" : "b"));
        ids[i] = memory_copy_text(task->id);
        task_unref(task);
    }
    static const size_t sizes[] = {20, 20, 5};
    struct store_task_query query = {.limit = 20};
    unsigned seen = 0;
    for (unsigned page = 0; page < 3; page++) {
        struct answer answer = {0};
        list_tasks(&bench, &query, &answer);
        ck_assert_uint_eq(answer.task_count, sizes[page]);
        ck_assert_int_eq(answer.has_more, page < 2);
        for (size_t i = 0; i < answer.task_count; i++)
            ck_assert_str_eq(answer.tasks[i]->id, ids[44 - seen++]);
        ck_assert_str_eq(answer.tasks[0]->arguments, "{\"name\":\"prod\"}");
        ck_assert_uint_eq(answer.tasks[0]->request_length, 0); /* lists bring no bulk */
        query.before_sequence = answer.sequences[answer.task_count - 1];
        answer_finish(&answer);
    }
    query = (struct store_task_query){.owner = STR("a"), .limit = 22};
    struct answer answer = {0};
    list_tasks(&bench, &query, &answer);
    ck_assert_uint_eq(answer.task_count, 22);
    ck_assert(!answer.has_more);
    for (size_t i = 0; i < answer.task_count; i++)
        ck_assert_str_eq(answer.tasks[i]->owner, "a");
    answer_finish(&answer);
    for (unsigned i = 0; i < 45; i++)
        free(ids[i]);
}
END_TEST

static size_t count_listed(struct store_task_query query)
{
    struct answer answer = {0};
    query.limit = 50;
    list_tasks(&bench, &query, &answer);
    size_t count = answer.task_count;
    for (size_t i = 1; i < count; i++)
        ck_assert_int_lt(answer.sequences[i], answer.sequences[i - 1]);
    answer_finish(&answer);
    return count;
}

START_TEST(conditions_combine)
{
    create_of("auth:1", "s1", "x", "t");
    create_of("auth:1", "s2", "x", "u");
    create_of("auth:2", "s1", "x", "t"); /* the same session under a new token */
    create_of("auth:2", "s3", "y", "t");
    create_of("anonymous", "", "y", "t");
    struct task *task = create_task(&bench, new_task("auth:3"));
    task_unref(move_task(&bench, task->id, &cancel));
    task_unref(task);

    ck_assert_uint_eq(count_listed((struct store_task_query){.limit = 0}), 6);
    ck_assert_uint_eq(count_listed((struct store_task_query){.owner = STR("auth:1")}), 2);
    ck_assert_uint_eq(
        count_listed((struct store_task_query){.owner = STR("auth:1"), .session = STR("s1")}), 3);
    ck_assert_uint_eq(count_listed((struct store_task_query){.session = STR("s1")}), 2);
    ck_assert_uint_eq(
        count_listed((struct store_task_query){.owner = STR("auth:9"), .session = STR("s9")}), 0);
    ck_assert_uint_eq(
        count_listed((struct store_task_query){.owner = STR("auth:2"), .source = STR("y")}), 1);
    ck_assert_uint_eq(count_listed((struct store_task_query){
                          .owner = STR("auth:1"), .session = STR("s1"), .tool = STR("t")}),
                      2);
    ck_assert_uint_eq(count_listed((struct store_task_query){.states = 1u << TASK_PENDING}), 5);
    ck_assert_uint_eq(count_listed((struct store_task_query){.states = 1u << TASK_CANCELLED}), 1);
    ck_assert_uint_eq(count_listed((struct store_task_query){
                          .states = 1u << TASK_CANCELLED | 1u << TASK_PENDING, .source = STR("x")}),
                      3);
    ck_assert_uint_eq(count_listed((struct store_task_query){.owner = STR("' OR '1'='1")}), 0);
}
END_TEST

/* ---- clocks ---- */

struct heard {
    size_t count;
    struct task *tasks[64];
    bool created[64];
};

static void hear(void *context, struct task *task, bool created)
{
    struct heard *heard = context;
    ck_assert_uint_lt(heard->count, 64);
    heard->tasks[heard->count] = task_ref(task);
    heard->created[heard->count++] = created;
}

static void heard_finish(struct heard *heard)
{
    for (size_t i = 0; i < heard->count; i++)
        task_unref(heard->tasks[i]);
}

START_TEST(deadlines_are_swept_when_they_come)
{
    struct heard heard = {0};
    store_observe(bench.store, bench.loop, hear, &heard);
    struct task *task = new_task("anonymous");
    task->decide_by_ms = clock_now_ms() + 60;
    int64_t decide_by_ms = task->decide_by_ms;
    task_unref(create_task(&bench, task));
    task = new_accelerated("anonymous");
    task->execute_by_ms = clock_now_ms() + 30;
    task_unref(create_task(&bench, task));
    bench_wait_count(bench.loop, &heard.count, 4);
    for (unsigned i = 2; i < 4; i++) {
        ck_assert_int_eq(heard.tasks[i]->state, TASK_EXPIRED);
        ck_assert(!heard.created[i]);
    }
    ck_assert(heard.tasks[2]->accelerated);
    ck_assert_ptr_nonnull(strstr(heard.tasks[2]->status_message, "not run within"));
    ck_assert_ptr_nonnull(strstr(heard.tasks[3]->status_message, "timed out"));
    ck_assert_int_ge(heard.tasks[3]->ended_ms, decide_by_ms);
    ck_assert_int_eq(store_pending_count(bench.store), 0);
    heard_finish(&heard);
}
END_TEST

START_TEST(deadlines_hold_on_decisions_and_are_kept)
{
    /* The sweep is asleep as far as this task is concerned: it is put back in time behind its
     * back, while the store is closed. */
    struct task *task = create_task(&bench, new_task("anonymous"));
    bench_close(&bench);
    ck_assert_int_eq(scratch_execute(&scratch, "UPDATE task SET decide_by_ms = created_ms + 1,"
                                               " deadline_ms = 9000000000000"),
                     SQLITE_OK);
    bench_open(&bench, &scratch);
    struct answer answer = {0};
    store_task_change(bench.store, str_from(task->id), &approve, &alice,
                      bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_CONFLICT);
    ck_assert_int_eq(answer.task->state, TASK_EXPIRED);
    answer_finish(&answer);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT state FROM task"), TASK_EXPIRED);
    audit_of(&bench, task->id, &answer);
    ck_assert_str_eq(answer.audit_text,
                     "create >pending client anonymous \n"
                     "expire pending>expired gateway taskgate Approval timed out after 1 ms\n");
    answer_finish(&answer);
    task_unref(task);
}
END_TEST

START_TEST(deadlines_hold_on_reads_and_lists)
{
    struct task *task = create_task(&bench, new_task("anonymous"));
    bench_close(&bench);
    scratch_execute(&scratch, "UPDATE task SET decide_by_ms = 1, deadline_ms = 9000000000000");
    bench_open(&bench, &scratch);
    struct task *read = get_task(&bench, task->id);
    ck_assert_int_eq(read->state, TASK_EXPIRED);
    task_unref(read);
    task_unref(task);

    /* Passed while the store was closed. */
    task = new_task("anonymous");
    task->decide_by_ms = clock_now_ms() + 5000;
    task_unref(create_task(&bench, task));
    bench_close(&bench);
    scratch_execute(&scratch, "UPDATE task SET decide_by_ms = 1, deadline_ms = 1 WHERE state = 0");
    bench_open(&bench, &scratch);
    ck_assert_uint_eq(count_listed((struct store_task_query){.states = 1u << TASK_PENDING}), 0);
    ck_assert_uint_eq(count_listed((struct store_task_query){.states = 1u << TASK_EXPIRED}), 2);
}
END_TEST

START_TEST(what_is_past_its_retention_goes_and_its_audit_stays)
{
    struct task *old = create_task(&bench, new_task("anonymous"));
    struct task *young = create_task(&bench, new_task("anonymous"));
    task_unref(move_task(&bench, old->id, &cancel));
    task_unref(move_task(&bench, young->id, &cancel));
    char sql[128];
    snprintf(sql, sizeof sql, "UPDATE task SET purge_ms = 1 WHERE id = '%s'", old->id);
    bench_close(&bench);
    ck_assert_int_eq(scratch_execute(&scratch, sql), SQLITE_OK);
    bench_open(&bench, &scratch);
    /* The first sweep is the store's first act. */
    struct answer answer = {0};
    store_task_get(bench.store, str_from(old->id), bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_NOT_FOUND);
    answer_finish(&answer);
    task_unref(get_task(&bench, young->id));
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM task_request"), 1);
    audit_of(&bench, old->id, &answer);
    ck_assert_str_eq(answer.audit_text, "create >pending client anonymous \n"
                                        "cancel pending>cancelled operator alice \n");
    answer_finish(&answer);
    task_unref(old);
    task_unref(young);
}
END_TEST

/* ---- after a crash ---- */

START_TEST(executions_of_a_dead_process_end_unknown)
{
    struct task *running = create_task(&bench, new_task("anonymous"));
    struct task *waiting = create_task(&bench, new_task("anonymous"));
    struct task *approved = create_task(&bench, new_task("anonymous"));
    task_unref(move_task(&bench, running->id, &approve));
    task_unref(move_task(&bench, running->id, &execute));
    task_unref(move_task(&bench, approved->id, &approve));
    reopen();
    struct task *read = get_task(&bench, running->id);
    ck_assert_int_eq(read->state, TASK_FAILED);
    ck_assert_int_eq(read->failure, TASK_FAILURE_OUTCOME_UNKNOWN);
    ck_assert_ptr_nonnull(strstr(read->status_message, "outcome unknown"));
    ck_assert_int_gt(read->ended_ms, 0);
    task_unref(read);
    struct answer answer = {0};
    audit_of(&bench, running->id, &answer);
    ck_assert_ptr_nonnull(
        strstr(answer.audit_text, "fail executing>failed gateway taskgate The gateway stopped"));
    answer_finish(&answer);
    read = get_task(&bench, waiting->id);
    ck_assert_int_eq(read->state, TASK_PENDING);
    task_unref(read);
    read = get_task(&bench, approved->id);
    ck_assert_int_eq(read->state, TASK_APPROVED);
    task_unref(read);
    ck_assert_int_eq(change_status(&bench, waiting->id, &approve), STORE_OK);
    task_unref(running);
    task_unref(waiting);
    task_unref(approved);
}
END_TEST

START_TEST(a_damaged_row_is_left_alone_and_blocks_nobody)
{
    struct task *damaged = create_task(&bench, new_task("anonymous"));
    struct task *whole = create_task(&bench, new_task("anonymous"));
    char sql[160];
    bench_close(&bench);
    snprintf(sql, sizeof sql, "UPDATE task SET ttl_ms = 0, deadline_ms = 1 WHERE id = '%s'",
             damaged->id);
    ck_assert_int_eq(scratch_execute(&scratch, sql), SQLITE_OK);
    snprintf(sql, sizeof sql, "UPDATE task SET decide_by_ms = 2, deadline_ms = 2 WHERE id = '%s'",
             whole->id);
    ck_assert_int_eq(scratch_execute(&scratch, sql), SQLITE_OK);
    bench_open(&bench, &scratch);
    ck_assert_int_eq(change_status(&bench, damaged->id, &approve), STORE_NOT_FOUND);
    struct task *read = get_task(&bench, whole->id);
    ck_assert_int_eq(read->state, TASK_EXPIRED);
    ck_assert(store_is_healthy(bench.store));
    task_unref(read);
    task_unref(damaged);
    task_unref(whole);
}
END_TEST

/* ---- sessions ---- */

static enum store_status session_status(struct answer *answer, const char *source, const char *id)
{
    store_session_get(bench.store, str_from(source), str_from(id), bench_call(bench.loop, answer));
    bench_wait(bench.loop, answer);
    return answer->status;
}

static void put_session(const char *version, int64_t seen_ms)
{
    struct store_session session = {
        (char *)"files",          (char *)"5e55", (char *)version, (char *)"sdk", (char *)"1.2",
        (char *)"{\"tasks\":{}}", true,           false,           seen_ms};
    struct answer answer = {0};
    store_session_put(bench.store, &session, bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_OK);
    answer_finish(&answer);
}

static enum store_status pair_status(const char *session, const char *token)
{
    struct answer answer = {0};
    store_pair_get(bench.store, STR("files"), str_from(session), str_from(token),
                   bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    enum store_status status = answer.status;
    answer_finish(&answer);
    return status;
}

static void put_pair(const char *session, const char *token, int64_t at_ms)
{
    struct answer answer = {0};
    store_pair_put(bench.store, STR("files"), str_from(session), str_from(token), at_ms,
                   bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_OK);
    answer_finish(&answer);
}

START_TEST(sessions_survive_are_replaced_and_end)
{
    int64_t now_ms = clock_now_ms();
    struct answer answer = {0};
    put_session("2025-06-18", now_ms);
    put_session("2025-11-25", now_ms);
    reopen();
    ck_assert_int_eq(session_status(&answer, "files", "5e55"), STORE_OK);
    char expected[128];
    snprintf(expected, sizeof expected, "files|5e55|2025-11-25|sdk|1.2|{\"tasks\":{}}|1|0|%lld",
             (long long)now_ms);
    ck_assert_str_eq(answer.session_text, expected);
    answer_finish(&answer);
    ck_assert_int_eq(session_status(&answer, "other", "5e55"), STORE_NOT_FOUND);
    answer_finish(&answer);

    put_pair("5e55", "70ce", now_ms);
    store_session_delete(bench.store, STR("files"), STR("5e55"), bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_OK);
    answer_finish(&answer);
    ck_assert_int_eq(session_status(&answer, "files", "5e55"), STORE_NOT_FOUND);
    answer_finish(&answer);
    ck_assert_int_eq(pair_status("5e55", "70ce"), STORE_NOT_FOUND);
}
END_TEST

START_TEST(pairs_are_of_both_digests)
{
    int64_t now_ms = clock_now_ms();
    put_pair("5e55", "70ce", now_ms);
    put_pair("5e55", "70ce", now_ms - 5); /* late news do not turn the clock back */
    reopen();
    ck_assert_int_eq(pair_status("5e55", "70ce"), STORE_OK);
    ck_assert_int_eq(pair_status("5e55", "0000"), STORE_NOT_FOUND);
    ck_assert_int_eq(pair_status("0000", "70ce"), STORE_NOT_FOUND);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT accepted_ms FROM pair"), now_ms);
}
END_TEST

START_TEST(sessions_that_nobody_uses_are_forgotten)
{
    struct answer answer = {0};
    put_session("2025-11-25", 1000);
    put_pair("5e55", "70ce", 1000);
    reopen();
    ck_assert_int_eq(session_status(&answer, "files", "5e55"), STORE_NOT_FOUND);
    answer_finish(&answer);
    ck_assert_int_eq(pair_status("5e55", "70ce"), STORE_NOT_FOUND);

    put_session("2025-11-25", 1000); /* old, but its token was accepted lately */
    put_pair("5e55", "70ce", clock_now_ms());
    reopen();
    ck_assert_int_eq(session_status(&answer, "files", "5e55"), STORE_OK);
    answer_finish(&answer);
}
END_TEST

START_TEST(the_end_of_a_session_cancels_what_it_owns)
{
    create_of("session:5e55", "5e55", "files", "t");
    create_of("session:5e55", "5e55", "other", "t");
    create_of("auth:70ce", "5e55", "files", "t");
    struct task *approved = new_accelerated("session:5e55");
    approved = create_task(&bench, approved);
    struct task *running = create_task(&bench, new_task("session:5e55"));
    task_unref(move_task(&bench, running->id, &approve));
    task_unref(move_task(&bench, running->id, &execute));
    struct answer answer = {0};
    store_task_cancel_session(bench.store, STR("files"), STR("5e55"),
                              bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_OK);
    answer_finish(&answer);
    ck_assert_uint_eq(count_listed((struct store_task_query){.states = 1u << TASK_CANCELLED}), 2);
    ck_assert_uint_eq(count_listed((struct store_task_query){.states = 1u << TASK_EXECUTING}), 1);
    ck_assert_uint_eq(count_listed((struct store_task_query){.owner = STR("auth:70ce"),
                                                             .states = 1u << TASK_PENDING}),
                      1);
    ck_assert_uint_eq(count_listed((struct store_task_query){.source = STR("other"),
                                                             .states = 1u << TASK_PENDING}),
                      1);
    audit_of(&bench, approved->id, &answer);
    ck_assert_ptr_nonnull(
        strstr(answer.audit_text, "cancel approved>cancelled client session:5e55"));
    answer_finish(&answer);
    task_unref(approved);
    task_unref(running);
}
END_TEST

/* ---- audit ---- */

START_TEST(every_move_leaves_an_entry)
{
    struct task *task = create_task(&bench, new_task("auth:ab"));
    task_unref(
        move_task(&bench, task->id,
                  &(struct task_change){.to = TASK_APPROVED, .by = "alice", .reason = "ok"}));
    task_unref(move_task(&bench, task->id, &execute));
    task_unref(move_task(&bench, task->id, &give_back));
    task_unref(move_task(&bench, task->id, &execute));
    change_status(&bench, task->id, &approve); /* an operator cannot have it run again */
    task_unref(move_task(&bench, task->id,
                         &(struct task_change){.to = TASK_COMPLETED,
                                               .outcome = TASK_OUTCOME_RESULT,
                                               .outcome_text = STR("{}")}));
    change_status(&bench, task->id, &cancel); /* refused: no entry */
    struct answer answer = {0};
    audit_of(&bench, task->id, &answer);
    ck_assert_str_eq(answer.audit_text, "create >pending client auth:ab \n"
                                        "approve pending>approved operator alice ok\n"
                                        "execute approved>executing operator alice \n"
                                        "give_back executing>approved operator alice \n"
                                        "execute approved>executing operator alice \n"
                                        "complete executing>completed operator alice \n");
    answer_finish(&answer);
    audit_of(&bench, "tg_none", &answer);
    ck_assert_str_eq(answer.audit_text, "");
    answer_finish(&answer);
    task_unref(task);
}
END_TEST

START_TEST(the_audit_trail_cannot_be_changed)
{
    task_unref(create_task(&bench, new_task("auth:ab")));
    static const char *const attempts[] = {
        "UPDATE audit SET reason = 'x'",
        "DELETE FROM audit",
        "INSERT OR REPLACE INTO audit SELECT sequence, at_ms, task_id, 'x', from_state, to_state,"
        " actor_kind, actor_name, reason FROM audit",
    };
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++)
        ck_assert_int_eq(scratch_execute(&scratch, attempts[i]), SQLITE_CONSTRAINT);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM audit WHERE event = 'create'"),
                     1);
}
END_TEST

/* ---- observers ---- */

START_TEST(observers_hear_every_change_in_order)
{
    struct heard heard = {0};
    store_observe(bench.store, bench.loop, hear, &heard);
    struct task *task = create_task(&bench, new_task("anonymous"));
    task_unref(move_task(&bench, task->id, &approve));
    change_status(&bench, task->id, &approve); /* refused: nothing to hear */
    task_unref(get_task(&bench, task->id));
    task_unref(move_task(&bench, task->id, &execute));
    bench_wait_count(bench.loop, &heard.count, 3);
    static const enum task_state states[] = {TASK_PENDING, TASK_APPROVED, TASK_EXECUTING};
    ck_assert_uint_eq(heard.count, 3);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_str_eq(heard.tasks[i]->id, task->id);
        ck_assert_int_eq(heard.tasks[i]->state, states[i]);
        ck_assert_int_eq(heard.created[i], i == 0);
    }
    heard_finish(&heard);
    task_unref(task);
}
END_TEST

/* A reader that then waits must not miss the change that comes next: answers and notices share
 * one order. */
struct order {
    struct heard heard;
    size_t heard_before[3];
    size_t answers;
};

static void note_order(void *context, const struct store_reply *reply)
{
    struct order *order = context;
    ck_assert_int_eq(reply->status, STORE_OK);
    order->heard_before[order->answers++] = order->heard.count;
}

START_TEST(answers_and_notices_share_one_order)
{
    struct order order = {0};
    struct task *task = create_task(&bench, new_task("anonymous"));
    store_observe(bench.store, bench.loop, hear, &order.heard);
    struct store_call call = {bench.loop, note_order, &order};
    store_task_get(bench.store, str_from(task->id), call);
    store_task_change(bench.store, str_from(task->id), &approve, &alice, call);
    store_task_get(bench.store, str_from(task->id), call);
    bench_wait_count(bench.loop, &order.answers, 3);
    ck_assert_uint_eq(order.heard_before[0], 0);
    ck_assert_uint_eq(order.heard_before[1], 1);
    ck_assert_uint_eq(order.heard_before[2], 1);
    heard_finish(&order.heard);
    task_unref(task);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store");
    TCase *tests = tcase_create("store");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, every_field_survives_a_restart);
    tcase_add_test(tests, unknown_ids_are_not_found);
    tcase_add_test(tests, big_bodies_with_nul_come_back_byte_for_byte);
    tcase_add_test(tests, changes_are_compare_and_set);
    tcase_add_test(tests, incomplete_changes_and_tasks_are_refused);
    tcase_add_test(tests, a_duplicate_id_fails_alone);
    tcase_add_test(tests, upstream_ids_belong_to_executions);
    tcase_add_test(tests, calls_that_nobody_waits_for_are_carried_out);
    tcase_add_test(tests, limits_count_the_undecided);
    tcase_add_test(tests, pages_are_complete_newest_first_and_end);
    tcase_add_test(tests, conditions_combine);
    tcase_add_test(tests, deadlines_are_swept_when_they_come);
    tcase_add_test(tests, deadlines_hold_on_decisions_and_are_kept);
    tcase_add_test(tests, deadlines_hold_on_reads_and_lists);
    tcase_add_test(tests, what_is_past_its_retention_goes_and_its_audit_stays);
    tcase_add_test(tests, executions_of_a_dead_process_end_unknown);
    tcase_add_test(tests, a_damaged_row_is_left_alone_and_blocks_nobody);
    tcase_add_test(tests, sessions_survive_are_replaced_and_end);
    tcase_add_test(tests, pairs_are_of_both_digests);
    tcase_add_test(tests, sessions_that_nobody_uses_are_forgotten);
    tcase_add_test(tests, the_end_of_a_session_cancels_what_it_owns);
    tcase_add_test(tests, every_move_leaves_an_entry);
    tcase_add_test(tests, the_audit_trail_cannot_be_changed);
    tcase_add_test(tests, observers_hear_every_change_in_order);
    tcase_add_test(tests, answers_and_notices_share_one_order);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
