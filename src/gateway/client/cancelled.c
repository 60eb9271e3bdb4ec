/*
 * Requests that their client has given up. An SDK client whose own clock runs out sends
 * notifications/cancelled and leaves the exchange open, but reads no answer in it: what came there
 * would be lost. So a wait ends as if the client had gone, and the client's next request gets the
 * outcome. A call that the server runs ends there.
 */
#include "cancelled.h"

#include "call/broadcast.h"
#include "call/client_profile.h"
#include "call/deferred_response.h"
#include "conversation/detach.h"
#include "inbox/inbox.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "tools/plain.h"

/* A client's request, which may wait on any worker. */
struct cancellation {
    struct str source, session, owner, request_id; /* the last empty: all of the session */
    struct str key;                                /* its inbox_key_of_call() */
};

static bool is_meant(const struct cancellation *cancellation, struct call *call)
{
    if (!call->exchange || !str_equal(cancellation->source, str_from(call->source->id)) ||
        (cancellation->request_id.length > 0 &&
         !str_equal(cancellation->request_id, call->envelope.id)))
        return false;
    /* A call whose token is still being checked has no owner yet, and must not be given one. */
    if (call->source->auth.issuer && !call->identity)
        return false;
    call_identify(call);
    return str_equal(cancellation->session, str_from(call->session)) &&
           str_equal(cancellation->owner, str_from(call->owner));
}

/* A bridged call that waits for the server ends there as well: its stream is closed. */
static bool waits_here(const struct call *call)
{
    return deferred_response_is(call) &&
           (call_gives_session(call) || !deferred_response_awaits_upstream(call));
}

static void cancelled_give_up(struct call *call, bool by_request)
{
    if (by_request)
        plain_call_give_up(call);
    if (waits_here(call))
        call_answer_nothing(call);
    else if (by_request)
        call->is_given_up = true;
}

static void deliver_cancellation(struct gateway_worker *worker, const void *message)
{
    const struct cancellation *cancellation = message;
    bool by_request = cancellation->request_id.length > 0;
    if (by_request)
        detached_calls_cancel(worker, cancellation->key, cancellation->request_id);
    if (cancellation->session.length == 0)
        return; /* another client of the owner may wait for a request of the same id */
    LIST_FOR_EACH_SAFE (node, next, &worker->calls) {
        struct call *call = LIST_ENTRY(node, struct call, node);
        if (is_meant(cancellation, call))
            cancelled_give_up(call, by_request);
    }
}

static const struct broadcast_kind cancellation_kind = {
    .bytes = sizeof(struct cancellation), .texts = 5, .deliver = deliver_cancellation};

/* ---- at other replicas ---- */

/* A wait for a task's result may be at the task's home. */
static void tell_others(struct call *call, const struct cancellation *cancellation)
{
    OWNED_BUFFER(wait);
    buffer_append_char(&wait, '{');
    json_add_text(&wait, "source", call->source->id);
    json_add_text(&wait, "session", call->session);
    json_add_text(&wait, "owner", call->owner);
    json_add_text(&wait, "key", cancellation->key.bytes);
    if (cancellation->request_id.length > 0) {
        json_add_value(&wait, "requestId", cancellation->request_id);
    }
    buffer_append_char(&wait, '}');
    news_send(call->worker, &(struct news){.kind = NEWS_WAIT_OVER, .wait = buffer_str(&wait)});
}

void cancelled_take_news(struct gateway_worker *worker, const struct news *news)
{
    static const char *const keys[] = {"source", "session", "owner", "key"};
    struct buffer texts[4];
    bool is_whole = true;
    for (size_t i = 0; i < 4; i++) {
        buffer_init(&texts[i]);
        is_whole = json_decode_string(json_member(news->wait, keys[i]), &texts[i]) &&
                   texts[i].length > 0 && is_whole;
    }
    const struct cancellation cancellation = {
        buffer_str(&texts[0]), buffer_str(&texts[1]), buffer_str(&texts[2]),
        json_member(news->wait, "requestId"), buffer_str(&texts[3])};
    if (is_whole)
        deliver_cancellation(worker, &cancellation);
    for (size_t i = 0; i < 4; i++)
        buffer_finish(&texts[i]);
}

/* ---- for the client ---- */

static void notify(struct call *call, struct str request_id)
{
    char key[CLIENT_KEY_BYTES];
    inbox_key_of_call(call, key);
    const struct cancellation cancellation = {str_from(call->source->id), str_from(call->session),
                                              str_from(call->owner), request_id, str_from(key)};
    broadcast_send(call->worker->gateway, &cancellation_kind, &cancellation);
    if (call->session[0])
        tell_others(call, &cancellation);
}

void cancelled_notify(struct call *call)
{
    struct str id = json_member(call->envelope.params, "requestId");
    call_identify(call);
    if (id.length > 0 && (call->session[0] || detached_call_takes_cancel(call)))
        notify(call, id);
}

void cancelled_notify_all(struct call *call)
{
    notify(call, STR_EMPTY);
}
