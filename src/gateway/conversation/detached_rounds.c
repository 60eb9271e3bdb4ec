/* A modern server's questions in the call of a legacy client that has become a task: the client is
 * asked in its task, and the server gets the call again. */
#include "detach_internal.h"

#include <stdlib.h>

#include "decision/drift_check.h"
#include "invocation_rounds.h"
#include "server/bridge_request.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/random.h"
#include "taskgate/identity/identity.h"
#include "taskgate/json/text.h"

/* The call as the server got it, as long as it may have to get it again. */
struct detached_rounds {
    struct headers headers;    /* owned */
    struct buffer body;        /* without the answers of a round */
    struct buffer required;    /* a result that came while the task was on its way to the store */
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
    buffer_finish(&rounds->required);
    identity_unref(rounds->identity);
    free(rounds);
}

/* ---- the server requires input ---- */

static void begin(struct detached_call *detached, struct str result)
{
    invocation_rounds_begin(&detached->base, result, true);
}

void detached_rounds_require(struct detached_call *detached, struct str result)
{
    detached->base.rounds.is_between = true;
    buffer_append(&detached->rounds->required, result);
}

bool detached_rounds_take(struct detached_call *detached, struct str result)
{
    struct invocation *base = &detached->base;
    struct str type = json_member(result, "resultType");
    if (!base->task || !json_string_equals(type, STR("input_required")))
        return false;
    if (conversation_where(base) == CONVERSATION_RUNNING)
        begin(detached, result);
    else /* nobody knows the task yet */
        detached_rounds_require(detached, result);
    return true;
}

void detached_rounds_begin(struct detached_call *detached)
{
    struct buffer required = {0};
    if (!detached->rounds || detached->rounds->required.length == 0)
        return;
    required = detached->rounds->required;
    buffer_init(&detached->rounds->required);
    begin(detached, buffer_str(&required));
    buffer_finish(&required);
}

/* ---- the client cannot be asked ---- */

void detached_rounds_write_refusal(struct buffer *result)
{
    buffer_append_text(result, "{\"content\":[{\"type\":\"text\",\"text\":\"The server requires "
                               "input, for which the client of a slow call that is no task cannot "
                               "be asked\"}],\"isError\":true}");
}

void detached_rounds_refuse(struct detached_call *detached)
{
    struct buffer result = {0};
    if (!detached->base.rounds.is_between)
        return;
    detached->base.rounds.is_between = false;
    detached_rounds_write_refusal(&result);
    outcome_of_result(&detached->base.outcome, buffer_str(&result));
    buffer_finish(&result);
}

/* ---- the next round ---- */

/* Each round is a request of its own, which the rules in force judge. */
static bool is_forwarded(const struct detached_call *detached)
{
    const struct invocation *base = &detached->base;
    struct snapshot *now = snapshot_current();
    const struct drift_check drift = {
        .identity = detached->rounds->identity,
        .catalog = base->worker->gateway->catalog,
        .snapshot = now,
        .source = config_source_find(now->config, str_from(base->task->source)),
        .task = base->task};
    bool is_forwarded = now->number == base->snapshot->number || drift_check_forwards(&drift);
    snapshot_unref(now);
    return is_forwarded;
}

/* The call with a new id, and the members of the round. */
static void write_round(const struct detached_call *detached, struct str answers, struct str state,
                        struct buffer *body)
{
    struct str kept = buffer_str(&detached->rounds->body);
    struct buffer whole = {0}, params = {0}, asked = {0};
    json_write_with_member(&whole, kept, "id", buffer_str(&detached->base.request_id));
    buffer_append(&params, json_member(kept, "params"));
    if (answers.length > 0)
        json_write_with_member(&asked, buffer_str(&params), "inputResponses", answers);
    else
        buffer_append(&asked, buffer_str(&params));
    buffer_clear(&params);
    if (state.length > 0)
        json_write_with_member(&params, buffer_str(&asked), "requestState", state);
    else
        buffer_append(&params, buffer_str(&asked));
    json_write_with_member(body, buffer_str(&whole), "params", buffer_str(&params));
    buffer_finish(&whole);
    buffer_finish(&params);
    buffer_finish(&asked);
}

static void take_new_id(struct invocation *base)
{
    char uuid[RANDOM_UUID_BYTES];
    random_uuid(uuid);
    buffer_clear(&base->request_id);
    buffer_append_format(&base->request_id, "\"tg:%s\"", uuid);
}

void detached_rounds_send(struct detached_call *detached, struct str answers, struct str state)
{
    struct invocation *base = &detached->base;
    struct buffer body = {0};
    if (!is_forwarded(detached)) {
        log_warn("A call is not sent again: the rules do not forward it any more",
                 LOG_TEXT("task", base->id));
        base->class->give_up(base, JSONRPC_RULE_DENIED, "");
        return;
    }
    take_new_id(base);
    write_round(detached, answers, state, &body);
    struct sending sending = detached_call_sending(detached);
    sending.headers = &detached->rounds->headers;
    sending.body = buffer_str(&body);
    base->rounds.is_between = false;
    base->exchange = exchange_send(base->worker, &sending, &detached_call_events, detached);
    buffer_finish(&body);
}
