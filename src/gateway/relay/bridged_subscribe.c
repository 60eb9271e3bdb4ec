/* Changing what a session is told of. */
#include "bridged_subscribe.h"

#include <stdlib.h>
#include <string.h>

#include "bridged_stream.h"
#include "call/call.h"
#include "call/session_store.h"
#include "server/listen.h"
#include "state/bridged_sessions.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

#define ANSWER_MS 10000
/* So long the news of the resource are passed on, unless a stream of the session listens itself
 * before. */
#define HAND_OVER_MS 5000
/* And so long from then on: what the server told before may be under way. */
#define COVERED_MS 100

/* The listen that asks whether the server tells of the resource. It outlives the call. */
struct subscription {
    uint32_t magic; /* SUBSCRIPTION_MAGIC */
    struct bridged_handover handover;
    struct call_part part;
    struct call *call; /* NULL once it is answered, or has gone */
    struct gateway *gateway;
    struct listener *listener;
    struct loop_timer timer; /* the end of the wait for the server, or of the handing over */
    char *source, *uri;
    char session[DIGEST_HEX_BYTES];
};
#define SUBSCRIPTION_MAGIC 0x47575314

static inline struct subscription *subscription_from(void *context)
{
    return MAGIC_CAST(struct subscription, SUBSCRIPTION_MAGIC, context);
}

static void destroy(struct subscription *subscription)
{
    listener_stop(subscription->listener);
    loop_timer_stop(&subscription->timer);
    list_remove(&subscription->handover.node);
    free(subscription->source);
    free(subscription->uri);
    MAGIC_CLEAR(subscription);
    free(subscription);
}

static void drop(struct call *call, void *object)
{
    (void)call;
    destroy(object);
}

static const struct call_part_kind subscription_kind = CALL_PART_KIND(struct subscription, drop);

/* The call goes on to its answer alone. */
static struct call *let_go(struct subscription *subscription)
{
    struct call *call = subscription->call;
    call_part_remove(&subscription->part);
    subscription->call = NULL;
    return call;
}

static void on_timer(void *context)
{
    struct subscription *subscription = subscription_from(context);
    struct call *call = subscription->call ? let_go(subscription) : NULL;
    destroy(subscription);
    if (call)
        call_answer_error(call, JSONRPC_UPSTREAM_TIMEOUT, STR_EMPTY, NULL);
}

/* ---- what the session says from now on ---- */

static void change(struct call *call, bool is_wanted)
{
    if (!bridged_sessions_subscribe(call->worker->gateway->bridged_sessions,
                                    str_from(call->source->id), str_from(call->session),
                                    call->envelope.uri.text, is_wanted)) {
        call_answer_error(call, JSONRPC_RATE_LIMITED, STR("The session has too many subscriptions"),
                          NULL);
        return;
    }
    bridged_stream_renew(call);
    session_store_put_and_answer(call);
}

void bridged_unsubscribe(struct call *call)
{
    change(call, false);
}

static void refuse(struct call *call)
{
    call_answer_error(call, JSONRPC_INVALID_PARAMS,
                      STR("The server does not tell of changes of this resource"), NULL);
}

/* ---- asking the server ---- */

static void on_covered(struct bridged_handover *handover)
{
    struct subscription *subscription = LIST_ENTRY(handover, struct subscription, handover);
    loop_timer_start(&subscription->timer, COVERED_MS);
}

/* Without a stream there is nobody to tell. One that is opened later listens by itself. */
static void hand_over(struct subscription *subscription, const struct call *call)
{
    if (!bridged_stream_is_open(call)) {
        loop_timer_start(&subscription->timer, 0);
        return;
    }
    subscription->handover.source = subscription->source;
    subscription->handover.session = subscription->session;
    subscription->handover.uri = subscription->uri;
    subscription->handover.covered = on_covered;
    list_append(&call->worker->handovers, &subscription->handover.node);
    loop_timer_start(&subscription->timer, HAND_OVER_MS);
}

static void on_opened(void *context, struct str honoured)
{
    struct subscription *subscription = subscription_from(context);
    struct call *call = let_go(subscription);
    (void)honoured;
    if (listener_covers(subscription->listener, str_from(subscription->uri))) {
        hand_over(subscription, call);
        change(call, true);
    } else {
        loop_timer_start(&subscription->timer, 0);
        refuse(call);
    }
}

/* The session may have unsubscribed meanwhile. */
static bool is_subscribed(const struct subscription *subscription)
{
    struct buffer said = {0};
    struct str uri;
    bool is_subscribed = false;
    bridged_sessions_get(subscription->gateway->bridged_sessions, str_from(subscription->source),
                         str_from(subscription->session), &said);
    struct str uris = json_member(buffer_str(&said), "uris");
    for (size_t position = 0; !is_subscribed && json_next_element(uris, &position, &uri);)
        is_subscribed = json_string_equals(uri, str_from(subscription->uri));
    buffer_finish(&said);
    return is_subscribed;
}

static void on_news(void *context, struct str method, struct str message)
{
    const struct subscription *subscription = subscription_from(context);
    struct str uri = str_from(subscription->uri);
    if (json_string_equals(method, STR("notifications/resources/updated")) &&
        json_string_equals(json_path(message, "params", "uri"), uri) && is_subscribed(subscription))
        bridged_stream_tell(subscription->gateway, str_from(subscription->source),
                            str_from(subscription->session), message);
}

static void on_ended(void *context, const struct listener *listener)
{
    struct subscription *subscription = subscription_from(context);
    struct call *call = subscription->call ? let_go(subscription) : NULL;
    (void)listener;
    subscription->listener = NULL;
    destroy(subscription);
    if (call)
        refuse(call);
}

static void on_dropped(void *context)
{
    struct subscription *subscription = subscription_from(context);
    subscription->listener = NULL;
    destroy(subscription);
}

void bridged_subscribe(struct call *call)
{
    static const struct listener_events events = {
        .opened = on_opened, .message = on_news, .ended = on_ended, .dropped = on_dropped};
    struct subscription *subscription = memory_alloc(sizeof *subscription);
    struct buffer filter;
    MAGIC_SET(subscription, SUBSCRIPTION_MAGIC);
    list_init(&subscription->handover.node);
    subscription->call = call;
    subscription->gateway = call->worker->gateway;
    subscription->source = memory_copy_text(call->source->id);
    subscription->uri = memory_copy_str(call->envelope.uri.text);
    memcpy(subscription->session, call->session, sizeof subscription->session);
    loop_timer_init(&subscription->timer, call->worker->loop, on_timer, subscription);
    loop_timer_start(&subscription->timer, ANSWER_MS);
    call_part_add(call, &subscription->part, &subscription_kind);
    buffer_init(&filter);
    buffer_append_text(&filter, "{\"resourceSubscriptions\":[");
    buffer_append_json_string(&filter, call->envelope.uri.text);
    buffer_append_text(&filter, "]}");
    server_listen(call, buffer_str(&filter), &events, subscription, &subscription->listener);
    buffer_finish(&filter);
}
