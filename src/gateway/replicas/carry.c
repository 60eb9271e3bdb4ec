/* Relayed requests, on the side of the replica that the client is connected to. */
#include "carry.h"

#include <stdlib.h>
#include <string.h>

#include "call/call.h"
#include "call/headers.h"
#include "call/worker.h"
#include "news.h"
#include "relay_signature.h"
#include "replicas.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/list.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"

/*
 * Whether another replica still answers while requests wait there. A stopped process, and a machine
 * that has gone, keep a connection open and send nothing, as a server does that takes long; so the
 * replica itself is asked, once for all requests of a worker that wait at it. On the worker's loop.
 */

/* So long after the first question without an answer the replica is taken for silent. With the
 * pause before a question this is below the 2 s in which a client is answered. */
#define PULSE_PATIENCE_MS 1300

/* Called once; the listener has left. `is_over`: the store says that this life of the replica has
 * ended. Else the replica does not answer; it may live, and may go on. */
typedef void (*pulse_lost)(void *context, bool is_over);

struct pulse_listener {
    struct list node;
    struct pulse *pulse; /* NULL: has left */
    pulse_lost lost;
    void *context;
};

/* Most relayed requests are answered within the pause, and cost no question. */
#define PAUSE_MS 400
/* A timer that is so late was held up with its process: the answer may have come meanwhile. */
#define HELD_UP_MS 500

struct pulse {
    struct list node; /* in worker->pulses, until it has ended */
    uint32_t magic;   /* PULSE_MAGIC */
    struct gateway_worker *worker;
    struct session_home home;
    char *address;
    struct list listeners;          /* struct pulse_listener.node */
    struct loop_timer pause;        /* to the next question */
    struct loop_timer patience;     /* runs from a question to the first answer */
    int64_t patient_since_ms;       /* monotonic */
    struct upstream_call *question; /* NULL: none is under way */
    bool has_ended;
};
#define PULSE_MAGIC 0x47575055

static struct pulse *pulse_from(void *context)
{
    return MAGIC_CAST(struct pulse, PULSE_MAGIC, context);
}

static void destroy(struct pulse *pulse)
{
    if (pulse->question)
        upstream_call_cancel(pulse->question);
    loop_timer_stop(&pulse->pause);
    loop_timer_stop(&pulse->patience);
    list_remove(&pulse->node);
    free(pulse->address);
    MAGIC_CLEAR(pulse);
    free(pulse);
}

static void pulse_leave(struct pulse_listener *listener)
{
    struct pulse *pulse = listener->pulse;
    if (!pulse)
        return;
    listener->pulse = NULL;
    list_remove(&listener->node);
    if (list_is_empty(&pulse->listeners) && !pulse->has_ended)
        destroy(pulse);
}

/* A listener may join again meanwhile: the pulse of another question. */
static void pulse_end(struct pulse *pulse, bool is_over)
{
    ASSERT(!pulse->has_ended);
    pulse->has_ended = true;
    list_remove(&pulse->node);
    while (!list_is_empty(&pulse->listeners)) {
        struct pulse_listener *listener =
            LIST_ENTRY(pulse->listeners.next, struct pulse_listener, node);
        pulse_leave(listener);
        listener->lost(listener->context, is_over);
    }
    destroy(pulse);
}

static bool is_over(const struct pulse *pulse)
{
    return replicas_is_over(pulse->worker->gateway->replicas, pulse->home.replica,
                            pulse->home.epoch);
}

static void carry_be_patient(struct pulse *pulse)
{
    pulse->patient_since_ms = clock_monotonic_ms();
    loop_timer_start(&pulse->patience, PULSE_PATIENCE_MS);
}

static void on_impatient(void *context)
{
    struct pulse *pulse = pulse_from(context);
    int64_t waited_ms = clock_monotonic_ms() - pulse->patient_since_ms;
    if (waited_ms > PULSE_PATIENCE_MS + HELD_UP_MS)
        carry_be_patient(pulse);
    else
        pulse_end(pulse, is_over(pulse));
}

/* Any answer says that it lives. */
static void pulse_on_head(void *context, int status, const struct http_header *items, size_t count)
{
    struct pulse *pulse = pulse_from(context);
    (void)status, (void)items, (void)count;
    loop_timer_stop(&pulse->patience);
}

static void pulse_on_body(void *context, struct str bytes)
{
    (void)context, (void)bytes;
}

static void pulse_on_end(void *context, enum upstream_result result, const char *detail)
{
    struct pulse *pulse = pulse_from(context);
    (void)result, (void)detail;
    pulse->question = NULL; /* gone when this returns */
    loop_timer_start(&pulse->pause, PAUSE_MS);
}

