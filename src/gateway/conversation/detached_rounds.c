/* A slow call of a legacy client at a modern server: what the server says of it, and asks its
 * client in the task that it has become. */
#include "detach_internal.h"

#include <stdlib.h>

#include "decision/drift_check.h"
#include "invocation_rounds.h"
#include "server/bridge_request.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/random.h"
#include "taskgate/identity/identity.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/legacy_bridge.h"

/* The call as the server got it, as long as it may have to get it again. */
struct detached_rounds {
    struct headers headers;    /* owned */
    struct buffer body;        /* without the answers of a round */
    struct buffer asked;       /* what was required while the task was on its way to the store */
    struct identity *identity; /* of the client, by its verified token; or NULL */
};

void detached_rounds_keep(struct detached_call *detached, const struct call *call)
{
    struct detached_rounds *rounds = detached->rounds = memory_alloc(sizeof *rounds);
    struct buffer id = {0};
    headers_init(&rounds->headers, true);
    bridge_request_write(call, &rounds->headers, &rounds->body, &id);
    rounds->identity = call->identity ? identity_ref(call->identity) : NULL;
    buffer_finish(&id);
}

void detached_rounds_destroy(struct detached_rounds *rounds)
{
    if (!rounds)
        return;
    headers_finish(&rounds->headers);
    buffer_finish(&rounds->body);
    buffer_finish(&rounds->asked);
    identity_unref(rounds->identity);
    free(rounds);
}

/* ---- the server requires input ---- */

void detached_rounds_keep_asked(struct detached_call *detached, struct str requests)
{
    ASSERT(detached->rounds->asked.length == 0);
    buffer_append(&detached->rounds->asked, requests);
}

void detached_rounds_begin(struct detached_call *detached)
{
    OWNED_BUFFER(asked);
    if (!detached->rounds || detached->base.up.state != LINK_ASKED)
        return;
    asked = detached->rounds->asked;
    buffer_init(&detached->rounds->asked);
    invocation_rounds_ask(&detached->base, buffer_str(&asked), true);
}

static void take_question(struct detached_call *detached, struct str requests)
{
    if (conversation_where(&detached->base) == CONVERSATION_RUNNING)
        invocation_rounds_ask(&detached->base, requests, true);
    else /* nobody knows the task yet */
        detached_rounds_keep_asked(detached, requests);
}

/* ---- the client cannot be asked ---- */

static void write_refusal(struct buffer *result)
{
    buffer_append_text(result, "{\"content\":[{\"type\":\"text\",\"text\":\"The server requires "
                               "input, for which the client of a slow call that is no task cannot "
                               "be asked\"}],\"isError\":true}");
}

void detached_rounds_refuse(struct detached_call *detached)
{
    OWNED_BUFFER(result);
    if (detached->base.up.state != LINK_ASKED)
        return;
    detached->base.up.protocol->release(&detached->base.up);
    write_refusal(&result);
    outcome_of_result(&detached->base.outcome, buffer_str(&result));
}

/* ---- what the server says ---- */

static void pass_notice(struct detached_call *detached, struct str message)
{
    OWNED_BUFFER(translated);
    legacy_bridge_write_notification(&translated, message);
    detached_call_take_message(detached, buffer_str(&translated));
}

/* `result` is empty where nobody can give what the server requires. */
static void take_result(struct detached_call *detached, struct str result,
                        const struct exchange_reply *reply)
{
    struct exchange_reply translated = *reply;
    OWNED_BUFFER(written);
    OWNED_BUFFER(message);
    if (result.length > 0)
        legacy_bridge_write_call_result(&written, result, detached->wraps_output);
    else
        write_refusal(&written);
    jsonrpc_write_result(&message, json_member(reply->message, "id"), buffer_str(&written));
    translated.message = buffer_str(&message);
    detached_call_take_reply(detached, &translated);
}

static void take_event_of_detached(void *context, const struct event *event)
{
    struct detached_call *detached = detached_call_from(context);
    bool is_lost = event->kind == EVENT_LOST && event->lost != LOST_REPLY;
    bool is_task = detached->base.task != NULL;
    if (event->kind == EVENT_NOTICE)
        pass_notice(detached, event->text);
    else if (event->kind == EVENT_AGAIN)
        invocation_rounds_send(&detached->base, STR_EMPTY);
    else if (event->kind == EVENT_ROUND && is_task)
        take_question(detached, event->text);
    else if (is_lost && is_task)
        invocation_rounds_lost(&detached->base, event->lost);
    else if (event->kind == EVENT_ROUND || is_lost)
        take_result(detached, STR_EMPTY, event->reply);
    else if (event->kind == EVENT_RESULT)
        take_result(detached, event->is_complete ? event->text : STR_EMPTY, event->reply);
    else
        detached_call_take_reply(detached, event->reply);
}

/* ---- the next round ---- */

/* Each round is a request of its own, which the rules in force judge. */
bool detached_rounds_are_forwarded(const struct invocation *invocation)
{
    struct snapshot *now = snapshot_current();
    const struct drift_check drift = {
        .identity = detached_call_from(invocation->up.context)->rounds->identity,
        .catalog = invocation->worker->gateway->catalog,
        .snapshot = now,
        .source = config_source_find(now->config, str_from(invocation->task->source)),
        .task = invocation->task};
    bool is_forwarded = now->number == invocation->snapshot->number || drift_check_forwards(&drift);
    snapshot_unref(now);
    return is_forwarded;
}

/* The call with a new id. */
static void write_detached(struct server_link *link, struct headers *headers, struct buffer *body,
                           struct buffer *id)
{
    const struct detached_rounds *rounds = detached_call_from(link->context)->rounds;
    char uuid[RANDOM_UUID_BYTES];
    random_uuid(uuid);
    buffer_append_format(id, "\"tg:%s\"", uuid);
    json_write_with_member(body, buffer_str(&rounds->body), "id", buffer_str(id));
    headers_add_all(headers, &rounds->headers);
}

static struct sending sending_of_detached(struct server_link *link, struct task_trace *trace)
{
    return detached_call_sending(detached_call_from(link->context));
}

const struct link_maker detached_maker = {
    .write = write_detached, .sending = sending_of_detached, .take = take_event_of_detached};
