/* Responses to requests of the server, sent without waiting for their arrival. */
#include "input_internal.h"
#include "server/http.h"

void input_write_response(struct buffer *body, struct str id, const struct input_response *response)
{
    if (response->result.length > 0) {
        jsonrpc_write_result(body, id, response->result);
    } else if (response->error.length > 0) {
        jsonrpc_write_error_text(body, id, response->error);
    } else {
        struct buffer error;
        buffer_init(&error);
        buffer_append_format(&error, "{\"code\":%d,\"message\":", response->error_code);
        buffer_append_json_string(&error, response->error_message);
        buffer_append_char(&error, '}');
        jsonrpc_write_error_text(body, id, buffer_str(&error));
        buffer_finish(&error);
    }
}

void input_respond_to(const struct input_origin *origin, struct str id,
                      const struct input_response *response)
{
    struct buffer body;
    if (origin->take_answer) {
        const struct input_asked asked = {
            .asker = origin->worker, .task = origin->task, .call = origin->call, .id = id};
        origin->take_answer(origin->worker, &asked, response);
        return;
    }
    buffer_init(&body);
    input_write_response(&body, id, response);
    const struct sending sending = {.source = origin->source,
                                    .snapshot = origin->snapshot,
                                    .headers = origin->headers,
                                    .body = buffer_str(&body)};
    exchange_notify(origin->worker, &sending);
    buffer_finish(&body);
}

void input_respond(struct gateway_worker *worker, const struct kept_input *kept,
                   const struct input_response *response)
{
    struct str id = str_from(kept->input.upstream_id);
    if (kept->take_answer) {
        const struct input_asked asked = {kept->worker, kept->task, kept->input.call,
                                          kept->input.kind, id};
        kept->take_answer(worker, &asked, response);
        return;
    }
    const struct input_origin origin = {.worker = worker,
                                        .snapshot = kept->snapshot,
                                        .source = kept->source,
                                        .headers = &kept->headers};
    input_respond_to(&origin, id, response);
}
