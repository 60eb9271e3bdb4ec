/* Sessions that their server refuses to end. */
#include "parked_sessions.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/digest.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"

#define MOST_PARKED 64 /* of a worker: sessions of earlier configurations are never taken */
#define PATIENCE_MS 10000
#define MOST_BYTES 65536

struct parked_session {
    uint32_t magic;   /* PARKED_SESSION_MAGIC */
    struct list node; /* in the worker's */
    struct gateway_worker *worker;
    char server[DIGEST_HEX_BYTES]; /* its address and static headers */
    struct headers headers;
};
#define PARKED_SESSION_MAGIC 0x47575050

static struct parked_session *parked_session_from(void *context)
{
    return MAGIC_CAST(struct parked_session, PARKED_SESSION_MAGIC, context);
}

static void digest_server(const struct config_source *source, char digest[DIGEST_HEX_BYTES])
{
    struct buffer text = {0};
    buffer_append_format(&text, "%s\n", source->url);
    for (size_t i = 0; i < source->header_count; i++)
        buffer_append_format(&text, "%s:%s\n", source->headers[i].name, source->headers[i].value);
    digest_sha256_hex(buffer_str(&text), digest);
    buffer_finish(&text);
}

static void destroy(void *context)
{
    struct parked_session *session = parked_session_from(context);
    headers_finish(&session->headers);
    MAGIC_CLEAR(session);
    free(session);
}

static void forget(struct parked_session *session)
{
    list_remove(&session->node);
    session->worker->parked_session_count--;
    destroy(session);
}

static void on_ended(void *context, const struct rpc_call_reply *reply)
{
    struct parked_session *session = parked_session_from(context);
    struct gateway_worker *worker = session->worker;
    if (reply->status < 400 || reply->status == 404) {
        destroy(session);
        return;
    }
    list_append(&worker->parked_sessions, &session->node);
    if (++worker->parked_session_count > MOST_PARKED)
        forget(LIST_ENTRY(worker->parked_sessions.next, struct parked_session, node));
}

void parked_sessions_end(struct gateway_worker *worker, struct snapshot *snapshot,
                         const struct config_source *source, const struct headers *headers)
{
    static const struct rpc_call_callbacks callbacks = {.reply = on_ended, .dropped = destroy};
    if (headers_find(headers, "mcp-session-id").length == 0)
        return;
    struct parked_session *session = memory_alloc(sizeof *session);
    MAGIC_SET(session, PARKED_SESSION_MAGIC);
    session->worker = worker;
    digest_server(source, session->server);
    headers_init(&session->headers, true);
    headers_add_all(&session->headers, headers);
    const struct rpc_call_options options = {.source = source,
                                             .snapshot = snapshot,
                                             .headers = headers,
                                             .method = "DELETE",
                                             .total_ms = PATIENCE_MS,
                                             .most_bytes = MOST_BYTES};
    rpc_call_start(worker, &options, &callbacks, session);
}

bool parked_sessions_take(struct gateway_worker *worker, const struct config_source *source,
                          struct headers *headers)
{
    char server[DIGEST_HEX_BYTES];
    digest_server(source, server);
    LIST_FOR_EACH_SAFE (node, next, &worker->parked_sessions) {
        struct parked_session *session = LIST_ENTRY(node, struct parked_session, node);
        if (strcmp(session->server, server) != 0)
            continue;
        headers_finish(headers);
        headers_add_all(headers, &session->headers);
        forget(session);
        return true;
    }
    return false;
}

void parked_sessions_finish(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->parked_sessions)
        forget(LIST_ENTRY(node, struct parked_session, node));
}
