/* The life of an input on the loop that took it: made, closed, perhaps open again, and freed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call/client_profile.h"
#include "input_internal.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

/* The time that a closed input is remembered, so that a late answer learns that it is late. */
#define CLOSED_KEPT_MS 60000
/* An input that is open again stays so for at least this long. */
#define REOPENED_LEAST_MS 1000

static void on_time(void *context);

/* ---- making ---- */

/* The server may ask the client to run the request as a task, but cannot poll such a task through
 * the gateway. So the client is asked for the answer itself, which the protocol allows as well. */
static char *copy_without_task(struct str message)
{
    struct str params = json_member(message, "params");
    struct buffer plain = {0}, whole = {0};
    if (json_member(params, "task").length == 0)
        return memory_copy_str(message);
    json_write_without_member(&plain, params, "task");
    json_write_with_member(&whole, message, "params", buffer_str(&plain));
    buffer_finish(&plain);
    return buffer_take(&whole, NULL);
}

struct kept_input *kept_input_create(const struct input_origin *origin, enum input_kind kind,
                                     struct str message)
{
    struct kept_input *kept = memory_alloc(sizeof *kept);
    MAGIC_SET(kept, KEPT_INPUT_MAGIC);
    struct input_request *input = &kept->input;
    const char *owner = origin->audience->owner;
    if (!*owner && origin->task) /* there is no client */
        owner = origin->task->owner;
    kept->worker = origin->worker;
    kept->snapshot = snapshot_ref(origin->snapshot);
    kept->source = origin->source;
    kept->task = origin->task ? task_ref(origin->task) : NULL;
    snprintf(kept->owner, sizeof kept->owner, "%s", owner);
    kept->take_answer = origin->take_answer;
    headers_init(&kept->headers, true);
    if (origin->headers)
        headers_add_all(&kept->headers, origin->headers);
    loop_timer_init(&kept->timer, origin->worker->loop, on_time, kept);
    list_init(&input->node);
    random_ulid(input->id);
    input->owner = kept;
    input->kind = kind;
    if (origin->task)
        client_key_or_id_of_task(origin->task, input->key);
    else
        memcpy(input->key, origin->audience->key, sizeof input->key);
    snprintf(input->session, sizeof input->session, "%s", origin->session);
    input->source = memory_copy_text(origin->source->id);
    input->task = memory_copy_text(origin->task ? origin->task->id : "");
    input->upstream_id = memory_copy_str(json_member(message, "id"));
    input->message = copy_without_task(message);
    input->call = origin->call;
    input->is_on_stream = origin->is_on_stream;
    input->ends_with_session = origin->is_on_stream || owner_is_session(owner);
    input->asked_ms = clock_now_ms();
    return kept;
}

/* ---- freeing ---- */

void kept_input_destroy(struct kept_input *kept)
{
    loop_timer_stop(&kept->timer);
    headers_finish(&kept->headers);
    snapshot_unref(kept->snapshot);
    task_unref(kept->task);
    free(kept->input.source);
    free(kept->input.task);
    free(kept->input.upstream_id);
    free(kept->input.message);
    MAGIC_CLEAR(kept);
    free(kept);
}

static void forget(struct kept_input *kept)
{
    input_table_remove(kept->worker->gateway->inputs, &kept->input);
    kept_input_destroy(kept);
}

static bool is_of_worker(const void *worker, const struct input_request *input)
{
    const struct kept_input *kept = input->owner;
    return kept->worker == worker;
}

void input_drop(struct gateway_worker *worker)
{
    struct input_request *input;
    while ((input = input_table_take(worker->gateway->inputs, is_of_worker, worker)))
        kept_input_destroy(input->owner);
}

/* ---- closing ---- */

struct kept_input *input_close(struct gateway *gateway, struct str key,
                               const struct input_match *match, struct input_closing *closing)
{
    closing->now_ms = clock_now_ms();
    struct input_request *input = input_table_close(gateway->inputs, key, match, closing);
    return input ? input->owner : NULL;
}

/* On its own loop. A client that has seen the request, in a task or on a stream, may answer
 * late. */
static void on_settled(void *context)
{
    struct kept_input *kept = kept_input_from(context);
    kept->is_settled = true;
    input_note_change(kept);
    if (kept->task || kept->input.claimant != 0)
        loop_timer_start(&kept->timer, CLOSED_KEPT_MS);
    else
        forget(kept);
}

void input_settle(struct gateway_worker *worker, struct kept_input *kept)
{
    log_info("A question of upstream's is closed", LOG_TEXT("source", kept->input.source),
             LOG_TEXT("question", kept->input.id),
             LOG_TEXT("outcome", input_end_name(kept->input.state)));
    input_withdraw(worker, kept);
    if (kept->input.state != INPUT_REJECTED)
        input_announce_change(worker->gateway, kept);
    loop_post(kept->worker->loop, on_settled, kept);
}

/* On its own loop. The wait for an answer continues. */
static void on_reopened(void *context)
{
    struct kept_input *kept = kept_input_from(context);
    int64_t timeout_ms = kept->snapshot->config->pseudo.elicitation_timeout_ms;
    int64_t left_ms = kept->input.asked_ms + timeout_ms - clock_now_ms();
    loop_timer_start(&kept->timer, left_ms > REOPENED_LEAST_MS ? left_ms : REOPENED_LEAST_MS);
    input_announce_change(kept->worker->gateway, kept);
}

bool input_reopen(struct gateway_worker *worker, struct kept_input *kept)
{
    /* Posted first: after the reopening another thread may close it, and its loop free it. */
    loop_post(kept->worker->loop, on_reopened, kept);
    if (input_table_reopen(worker->gateway->inputs, &kept->input))
        return true;
    input_settle(worker, kept);
    return false;
}

/* ---- its clock ---- */

static void expire(struct kept_input *kept)
{
    struct input_closing closing = {.state = INPUT_EXPIRED};
    const struct input_match self = {.id = str_from(kept->input.id)};
    struct str key = str_from(kept->input.key);
    int64_t timeout_ms = kept->snapshot->config->pseudo.elicitation_timeout_ms;
    if (input_close(kept->worker->gateway, key, &self, &closing) != kept)
        return; /* another thread has closed it, and settles it */
    struct buffer text;
    static const char *const names[INPUT_KIND_COUNT] = {"Elicitation", "Sampling", "Roots"};
    buffer_init(&text);
    buffer_append_format(&text, "%s request timed out after %lldms", names[kept->input.kind],
                         (long long)timeout_ms);
    input_respond(
        kept->worker, kept,
        &(struct input_response){.error_code = -32001, .error_message = buffer_str(&text)});
    buffer_finish(&text);
    input_announce_expiry(kept);
    input_settle(kept->worker, kept);
}

static void on_time(void *context)
{
    struct kept_input *kept = kept_input_from(context);
    if (kept->is_settled)
        forget(kept);
    else
        expire(kept);
}
