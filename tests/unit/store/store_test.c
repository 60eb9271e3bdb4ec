/* The store as one caller sees it: create, read, change, limits, observers. */
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
    task_set_text(&task->client_name, STR("inspector"));
    task_set_text(&task->client_version, STR("0.9"));
    task_set_text(&task->workflow, STR("dba"));
    task_set_text(&task->action, STR("approve"));
    task_set_text(&task->progress_token, STR("\"p\""));
    task_set_text(&task->status_message, STR("Awaiting approval"));
    memset(task->arguments_digest, 'a', 64);
    memset(task->definition_digest, 'd', 64);
    memset(task->request_digest, 'e', 64);
    memset(task->headers_digest, 'f', 64);
    memset(task->owner_email, '9', 64);
    task_set_text(&task->maker, STR("[\"token:t\"]"));
    memset(task->rule_digest, '7', 64);
    memset(task->bound_digest, '8', 64);
    task_set_text(&task->meta, STR("{\"tenant\":1}"));
    task_set_text(&task->other_params, STR("{\"force\":true}"));
    task_set_text(&task->mirrored_headers, STR("mcp-method:tools/call\nmcp-name:x\n"));
    task_set_text(&task->trace, STR("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 x"));
    task_set_text(&task->shown, STR("{\"risk\":\"high\",\"listed\":true}"));
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
    ck_assert_str_eq(read->client_name, "inspector");
    ck_assert_str_eq(read->client_version, "0.9");
    ck_assert_str_eq(read->tool, "delete_database");
    ck_assert_str_eq(read->workflow, "dba");
    ck_assert_str_eq(read->action, "approve");
    ck_assert_str_eq(read->arguments, "{\"name\":\"prod\"}");
    ck_assert_str_eq(read->request, "{\"jsonrpc\":\"2.0\",\"id\":1}");
    ck_assert_uint_eq(read->request_length, kept->request_length);
    ck_assert_str_eq(read->arguments_digest, kept->arguments_digest);
    ck_assert_str_eq(read->definition_digest, kept->definition_digest);
    ck_assert_str_eq(read->request_digest, kept->request_digest);
    ck_assert_str_eq(read->headers_digest, kept->headers_digest);
    ck_assert_str_eq(read->owner_email, kept->owner_email);
    ck_assert_str_eq(read->maker, kept->maker);
    ck_assert_str_eq(read->rule_digest, kept->rule_digest);
    ck_assert_str_eq(read->bound_digest, kept->bound_digest);
    ck_assert_str_eq(read->meta, "{\"tenant\":1}");
    ck_assert_str_eq(read->other_params, "{\"force\":true}");
    ck_assert_str_eq(read->mirrored_headers, "mcp-method:tools/call\nmcp-name:x\n");
    ck_assert_str_eq(read->trace, kept->trace);
    ck_assert_str_eq(read->shown, "{\"risk\":\"high\",\"listed\":true}");
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

START_TEST(refused_credentials_are_kept_and_each_try_is_in_the_trail)
{
    const struct task_change begin[] = {{.to = TASK_EXECUTING, .credentials = "aa"},
                                        {.to = TASK_EXECUTING, .credentials = "bb"}};
    const struct task_change refused[] = {{.to = TASK_APPROVED, .credentials = "aa"},
                                          {.to = TASK_APPROVED, .credentials = "bb", .claim = 1},
                                          {.to = TASK_APPROVED, .claim = 2}};
    struct task *task = create_task(&bench, new_task("a"));
    task_unref(move_task(&bench, task->id, &approve));
    for (size_t i = 0; i < 2; i++) {
        task_unref(move_task(&bench, task->id, &begin[i]));
        task_unref(move_task(&bench, task->id, &refused[i]));
        reopen();
        for (size_t earlier = 0; earlier <= i; earlier++)
            ck_assert_int_eq(change_status(&bench, task->id, &begin[earlier]), STORE_CONFLICT);
    }
    task_unref(move_task(&bench, task->id, &execute));
    ck_assert_int_eq(change_status(&bench, task->id, &refused[2]), STORE_CONFLICT);
    struct task *read = get_task(&bench, task->id);
    ck_assert_str_eq(read->refused_credentials, "aa bb");
    struct answer answer = {0};
    audit_of(&bench, task->id, &answer);
    ck_assert_ptr_nonnull(strstr(answer.audit_text,
                                 "execute approved>executing operator alice \n"
                                 "give_back executing>approved operator alice \n"
                                 "execute approved>executing operator alice \n"
                                 "give_back executing>approved operator alice \n"
                                 "execute approved>executing operator alice \n"));
    answer_finish(&answer);
    task_unref(read);
    task_unref(task);
}
END_TEST

