/* Loops, replies, tasks. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"

struct database *with_backend(struct database *database, const struct store_backend *backend)
{
    if (database)
        *(const struct store_backend **)(void *)database = backend;
    return database;
}

#define PATIENCE_MS 20000

const struct store_limits no_limits = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
const struct store_actor alice = {"operator", "alice"};

static char *join_session(const struct store_session *session)
{
    return memory_format("%s|%s|%s|%s|%s|%s|%d|%d|%lld", session->source, session->id_digest,
                         session->version, session->client_name, session->client_version,
                         session->client_capabilities, session->upstream_tasks,
                         session->upstream_sse, (long long)session->seen_ms);
}

static char *join_audit(const struct store_reply *reply)
{
    struct buffer text;
    buffer_init(&text);
    for (size_t i = 0; i < reply->audit_count; i++) {
        const struct store_audit_entry *entry = &reply->audit[i];
        buffer_append_format(&text, "%s %s>%s %s %s %s\n", entry->event, entry->from_state,
                             entry->to_state, entry->actor_kind, entry->actor_name, entry->reason);
    }
    buffer_append_char(&text, '\0');
    return buffer_take(&text, NULL);
}

static void keep_answer(void *context, const struct store_reply *reply)
{
    struct answer *answer = context;
    ck_assert(!answer->arrived);
    ck_assert_uint_le(reply->task_count, 64);
    answer->arrived = true;
    answer->status = reply->status;
    answer->is_unsure = reply->is_unsure;
    answer->refusal = reply->refusal;
    answer->task = reply->task ? task_ref(reply->task) : NULL;
    answer->task_count = reply->task_count;
    answer->has_more = reply->has_more;
    answer->waiting = reply->waiting;
    answer->has_promised = reply->has_promised;
    for (size_t i = 0; i < reply->task_count; i++) {
        answer->tasks[i] = task_ref(reply->tasks[i]);
        answer->sequences[i] = reply->sequences[i];
    }
    answer->last_sequence = reply->last_sequence;
    answer->last_decide_by_ms = reply->last_decide_by_ms;
    if (reply->session)
        answer->session_text = join_session(reply->session);
    answer->audit_text = join_audit(reply);
}

void answer_finish(struct answer *answer)
{
    task_unref(answer->task);
    for (size_t i = 0; i < answer->task_count; i++)
        task_unref(answer->tasks[i]);
    free(answer->session_text);
    free(answer->audit_text);
    *answer = (struct answer){0};
}

void bench_open(struct bench *bench, struct scratch *scratch)
{
    struct error error = {""};
    bench->scratch = scratch;
    bench->loop = loop_create(&error);
    ck_assert_msg(bench->loop != NULL, "%s", error.message);
    bench->store = store_open(scratch->backend, scratch->place, NULL, scratch->redaction, &error);
    ck_assert_msg(bench->store != NULL, "%s", error.message);
}

void bench_close(struct bench *bench)
{
    store_close(bench->store);
    loop_destroy(bench->loop);
}

struct store_call bench_call(struct loop *loop, struct answer *answer)
{
    return (struct store_call){loop, keep_answer, answer};
}

void bench_wait(struct loop *loop, const struct answer *answer)
{
    int64_t give_up_ms = clock_monotonic_ms() + PATIENCE_MS;
    while (!answer->arrived) {
        ck_assert_msg(clock_monotonic_ms() < give_up_ms, "no answer came");
        loop_run_once(loop, 100);
    }
}

void bench_wait_count(struct loop *loop, const size_t *count, size_t wanted)
{
    int64_t give_up_ms = clock_monotonic_ms() + PATIENCE_MS;
    while (*count < wanted) {
        ck_assert_msg(clock_monotonic_ms() < give_up_ms, "%zu of %zu came", *count, wanted);
        loop_run_once(loop, 100);
    }
}

struct task *new_task(const char *owner)
{
    struct task *task = task_create(TASK_PENDING);
    task_set_text(&task->source, STR("files"));
    task_set_text(&task->owner, str_from(owner));
    task_set_text(&task->tool, STR("delete_database"));
    task_set_text(&task->arguments, STR("{\"name\":\"prod\"}"));
    task_set_request(task, STR("{\"jsonrpc\":\"2.0\",\"id\":1}"));
    task->created_ms = task->updated_ms = clock_now_ms();
    task->ttl_ms = 600000;
    task->decide_by_ms = task->created_ms + 600000;
    return task;
}

struct task *new_accelerated(const char *owner)
{
    struct task *task = new_task(owner);
    task->state = TASK_APPROVED;
    task->accelerated = true;
    task->decide_by_ms = 0;
    task->execute_by_ms = task->created_ms + 300000;
    return task;
}

static struct task *take_task(struct answer *answer)
{
    ck_assert_int_eq(answer->status, STORE_OK);
    ck_assert_ptr_nonnull(answer->task);
    struct task *task = task_ref(answer->task);
    answer_finish(answer);
    return task;
}

struct task *create_task(struct bench *bench, struct task *task)
{
    struct answer answer = {0};
    store_task_create(bench->store, task, &no_limits, bench_call(bench->loop, &answer));
    bench_wait(bench->loop, &answer);
    return take_task(&answer);
}

struct task *get_task(struct bench *bench, const char *id)
{
    struct answer answer = {0};
    store_task_get(bench->store, str_from(id), bench_call(bench->loop, &answer));
    bench_wait(bench->loop, &answer);
    return take_task(&answer);
}

struct task *move_task(struct bench *bench, const char *id, const struct task_change *change)
{
    struct answer answer = {0};
    store_task_change(bench->store, str_from(id), change, &alice, bench_call(bench->loop, &answer));
    bench_wait(bench->loop, &answer);
    return take_task(&answer);
}

static enum store_status take_status(struct bench *bench, struct answer *answer)
{
    bench_wait(bench->loop, answer);
    enum store_status status = answer->status;
    answer_finish(answer);
    return status;
}

enum store_status create_status(struct bench *bench, struct task *task,
                                const struct store_limits *limits)
{
    struct answer answer = {0};
    store_task_create(bench->store, task, limits, bench_call(bench->loop, &answer));
    return take_status(bench, &answer);
}

enum store_status change_status(struct bench *bench, const char *id,
                                const struct task_change *change)
{
    struct answer answer = {0};
    store_task_change(bench->store, str_from(id), change, &alice, bench_call(bench->loop, &answer));
    return take_status(bench, &answer);
}

void cast_vote(struct bench *bench, const char *id, const char *person, struct store_vote vote,
               struct answer *answer)
{
    vote.voter.name = (char *)person;
    vote.voter.is_named = true;
    vote.voter.via = (char *)"token";
    store_task_vote(bench->store, str_from(id), &vote, bench_call(bench->loop, answer));
    bench_wait(bench->loop, answer);
}

void list_tasks(struct bench *bench, const struct store_task_query *query, struct answer *answer)
{
    store_task_list(bench->store, query, bench_call(bench->loop, answer));
    bench_wait(bench->loop, answer);
    ck_assert_int_eq(answer->status, STORE_OK);
}

void audit_of(struct bench *bench, const char *id, struct answer *answer)
{
    store_audit_list(bench->store, str_from(id), bench_call(bench->loop, answer));
    bench_wait(bench->loop, answer);
    ck_assert_int_eq(answer->status, STORE_OK);
}

size_t count_listed(struct bench *bench, struct store_task_query query)
{
    struct answer answer = {0};
    query.limit = 50;
    list_tasks(bench, &query, &answer);
    size_t count = answer.task_count;
    for (size_t i = 1; i < count; i++)
        ck_assert_int_lt(answer.sequences[i], answer.sequences[i - 1]);
    answer_finish(&answer);
    return count;
}

void hear(void *context, struct task *task, bool created)
{
    struct heard *heard = context;
    ck_assert_uint_lt(heard->count, 64);
    heard->tasks[heard->count] = task_ref(task);
    heard->created[heard->count++] = created;
}

void heard_finish(struct heard *heard)
{
    for (size_t i = 0; i < heard->count; i++)
        task_unref(heard->tasks[i]);
}