static void carry_ask(struct pulse *pulse)
{
    static const struct upstream_callbacks callbacks = {pulse_on_head, pulse_on_body, pulse_on_end};
    const struct gateway *gateway = pulse->worker->gateway;
    const char *target =
        atomic_load(&gateway->shutting_down) ? NEWS_TARGET "?" RELAYED_LEAVING : NEWS_TARGET;
    OWNED_HEADERS(headers, false);
    const struct replica_request request = {.replica = pulse->home.replica,
                                            .epoch = pulse->home.epoch,
                                            .address = pulse->address,
                                            .method = STR("GET"),
                                            .target = str_from(target)};
    pulse->question = replicas_send(pulse->worker, &request, &headers, &callbacks, pulse);
}

static void on_pause_over(void *context)
{
    struct pulse *pulse = pulse_from(context);
    if (is_over(pulse)) {
        pulse_end(pulse, true);
        return;
    }
    if (!loop_timer_is_running(&pulse->patience)) /* else it was not reached before */
        carry_be_patient(pulse);
    carry_ask(pulse);
}

static struct pulse *carry_create(struct gateway_worker *worker, const struct session_home *home,
                                  const char *address)
{
    struct pulse *pulse = memory_alloc(sizeof *pulse);
    MAGIC_SET(pulse, PULSE_MAGIC);
    pulse->worker = worker;
    pulse->home = *home;
    pulse->address = memory_copy_text(address);
    list_init(&pulse->listeners);
    loop_timer_init(&pulse->pause, worker->loop, on_pause_over, pulse);
    loop_timer_init(&pulse->patience, worker->loop, on_impatient, pulse);
    loop_timer_start(&pulse->pause, PAUSE_MS);
    list_append(&worker->pulses, &pulse->node);
    return pulse;
}

static struct pulse *pulse_find(struct gateway_worker *worker, const struct session_home *home)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->pulses) {
        struct pulse *pulse = LIST_ENTRY(node, struct pulse, node);
        if (pulse->home.epoch == home->epoch && strcmp(pulse->home.replica, home->replica) == 0)
            return pulse;
    }
    return NULL;
}

static void pulse_join(struct gateway_worker *worker, const struct session_home *home,
                       const char *address, struct pulse_listener *listener, pulse_lost lost,
                       void *context)
{
    struct pulse *pulse = pulse_find(worker, home);
    *listener =
        (struct pulse_listener){.pulse = pulse ? pulse : carry_create(worker, home, address),
                                .lost = lost,
                                .context = context};
    list_append(&listener->pulse->listeners, &listener->node);
}

/* This process ends: the replicas at which requests wait are asked now, and learn of it with each
 * question. They answer what they hold. */
static void pulse_ask_all(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->pulses) {
        struct pulse *pulse = LIST_ENTRY(node, struct pulse, node);
        if (!pulse->question)
            loop_timer_start(&pulse->pause, 0);
    }
}

struct carry {
    struct call_part part;
    uint32_t magic; /* CARRY_MAGIC */
    struct call *call;
    struct session_home home;
    call_step here;
    carry_untaken untaken;
    struct upstream_call *upstream; /* NULL once it has ended */
    struct pulse_listener pulse;
    char *address;
    bool is_repeatable;
    bool has_begun; /* the response goes down */
    bool is_unread; /* it was refused there, unread */
    bool is_events; /* the response is an event stream, */
    bool is_whole;  /* of which no part of an event has gone down */
};
#define CARRY_MAGIC 0x47574379

static struct carry *carry_from(void *context)
{
    return MAGIC_CAST(struct carry, CARRY_MAGIC, context);
}

static void drop(struct call *call, void *object)
{
    struct carry *carry = object;
    if (carry->upstream)
        upstream_call_cancel(carry->upstream);
    pulse_leave(&carry->pulse);
    free(carry->address);
    MAGIC_CLEAR(carry);
    free(carry);
}

static const struct call_part_kind carry_kind = CALL_PART_KIND(struct carry, drop);

/* Returns the call, which goes on without it. */
static struct call *finish(struct carry *carry)
{
    struct call *call = carry->call;
    call_part_remove(&carry->part);
    drop(call, carry);
    return call;
}

/* ---- the end ---- */

static void give_back(struct carry *carry)
{
    call_step here = carry->here;
    carry_untaken untaken = carry->untaken;
    untaken(finish(carry), here);
}