START_TEST(only_an_approved_task_says_why_it_does_not_run)
{
    struct answer answer = {0};
    struct task *task = create_task(&bench, new_task("a"));
    store_task_set_message(bench.store, str_from(task->id), STR("no"),
                           bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_CONFLICT);
    answer_finish(&answer);
    task_unref(move_task(&bench, task->id, &approve));
    store_task_set_message(bench.store, str_from(task->id), STR("no"),
                           bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_OK);
    answer_finish(&answer);
    reopen();
    struct task *read = get_task(&bench, task->id);
    ck_assert_str_eq(read->status_message, "no");
    task_unref(read);
    task_unref(task);
}
END_TEST

static enum store_status note_status(const char *id)
{
    struct answer answer = {0};
    store_task_note(bench.store, str_from(id), "confirmed",
                    &(struct store_actor){"client", "auth:1"}, STR("by a form"),
                    bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    enum store_status status = answer.status;
    answer_finish(&answer);
    return status;
}

START_TEST(a_note_without_a_move_is_taken_once_until_the_task_runs)
{
    struct answer answer = {0};
    struct task *task = create_task(&bench, new_task("a"));
    ck_assert_int_eq(note_status("tg_none"), STORE_NOT_FOUND);
    ck_assert_int_eq(note_status(task->id), STORE_OK);
    task_unref(move_task(&bench, task->id, &approve));
    ck_assert_int_eq(note_status(task->id), STORE_OK);
    task_unref(move_task(&bench, task->id, &execute));
    ck_assert_int_eq(note_status(task->id), STORE_CONFLICT);
    reopen();
    audit_of(&bench, task->id, &answer);
    const char *noted =
        strstr(answer.audit_text, "confirmed pending>pending client auth:1 by a form\n");
    ck_assert_ptr_nonnull(noted);
    ck_assert_ptr_null(strstr(noted + 1, "confirmed"));
    answer_finish(&answer);
    task_unref(task);
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
    struct task *begun = move_task(&bench, task->id, &execute);
    ck_assert_uint_eq(begun->request_length, request_length);
    ck_assert_int_eq(memcmp(begun->request, request, request_length), 0);
    task_unref(begun);
    task_unref(move_task(&bench, task->id,
                         &(struct task_change){.to = TASK_COMPLETED,
                                               .outcome = TASK_OUTCOME_RESULT,
                                               .outcome_text = str_slice(result, result_length)}));
    reopen();
    struct task *read = get_task(&bench, task->id);
    ck_assert_int_eq(read->state, TASK_COMPLETED);
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
    const struct store_limits limits = {2, 3, INT64_MAX, INT64_MAX};
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
    /* Given back: over the limit, but no other task may take its place. */
    ck_assert_int_eq(change_status(&bench, a->id, &give_back), STORE_OK);
    ck_assert_int_eq(change_status(&bench, a->id, &cancel), STORE_OK);
    ck_assert_int_eq(create_status(&bench, new_task("a"), &limits), STORE_LIMIT_PRINCIPAL);
    task_unref(a);
}
END_TEST

START_TEST(accelerated_ones_count_while_they_run)
{
    const struct store_limits limits = {1, 10, INT64_MAX, INT64_MAX};
    struct task *task = create_task(&bench, new_accelerated("a"));
    task_unref(move_task(&bench, task->id, &execute));
    ck_assert_int_eq(create_status(&bench, new_accelerated("a"), &limits), STORE_LIMIT_PRINCIPAL);
    task_unref(move_task(&bench, task->id, &cancel));
    ck_assert_int_eq(create_status(&bench, new_accelerated("a"), &limits), STORE_OK);
    task_unref(task);
}
END_TEST

static struct task *new_bulky(size_t bytes)
{
    struct task *task = new_task("a");
    char *body = memory_alloc(bytes);
    memset(body, 'x', bytes);
    task_set_request(task, str_slice(body, bytes));
    free(body);
    return task;
}

START_TEST(limits_count_the_bytes_of_the_undecided)
{
    enum { BYTES = 1000 };
    const struct store_limits limits = {100, 100, INT64_MAX, 2 * BYTES};
    struct task *first = new_bulky(BYTES);
    task_ref(first);
    ck_assert_int_eq(create_status(&bench, first, &limits), STORE_OK);
    ck_assert_int_eq(create_status(&bench, new_bulky(BYTES + 1), &limits),
                     STORE_LIMIT_PRINCIPAL_BYTES);
    ck_assert_int_eq(create_status(&bench, new_bulky(BYTES), &limits), STORE_OK);
    ck_assert_int_eq(create_status(&bench, new_bulky(1), &limits), STORE_LIMIT_PRINCIPAL_BYTES);
    reopen();
    ck_assert_int_eq(create_status(&bench, new_bulky(1), &limits), STORE_LIMIT_PRINCIPAL_BYTES);
    ck_assert_int_eq(create_status(&bench, new_task("b"), &limits), STORE_OK);

    ck_assert_int_eq(change_status(&bench, first->id, &approve), STORE_OK);
    ck_assert_int_eq(create_status(&bench, new_bulky(1), &limits), STORE_LIMIT_PRINCIPAL_BYTES);
    ck_assert_int_eq(change_status(&bench, first->id, &execute), STORE_OK);
    ck_assert_int_eq(create_status(&bench, new_bulky(BYTES), &limits), STORE_OK);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT bytes FROM limited WHERE owner = 'a'"),
                     2 * BYTES);
    task_unref(first);
}
END_TEST

