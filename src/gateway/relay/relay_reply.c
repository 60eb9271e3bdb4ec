/* Whether a reply is the response to its request. */
#include <string.h>

#include "relay_internal.h"
#include "taskgate/core/log.h"
#include "taskgate/core/metrics.h"

bool relay_is_of_request(const struct relay *relay)
{
    const struct envelope *envelope = &relay->call->envelope;
    return envelope->kind == ENVELOPE_REQUEST && envelope->id.length > 0;
}

bool relay_lasts(const struct relay *relay)
{
    return relay->options.open_stream || relay->options.outlives;
}

bool relay_reply_is_too_large(const struct relay *relay, int64_t bytes)
{
    int64_t most = relay->call->snapshot->config->limits.reply_bytes;
    if (most == 0 || bytes <= most || relay_lasts(relay) || relay->options.url)
        return false;
    log_warn("Upstream answered with more bytes than limits.reply_bytes",
             LOG_TEXT("source", relay->call->source->id));
    metrics_count(METRIC_LIMITS_REACHED, STR("reply_bytes"));
    return true;
}

size_t relay_most_held(const struct relay *relay)
{
    size_t most = (size_t)relay->call->snapshot->config->limits.result_bytes;
    return relay->options.most_bytes > most ? relay->options.most_bytes : most;
}

/* The client would follow it past the gateway. Metadata (options.url) is no message. */
static bool is_redirect(const struct relay *relay)
{
    return relay->status >= 300 && relay->status < 400 && !relay->options.url;
}

/* An encoded reply cannot be read, so nobody knows whose it is. An HTTP error that does not say
 * that it is JSON-RPC goes down as it is. */
static bool is_unreadable(const struct relay *relay, const struct headers *headers)
{
    struct str type = headers_known(headers, HTTP_NAME_CONTENT_TYPE);
    bool is_message = relay->status < 400 || type.length == 0 ||
                      headers_name_event_stream(headers) ||
                      memmem(type.bytes, type.length, "json", 4) != NULL;
    return relay->is_encoded && relay_is_of_request(relay) && is_message;
}

bool relay_reply_begin(struct relay *relay, const struct headers *headers)
{
    struct str source = str_from(relay->call->source->id);
    relay->is_looked_at = relay_is_of_request(relay) && !relay->is_encoded;
    if (relay->is_looked_at)
        reply_event_check_init(&relay->reply, relay->call->envelope.id);
    if (!is_redirect(relay))
        return !is_unreadable(relay, headers);
    log_warn("Upstream redirects, which is not followed", LOG_STR("source", source),
             LOG_STR("location", headers_find(headers, "location")));
    return false;
}

void relay_reply_fail(struct relay *relay, enum reply_verdict verdict)
{
    log_warn(verdict == REPLY_FOREIGN ? "Upstream answered with the id of another request"
                                      : "Upstream answered with no JSON-RPC response",
             LOG_TEXT("source", relay->call->source->id), LOG_NUMBER("status", relay->status));
    if (relay->mode == RELAY_LOOKING || relay->mode == RELAY_WHOLE)
        relay_fail(relay, RELAY_UNREADABLE);
    else
        relay_fail_in_stream(relay, RELAY_UNREADABLE);
}

bool relay_reply_is_refused(const struct relay *relay, enum reply_verdict verdict)
{
    return verdict == REPLY_FOREIGN || (verdict == REPLY_NONE && relay->status < 400);
}

bool relay_reply_end(struct relay *relay)
{
    if (!relay->is_looked_at || relay->mode == RELAY_WAITING)
        return true;
    enum reply_verdict verdict;
    if (relay->mode == RELAY_EVENTS)
        verdict = reply_event_check_end(&relay->reply) ? REPLY_OURS : REPLY_FOREIGN;
    else
        verdict = reply_check_end(&relay->reply.message);
    if (!relay_reply_is_refused(relay, verdict))
        return true;
    relay_reply_fail(relay, verdict);
    return false;
}