static void complete(struct carry *carry)
{
    http_stream_end(call_ended(finish(carry)));
}

/* Answers in the place of the other replica: as JSON, or on the stream that has begun, if that is
 * between two events; else the client must see that the response is not whole. */
static void carry_answer_error(struct carry *carry, enum jsonrpc_error error,
                               const struct jsonrpc_error_data *data)
{
    bool may_write = carry->is_events && carry->is_whole;
    bool has_begun = carry->has_begun;
    struct call *call = finish(carry);
    OWNED_BUFFER(message);
    if (!has_begun) {
        call_answer_error(call, error, STR_EMPTY, data);
        return;
    }
    jsonrpc_write_error(&message, call->envelope.id, error, STR_EMPTY, data);
    call->outcome = "error";
    call_end_stream(call, buffer_str(&message), !may_write);
}

bool carry_was_taken(const struct carry_facts *facts)
{
    return facts->was_written && !facts->is_unread;
}

enum carry_fate carry_fate_of(const struct carry_facts *facts)
{
    if (carry_was_taken(facts) && !facts->is_repeatable)
        return CARRY_UNKNOWN;
    return facts->has_begun || !facts->may_answer ? CARRY_AGAIN : CARRY_HERE;
}

static void fail(struct carry *carry, const char *detail, bool may_answer)
{
    const struct carry_facts facts = {
        .was_written = !carry->upstream || upstream_call_has_begun(carry->upstream),
        .is_unread = carry->is_unread,
        .is_repeatable = carry->is_repeatable,
        .has_begun = carry->has_begun,
        .may_answer = may_answer,
    };
    enum carry_fate fate = carry_fate_of(&facts);
    if (fate == CARRY_HERE) {
        log_warn("A relayed request was lost with its replica, and is handled here",
                 LOG_TEXT("replica", carry->home.replica), LOG_TEXT("detail", detail));
        metrics_count(METRIC_RELAYED_REQUESTS,
                      carry_was_taken(&facts) ? STR("repeated") : STR("unreachable"));
        give_back(carry);
        return;
    }
    const struct jsonrpc_error_data unknown = {.details =
                                                   STR("the outcome of the call is unknown")};
    const struct jsonrpc_error_data again = {
        .details = STR("the replica that had the task is gone: ask again"), .retry_after = 5};
    log_warn("A relayed request was lost with its replica",
             LOG_TEXT("replica", carry->home.replica), LOG_TEXT("detail", detail));
    metrics_count(METRIC_RELAYED_REQUESTS, STR("lost"));
    if (carry->call->envelope.kind == ENVELOPE_REQUEST && carry->call->envelope.id.length > 0)
        carry_answer_error(carry,
                           fate == CARRY_AGAIN ? JSONRPC_UNAVAILABLE : JSONRPC_UPSTREAM_FAILED,
                           fate == CARRY_AGAIN ? &again : &unknown);
    else if (carry->has_begun)
        complete(carry); /* of a GET: the client asks for its stream anew */
    else
        call_answer_status(finish(carry), 502, STR_EMPTY);
}

static void on_end(void *context, enum upstream_result result, const char *detail)
{
    struct carry *carry = carry_from(context);
    carry->upstream = NULL; /* gone when this returns */
    if (carry->is_unread) {
        give_back(carry);
    } else if (result == UPSTREAM_DONE && carry->has_begun) {
        metrics_count(METRIC_RELAYED_REQUESTS, STR("relayed"));
        complete(carry);
    } else if (result == UPSTREAM_CONNECT_FAILED) {
        log_warn("A replica to which a request is relayed is not reached",
                 LOG_TEXT("replica", carry->home.replica), LOG_TEXT("detail", detail));
        metrics_count(METRIC_RELAYED_REQUESTS, STR("unreachable"));
        give_back(carry);
    } else {
        fail(carry, detail, true); /* after bytes of it have gone out */
    }
}

static void listen(struct carry *carry);

/* A silent replica may go on. Then it takes what its server asked, so an answer to that must come
 * to it and not end here; and streams of notifications go on. */
static void on_lost(void *context, bool is_over)
{
    struct carry *carry = carry_from(context);
    const struct call *call = carry->call;
    if (is_over)
        fail(carry, "it is gone", true);
    else if (str_equal(http_method(call->exchange), STR("GET")))
        listen(carry);
    else
        fail(carry, "it does not answer", call->envelope.input_responses.length == 0);
}

static void listen(struct carry *carry)
{
    pulse_join(carry->call->worker, &carry->home, carry->address, &carry->pulse, on_lost, carry);
}