START_TEST(the_request_goes_at_the_end_and_its_room_is_used_again)
{
    enum { BYTES = 1 << 20, ROUNDS = 10 };
    const struct store_limits limits = {100, 100, 3 * (int64_t)BYTES, INT64_MAX};
    char ids[2][TASK_ID_BYTES];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 2; i++) {
            struct task *task = new_bulky(BYTES);
            memcpy(ids[i], task->id, sizeof ids[i]);
            ck_assert_int_eq(create_status(&bench, task, &limits), STORE_OK);
        }
        ck_assert_int_eq(create_status(&bench, new_bulky(BYTES), &limits), STORE_LIMIT_BYTES);
        ck_assert_int_eq(create_status(&bench, new_task("a"), &limits), STORE_OK);
        for (int i = 0; i < 2; i++) {
            struct task *ended = move_task(&bench, ids[i], &cancel);
            ck_assert_uint_eq(ended->request_length, 0);
            ck_assert_str_eq(ended->arguments, "{\"name\":\"prod\"}");
            task_unref(ended);
        }
    }
    ck_assert_int_eq(scratch_query(&scratch,
                                   "SELECT sum(length(task_request.body)) FROM task_request"
                                   " JOIN task ON sequence = task WHERE ended_ms > 0"),
                     0);
    if (scratch_is_postgres())
        return;
    ck_assert_int_lt(scratch_query(&scratch, "PRAGMA page_count") *
                         scratch_query(&scratch, "PRAGMA page_size"),
                     3 * (int64_t)BYTES);
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
    tcase_add_test(tests, refused_credentials_are_kept_and_each_try_is_in_the_trail);
    tcase_add_test(tests, only_an_approved_task_says_why_it_does_not_run);
    tcase_add_test(tests, a_note_without_a_move_is_taken_once_until_the_task_runs);
    tcase_add_test(tests, unknown_ids_are_not_found);
    tcase_add_test(tests, big_bodies_with_nul_come_back_byte_for_byte);
    tcase_add_test(tests, changes_are_compare_and_set);
    tcase_add_test(tests, incomplete_changes_and_tasks_are_refused);
    tcase_add_test(tests, a_duplicate_id_fails_alone);
    tcase_add_test(tests, upstream_ids_belong_to_executions);
    tcase_add_test(tests, calls_that_nobody_waits_for_are_carried_out);
    tcase_add_test(tests, limits_count_the_undecided);
    tcase_add_test(tests, accelerated_ones_count_while_they_run);
    tcase_add_test(tests, limits_count_the_bytes_of_the_undecided);
    tcase_add_test(tests, the_request_goes_at_the_end_and_its_room_is_used_again);
    tcase_add_test(tests, observers_hear_every_change_in_order);
    tcase_add_test(tests, answers_and_notices_share_one_order);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
