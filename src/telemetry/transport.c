/* One request to the collector at a time. */
#include "transport.h"

#include <stdio.h>
#include <stdlib.h>

#include "taskgate/core/clock.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/upstream/upstream.h"

#define IDLE_CONNECTIONS 1
#define CONNECT_MS 5000
#define MOST_RESPONSE_BYTES ((size_t)64 * 1024)
#define MOST_RETRY_AFTER_S 300
#define LONGEST_ROUND_MS 1000

struct transport {
    uint32_t magic; /* TRANSPORT_MAGIC */
    const struct config_telemetry *telemetry;
    struct loop *loop;
    struct upstream_client *client;
    struct upstream_call *call; /* under way, or NULL */
    struct transport_reply *reply;
};
#define TRANSPORT_MAGIC 0x544d5401

static struct transport *transport_from(void *context)
{
    return MAGIC_CAST(struct transport, TRANSPORT_MAGIC, context);
}

struct transport *transport_create(const struct config_telemetry *telemetry, struct error *error)
{
    struct transport *transport = memory_alloc(sizeof *transport);
    MAGIC_SET(transport, TRANSPORT_MAGIC);
    transport->telemetry = telemetry;
    transport->loop = loop_create(error);
    if (transport->loop)
        transport->client = upstream_client_create(transport->loop, IDLE_CONNECTIONS, error);
    if (transport->client)
        return transport;
    transport_destroy(transport);
    return NULL;
}

void transport_destroy(struct transport *transport)
{
    if (!transport)
        return;
    upstream_client_destroy(transport->client);
    loop_destroy(transport->loop);
    MAGIC_CLEAR(transport);
    free(transport);
}

static void wake(void *context)
{
    (void)context; /* the round that it begins is all */
}

void transport_interrupt(struct transport *transport)
{
    loop_post(transport->loop, wake, NULL);
}

/* ---- the response ---- */

/* RFC 9110 §10.2.3, in seconds; a date is left to the usual pause. */
static int64_t read_retry_after_ms(const struct http_header *headers, size_t count)
{
    uint64_t seconds;
    for (size_t i = 0; i < count; i++) {
        if (str_equal_ignore_case(headers[i].name, STR("retry-after")) &&
            str_to_u64(headers[i].value, &seconds))
            return (int64_t)(seconds < MOST_RETRY_AFTER_S ? seconds : MOST_RETRY_AFTER_S) * 1000;
    }
    return 0;
}

static void on_head(void *context, int status, const struct http_header *headers, size_t count)
{
    struct transport_reply *reply = transport_from(context)->reply;
    reply->status = status;
    reply->retry_after_ms = read_retry_after_ms(headers, count);
}

static void on_body(void *context, struct str bytes)
{
    struct buffer *body = &transport_from(context)->reply->body;
    size_t room = MOST_RESPONSE_BYTES - body->length;
    buffer_append(body, str_slice(bytes.bytes, bytes.length < room ? bytes.length : room));
}

static void on_end(void *context, enum upstream_result result, const char *detail)
{
    struct transport *transport = transport_from(context);
    struct transport_reply *reply = transport->reply;
    transport->call = NULL;
    if (result == UPSTREAM_DONE)
        return;
    reply->status = 0;
    snprintf(reply->problem, sizeof reply->problem, "%s",
             detail && *detail ? detail : "the connection broke");
}

/* ---- the request ---- */

static void start(struct transport *transport, struct str body)
{
    static const struct upstream_callbacks callbacks = {on_head, on_body, on_end};
    const struct config_telemetry *telemetry = transport->telemetry;
    size_t count = telemetry->header_count + 2;
    struct http_header *headers = memory_alloc_array(count, sizeof *headers);
    headers[0] = (struct http_header){STR("content-type"), telemetry->protocol == OTLP_JSON
                                                               ? STR("application/json")
                                                               : STR("application/x-protobuf")};
    headers[1] = (struct http_header){STR("user-agent"), STR("taskgate/" TASKGATE_VERSION)};
    for (size_t i = 0; i < telemetry->header_count; i++)
        headers[i + 2] = (struct http_header){str_from(telemetry->headers[i].name),
                                              str_from(telemetry->headers[i].value)};
    const struct upstream_request request = {
        .method = "POST",
        .url = telemetry->url,
        .tls = telemetry->tls,
        .headers = headers,
        .header_count = count,
        .body = body,
        .connect_timeout_ms = CONNECT_MS,
    };
    transport->call = upstream_call_start(transport->client, &request, &callbacks, transport);
    free(headers);
}

void transport_post(struct transport *transport, struct str body, int64_t (*until_ms)(void *),
                    void *context, struct transport_reply *reply)
{
    *reply = (struct transport_reply){0};
    transport->reply = reply;
    loop_run_once(transport->loop, 0); /* sees that an idle connection was closed */
    start(transport, body);
    while (transport->call) {
        int64_t left_ms = until_ms(context) - clock_monotonic_ms();
        if (left_ms <= 0) {
            upstream_call_cancel(transport->call);
            transport->call = NULL;
            reply->status = 0;
            snprintf(reply->problem, sizeof reply->problem, "no answer within the time limit");
            break;
        }
        loop_run_once(transport->loop,
                      (int)(left_ms < LONGEST_ROUND_MS ? left_ms : LONGEST_ROUND_MS));
    }
    transport->reply = NULL;
}