/* ---- the response ---- */

static void carry_on_drained(void *context)
{
    struct carry *carry = carry_from(context);
    if (carry->upstream)
        upstream_call_resume(carry->upstream);
}

static struct str find(const struct http_header *items, size_t count, enum http_name name)
{
    for (size_t i = 0; i < count; i++) {
        if (http_name_of(&items[i]) == name)
            return items[i].value;
    }
    return STR_EMPTY;
}

/* Only a replica writes this header: a server's own goes no further than the replica it is of. */
static bool is_refused_unread(struct carry *carry, struct str refusal)
{
    if (refusal.length == 0)
        return false;
    if (str_equal(refusal, STR(RELAYED_REFUSED)))
        log_error("A replica refuses the signature of this one; look at the key that "
                  "replica.key_env names, and at the clocks, of both",
                  LOG_TEXT("replica", carry->home.replica));
    metrics_count(METRIC_RELAYED_REQUESTS, STR("refused"));
    return true;
}

static void carry_on_head(void *context, int status, const struct http_header *items, size_t count)
{
    struct carry *carry = carry_from(context);
    struct http_exchange *exchange = carry->call->exchange;
    uint64_t length;
    struct http_header room[HEADERS_ROOM];
    struct headers headers;
    carry->is_unread = is_refused_unread(carry, find(items, count, HTTP_NAME_TASKGATE_RELAY));
    if (carry->is_unread)
        return;
    if (status >= 400)
        carry->call->outcome = "error";
    headers_init_in(&headers, room, HEADERS_ROOM);
    headers_from_response(&headers, items, count);
    ASSERT(!carry->has_begun); /* one response has one head */
    carry->has_begun = true;
    bool is_known =
        str_to_u64(find(items, count, HTTP_NAME_CONTENT_LENGTH), &length) && length <= INT64_MAX;
    http_on_drained(exchange, carry_on_drained, carry);
    http_stream_start(exchange, status, headers.items, headers.count,
                      is_known ? (int64_t)length : -1);
    carry->is_events = carry->is_whole = headers_name_event_stream(&headers);
    if (carry->is_events)
        http_stream_flush(exchange);
    headers_finish(&headers);
}

static void carry_on_body(void *context, struct str bytes)
{
    struct carry *carry = carry_from(context);
    carry->is_whole = str_ends_with(bytes, STR("\n\n"));
    if (!carry->is_unread && !http_stream_write(carry->call->exchange, bytes))
        upstream_call_pause(carry->upstream);
}

/* ---- the request ---- */

static void carry_send(struct carry *carry)
{
    static const struct upstream_callbacks callbacks = {carry_on_head, carry_on_body, on_end};
    const struct http_exchange *exchange = carry->call->exchange;
    struct http_header room[HEADERS_ROOM];
    struct headers headers;
    OWNED_BUFFER(target);
    relay_target_write(http_path(exchange), http_query(exchange), &target);
    headers_init_in(&headers, room, HEADERS_ROOM);
    headers_from_client(&headers, exchange);
    const struct replica_request request = {.replica = carry->home.replica,
                                            .epoch = carry->home.epoch,
                                            .address = carry->address,
                                            .method = http_method(exchange),
                                            .target = buffer_str(&target),
                                            .body = http_body(exchange)};
    carry->upstream = replicas_send(carry->call->worker, &request, &headers, &callbacks, carry);
    headers_finish(&headers);
}

void carry_start(struct call *call, const struct session_home *home, const char *address,
                 bool is_repeatable, carry_untaken untaken, call_step here)
{
    struct carry *carry = memory_alloc(sizeof *carry);
    MAGIC_SET(carry, CARRY_MAGIC);
    carry->call = call;
    carry->home = *home;
    carry->is_repeatable = is_repeatable;
    carry->here = here;
    carry->untaken = untaken;
    carry->address = memory_copy_text(address);
    listen(carry);
    call_part_add(call, &carry->part, &carry_kind);
    carry_send(carry);
}

/* ---- the end of the process ---- */

static void end(struct carry *carry)
{
    if (!str_equal(http_method(carry->call->exchange), STR("GET")))
        return;
    if (carry->has_begun)
        complete(carry);
    else
        call_answer_status(finish(carry), 503, STR_EMPTY);
}

void carry_end_all(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->calls) {
        const struct call *call = LIST_ENTRY(node, struct call, node);
        struct carry *carry = call_part_find(call, &carry_kind);
        if (carry)
            end(carry);
    }
    pulse_ask_all(worker);
}
