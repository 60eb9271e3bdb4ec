/* The question to another replica whether it still answers. */
#include "pulse.h"

#include <stdlib.h>
#include <string.h>

#include "call/headers.h"
#include "call/worker.h"
#include "news.h"
#include "relay_signature.h"
#include "relayed.h"
#include "replicas.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"

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

/* A listener may join again meanwhile: the pulse of another question. */
static void end(struct pulse *pulse, bool is_over)
{
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

static void be_patient(struct pulse *pulse)
{
    pulse->patient_since_ms = clock_monotonic_ms();
    loop_timer_start(&pulse->patience, PULSE_PATIENCE_MS);
}

static void on_impatient(void *context)
{
    struct pulse *pulse = pulse_from(context);
    int64_t waited_ms = clock_monotonic_ms() - pulse->patient_since_ms;
    if (waited_ms > PULSE_PATIENCE_MS + HELD_UP_MS)
        be_patient(pulse);
    else
        end(pulse, is_over(pulse));
}

/* Any answer says that it lives. */
static void on_head(void *context, int status, const struct http_header *items, size_t count)
{
    struct pulse *pulse = pulse_from(context);
    (void)status, (void)items, (void)count;
    loop_timer_stop(&pulse->patience);
}

static void on_body(void *context, struct str bytes)
{
    (void)context, (void)bytes;
}

static void on_end(void *context, enum upstream_result result, const char *detail)
{
    struct pulse *pulse = pulse_from(context);
    (void)result, (void)detail;
    pulse->question = NULL; /* gone when this returns */
    loop_timer_start(&pulse->pause, PAUSE_MS);
}

static void ask(struct pulse *pulse)
{
    static const struct upstream_callbacks callbacks = {on_head, on_body, on_end};
    const struct gateway *gateway = pulse->worker->gateway;
    const char *target =
        atomic_load(&gateway->shutting_down) ? NEWS_TARGET "?" RELAYED_LEAVING : NEWS_TARGET;
    struct headers headers;
    struct buffer value;
    headers_init(&headers, false);
    buffer_init(&value);
    const struct relay_signed what = {.to = str_from(pulse->home.replica),
                                      .epoch = pulse->home.epoch,
                                      .method = STR("GET"),
                                      .target = str_from(target)};
    replicas_sign(gateway->replicas, &what, &headers, &value);
    char *url = memory_format("%s%s", pulse->address, target);
    const struct upstream_request request = {
        .method = "GET", .url = url, .headers = headers.items, .header_count = headers.count};
    pulse->question = upstream_call_start(pulse->worker->client, &request, &callbacks, pulse);
    free(url);
    buffer_finish(&value);
    headers_finish(&headers);
}

static void on_pause_over(void *context)
{
    struct pulse *pulse = pulse_from(context);
    if (is_over(pulse)) {
        end(pulse, true);
        return;
    }
    if (!loop_timer_is_running(&pulse->patience)) /* else it was not reached before */
        be_patient(pulse);
    ask(pulse);
}

static struct pulse *create(struct gateway_worker *worker, const struct session_home *home,
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

static struct pulse *find(struct gateway_worker *worker, const struct session_home *home)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->pulses) {
        struct pulse *pulse = LIST_ENTRY(node, struct pulse, node);
        if (pulse->home.epoch == home->epoch && strcmp(pulse->home.replica, home->replica) == 0)
            return pulse;
    }
    return NULL;
}

void pulse_join(struct gateway_worker *worker, const struct session_home *home, const char *address,
                struct pulse_listener *listener, pulse_lost lost, void *context)
{
    struct pulse *pulse = find(worker, home);
    *listener = (struct pulse_listener){
        .pulse = pulse ? pulse : create(worker, home, address), .lost = lost, .context = context};
    list_append(&listener->pulse->listeners, &listener->node);
}

void pulse_leave(struct pulse_listener *listener)
{
    struct pulse *pulse = listener->pulse;
    if (!pulse)
        return;
    listener->pulse = NULL;
    list_remove(&listener->node);
    if (list_is_empty(&pulse->listeners) && !pulse->has_ended)
        destroy(pulse);
}

void pulse_ask_all(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->pulses) {
        struct pulse *pulse = LIST_ENTRY(node, struct pulse, node);
        if (!pulse->question)
            loop_timer_start(&pulse->pause, 0);
    }
}
