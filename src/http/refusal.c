/*
 * Refusals that h2o makes by itself, in the words of the owner. A body that is too large, and
 * framing that cannot be read, never become an exchange. h2o answers them with a line of text
 * through its fallback path. A filter there puts the owner's JSON in place of the line.
 */
#include "server_internal.h"
#include "taskgate/core/owned.h"

struct refusal_stream {
    h2o_ostream_t super; /* first: h2o hands it back */
    h2o_iovec_t body;
};

/* In `pool` memory; empty when the owner has no text for the status. */
static h2o_iovec_t words_for(const struct http_server *server, int status, h2o_mem_pool_t *pool)
{
    OWNED_BUFFER(body);
    if (server->options.refusal != NULL)
        server->options.refusal(status, &body, server->options.context);
    h2o_iovec_t copy = {NULL, 0};
    if (body.length > 0)
        copy = h2o_strdup(pool, body.bytes, body.length);
    return copy;
}

static void refusal_send_words(h2o_ostream_t *self, h2o_req_t *request, h2o_iovec_t *buffers,
                               size_t count, h2o_send_state_t state)
{
    struct refusal_stream *stream = (struct refusal_stream *)self;
    bool has_body = count > 0; /* not to HEAD */
    h2o_ostream_send_next(self, request, has_body ? &stream->body : NULL, has_body ? 1 : 0, state);
}

static void refusal_on_refusal(h2o_filter_t *self, h2o_req_t *request, h2o_ostream_t **slot)
{
    struct connection *connection = connection_of(request);
    h2o_iovec_t body = {NULL, 0};
    if (connection != NULL)
        body = words_for(connection->server, request->res.status, &request->pool);
    if (body.len > 0) {
        struct refusal_stream *stream = (void *)h2o_add_ostream(request, sizeof(*stream), slot);
        stream->super.do_send = refusal_send_words;
        stream->body = body;
        slot = &stream->super.next;
        request->res.content_length = body.len;
        request->res.reason = status_reason(request->res.status);
        h2o_set_header(&request->pool, &request->res.headers, H2O_TOKEN_CONTENT_TYPE,
                       H2O_STRLIT("application/json"), 1);
    }
    h2o_setup_next_ostream(request, slot);
}

void refusal_register(h2o_pathconf_t *path)
{
    h2o_create_filter(path, sizeof(h2o_filter_t))->on_setup_ostream = refusal_on_refusal;
}

void refusal_respond(struct http_exchange *exchange, int status)
{
    h2o_iovec_t body = words_for(exchange->connection->server, status, &exchange->request->pool);
    http_respond_text(exchange, status, body.len > 0 ? "application/json" : "text/plain",
                      str_slice(body.base, body.len));
}
