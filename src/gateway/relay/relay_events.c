/* An event stream on its way down: whole events, with messages taken out or rewritten. */
#include <string.h>

#include "call/deferred_response.h"
#include "notification_stream.h"
#include "relay_internal.h"
#include "relay_rewrite.h"
#include "taskgate/core/metrics.h"
#include "taskgate/json/text.h"

/* An event longer than this passes in pieces instead of being held until it is whole. */
#define EVENT_BYTES_KEPT ((size_t)1024 * 1024)

static void keep_glimpse(struct relay *relay, struct str bytes)
{
    size_t head = bytes.length < GLIMPSE_BYTES ? bytes.length : GLIMPSE_BYTES;
    size_t tail = bytes.length - head < GLIMPSE_BYTES ? bytes.length - head : GLIMPSE_BYTES;
    buffer_clear(&relay->glimpse);
    buffer_append(&relay->glimpse, str_slice(bytes.bytes, head));
    buffer_append(&relay->glimpse, str_slice(bytes.bytes + bytes.length - tail, tail));
}

bool relay_is_answered(const struct relay *relay)
{
    struct str id = relay->call->envelope.id;
    struct str glimpse = buffer_str(&relay->glimpse);
    if (glimpse.length == 0 || id.length == 0)
        return false; /* a GET stream answers nothing */
    const char *at = glimpse.bytes, *end = at + glimpse.length;
    while ((at = memmem(at, (size_t)(end - at), "\"id\":", 5)) != NULL) {
        at += 5;
        while (at < end && *at == ' ')
            at++;
        if ((size_t)(end - at) > id.length && memcmp(at, id.bytes, id.length) == 0 &&
            strchr(",} \r\n", at[id.length]))
            return memmem(glimpse.bytes, glimpse.length, "\"method\":", 9) == NULL;
    }
    return false;
}

void relay_find_last_id(const struct relay *relay, struct buffer *id)
{
    struct str rest = buffer_str(&relay->glimpse), line;
    while (rest.length > 0) {
        str_cut(rest, '\n', &line, &rest);
        if (!str_starts_with(line, STR("id:")))
            continue;
        buffer_clear(id);
        buffer_append(id, str_trim(str_slice(line.bytes + 3, line.length - 3)));
    }
}

/* Writes what goes down in place of an event's data. false: the event goes down as it came. */
static bool rewrite_data(struct relay *relay, struct str data, struct buffer *message)
{
    if (!relay_rewrites(&relay->options) || data.length == 0)
        return false;
    bool is_too_large = data.length > relay_most_held(relay);
    if (is_too_large)
        metrics_count(METRIC_LIMITS_REACHED, STR("result_bytes"));
    if (!is_too_large && relay_rewrite(relay->call, &relay->options, data, message))
        return true;
    if (!is_too_large && json_check(data, NULL) && json_type(data) != JSON_ARRAY)
        return false;
    /* Data that cannot be read cannot be filtered, but a client might read it. Batches are not read
     * either; no server has a reason to send one. */
    dialect_write_error(relay->call->dialect, message, relay->call->envelope.id,
                        relay_failure_error(RELAY_UNREADABLE), STR_EMPTY, NULL);
    return true;
}

/* Sends one whole event of a reply that is read. */
static void send_event_read(struct relay *relay, struct str raw)
{
    struct sse_event event;
    struct buffer message, changed;
    sse_event_read(&event, raw);
    buffer_init(&message);
    buffer_init(&changed);
    struct str data = buffer_str(&event.data);
    if (relay_may_take(&relay->options, data) && json_check(data, NULL) &&
        (relay->options.takes_responses || json_member(data, "method").length > 0) &&
        relay->options.take_message(relay->call, data)) {
        /* The client sees nothing of it. */
    } else if (rewrite_data(relay, data, &message)) {
        sse_write_with_data(&changed, raw, buffer_str(&message));
        relay_send_down(relay, buffer_str(&changed));
    } else {
        relay_send_down(relay, raw);
    }
    buffer_finish(&changed);
    buffer_finish(&message);
    sse_event_finish(&event);
}

/* Sends whole events, one after the other. */
static void send_events(struct relay *relay, struct str events)
{
    if (!relay_rewrites(&relay->options) && !relay_may_take(&relay->options, events)) {
        relay_send_down(relay, events);
        return;
    }
    while (events.length > 0) {
        size_t first = sse_first_event(events);
        size_t length = first > 0 ? first : events.length;
        send_event_read(relay, str_slice(events.bytes, length));
        events = str_slice(events.bytes + length, events.length - length);
    }
}

/* Only whole events go down, so that an error event can always follow. An event that is too long to
 * be held passes in pieces. */
void relay_take_events(struct relay *relay, struct str bytes)
{
    size_t whole = sse_splitter_feed(&relay->splitter, bytes, NULL);
    if (whole > 0) {
        if (relay->kept.length > 0) {
            buffer_append(&relay->kept, str_slice(bytes.bytes, whole));
            send_events(relay, buffer_str(&relay->kept));
            buffer_clear(&relay->kept);
        } else {
            send_events(relay, str_slice(bytes.bytes, whole));
        }
        relay->inside_event = false;
        relay_send_down(relay, buffer_str(&relay->behind));
        buffer_clear(&relay->behind);
        keep_glimpse(relay, str_slice(bytes.bytes, whole));
        notification_stream_flush(relay->stream);
        bytes = str_slice(bytes.bytes + whole, bytes.length - whole);
    }
    if (bytes.length == 0)
        return;
    buffer_append(&relay->kept, bytes);
    if (relay->kept.length > EVENT_BYTES_KEPT && !relay_rewrites(&relay->options) &&
        !relay_may_take(&relay->options, buffer_str(&relay->kept))) {
        relay_send_down(relay, buffer_str(&relay->kept));
        buffer_clear(&relay->kept);
        relay->inside_event = true;
    }
}

void relay_pass(struct call *call, struct str message)
{
    struct relay *relay = relay_find(call);
    struct buffer event;
    buffer_init(&event);
    sse_write_event(&event, STR_EMPTY, STR_EMPTY, message);
    if (!relay)
        deferred_response_pass(call, message); /* the call is detached */
    else if (relay->inside_event)
        buffer_append(&relay->behind, buffer_str(&event));
    else
        relay_send_down(relay, buffer_str(&event));
    buffer_finish(&event);
}

void relay_show_life(struct call *call)
{
    struct relay *relay = relay_find(call);
    if (relay && relay->mode == RELAY_EVENTS && !relay->inside_event)
        relay_send_down(relay, STR(":ping\n\n"));
}

void relay_end_events(struct relay *relay)
{
    if (relay->kept.length > 0)
        send_events(relay, buffer_str(&relay->kept));
}
