/* The answers to a request: whole, or as the end of its event stream. */
#include "call.h"
#include "call_span.h"
#include "deferred_response.h"
#include "refusal.h"
#include "taskgate/core/metrics.h"

void call_respond(struct call *call, int status, const struct http_header *headers, size_t count,
                  struct str body)
{
    struct http_exchange *exchange = call->exchange;
    if (status >= 400)
        call->outcome = "error";
    http_on_gone(exchange, NULL, NULL);
    call_ref(call);
    call_ended(call);
    http_respond(exchange, status, headers, count, body);
    call_unref(call); /* NOLINT(clang-analyzer-unix.Malloc): the reference taken above */
}

static void respond(struct call *call, int status, struct str body)
{
    const struct http_header json = {STR("content-type"), STR("application/json")};
    call_respond(call, status, &json, body.length > 0 ? 1 : 0, body);
}

void call_answer_wrong_verb(struct call *call, const char *allowed)
{
    const struct http_header allow = {STR("allow"), str_from(allowed)};
    call_respond(call, 405, &allow, 1, STR_EMPTY);
}

void call_answer_status(struct call *call, int status, struct str body)
{
    if (status >= 400)
        call_span_fail_status(call, status);
    respond(call, status, body);
}

static void answer(struct call *call, int status, struct str message)
{
    bool expects_one = call->envelope.kind == ENVELOPE_REQUEST;
    if (deferred_response_is_stream(call)) {
        deferred_response_answer(call, message);
        return;
    }
    respond(call, expects_one ? status : 202, expects_one ? message : STR_EMPTY);
}

void call_answer(struct call *call, struct str message)
{
    answer(call, 200, message);
}

void call_answer_result(struct call *call, struct str result)
{
    struct buffer message;
    buffer_init(&message);
    call->dialect->write_own_result(&message, call->envelope.id, result);
    call_answer(call, buffer_str(&message));
    buffer_finish(&message);
}

void call_answer_result_of_server(struct call *call, struct str result)
{
    struct buffer message;
    buffer_init(&message);
    call->dialect->write_result(&message, call->envelope.id, result);
    call_answer(call, buffer_str(&message));
    buffer_finish(&message);
}

void call_answer_error(struct call *call, enum jsonrpc_error error, struct str message,
                       const struct jsonrpc_error_data *data)
{
    const struct dialect_error told = call->dialect->error(error);
    struct buffer object, text;
    buffer_init(&object);
    buffer_init(&text);
    call->outcome = "error";
    call_span_fail(call, told.error);
    metrics_count(METRIC_ERRORS, str_from(jsonrpc_error_type(told.error)),
                  str_from(call->method ? call->method->name : ""));
    jsonrpc_write_error_object(&object, told.error, message, data);
    if (refusal_is_due(call, error)) {
        refusal_write_result(&text, call, error, buffer_str(&object), NULL);
        call_answer_result(call, buffer_str(&text));
    } else {
        jsonrpc_write_error_text(&text, call->envelope.id, buffer_str(&object));
        answer(call, told.status, buffer_str(&text));
    }
    buffer_finish(&text);
    buffer_finish(&object);
}

void call_answer_nothing(struct call *call)
{
    if (deferred_response_is_stream(call))
        call_answer(call, STR_EMPTY);
    else
        call_answer_status(call, 202, STR_EMPTY);
}
