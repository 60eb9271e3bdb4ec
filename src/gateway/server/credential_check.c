/* Asks the server whether it accepts a request's session and token. The gateway cannot judge a
 * token itself (behaviour 4.4). */
#include "credential_check.h"
#include "call/call.h"
#include "own.h"
#include "server_refusal.h"
#include "sessions.h"
#include "state/session_table.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"

#define ACCEPTED_FOR_MS 300000 /* five minutes */
#define PING_SILENCE_MS 10000
#define PING_MOST_BYTES ((size_t)256 * 1024)
#define MOST_QUOTED_BYTES 500 /* of an error, in an answer */

static void on_known_pair(struct call *call, const struct store_reply *reply)
{
    const struct jsonrpc_error_data data = {
        .details = STR("upstream cannot be asked whether it accepts this session")};
    if (reply->status == STORE_OK)
        call->next(call);
    else
        call_answer_error(call, JSONRPC_UPSTREAM_FAILED, STR_EMPTY, &data);
}

/* The request that tests credentials. A modern server knows no ping, and may tell anybody who asks
 * what it is (`server/discover`): its list of tools is what it shows to those only whom it
 * accepts. */
struct question {
    const char *method, *spoken;
};

static const struct question *credential_check_question_of(const struct call *call)
{
    static const struct question ping = {"ping", "a ping"};
    static const struct question list = {"tools/list", "tools/list"};
    return call_server_has_sessions(call) ? &ping : &list;
}

/* The server has answered with HTTP 200 and an error, or with no answer to the question. It has
 * not accepted this client. */
static void answer_unvouched(struct call *call, const struct exchange_reply *reply)
{
    struct str error = json_member(reply->message, "error");
    OWNED_BUFFER(details);
    buffer_append_text(&details, "upstream does not vouch for this session and token: ");
    if (error.length > 0)
        buffer_append_format(
            &details, "it answers %s with the error %.*s",
            credential_check_question_of(call)->spoken,
            (int)(error.length < MOST_QUOTED_BYTES ? error.length : MOST_QUOTED_BYTES),
            error.bytes);
    else
        buffer_append_format(&details, "it answers %s with no result",
                             credential_check_question_of(call)->spoken);
    struct jsonrpc_error_data data = {.details = buffer_str(&details)};
    call_answer_error(call, JSONRPC_UPSTREAM_FAILED, STR_EMPTY, &data);
}

static void on_pong(struct call *call, const struct exchange_reply *reply, call_step next)
{
    struct gateway *gateway = call->worker->gateway;
    struct str source = str_from(call->source->id), session = str_from(call->session),
               token = str_from(call->token);
    if (reply->status >= 400 && reply->status < 500) {
        server_refusal_pass(call, reply); /* 400 is how some servers name an unknown session */
    } else if (reply->status > 0 && reply->status < 500 && !reply->unreadable &&
               json_member(reply->message, "result").length == 0) {
        answer_unvouched(call, reply);
    } else if (reply->status > 0 && reply->status < 500 && !reply->unreadable) {
        call_note_acceptance(call, session);
        call->next(call);
    } else if (accepted_pairs_ago_ms(gateway->accepted_pairs, source, session, token,
                                     clock_monotonic_ms()) != INT64_MAX) {
        call->next(call); /* the server is down, and has accepted them before */
    } else {
        store_pair_get(gateway->store, source, session, token, call_to_store(call, on_known_pair));
    }
}

static void credential_check_write_question(struct call *call, struct headers *headers,
                                            struct buffer *body, struct buffer *id)
{
    struct headers own;
    headers_init(&own, false);
    headers_from_call(&own, call);
    headers_add_all(headers, &own);
    if (call_server_has_sessions(call)) {
        exchange_write_request(body, id, credential_check_question_of(call)->method, STR_EMPTY);
    } else {
        modern_request_set_headers(headers, credential_check_question_of(call)->method);
        modern_request_write(body, id, credential_check_question_of(call)->method, STR_EMPTY);
    }
    headers_finish(&own);
}

/* The call has a session now. */
static void check_again(struct call *call)
{
    credential_check_then(call, call->next);
}

/* A server with sessions refuses the ping of a request without one, whoever sends it. */
static bool is_owner_by_token(const struct call *call)
{
    return call->dialect->has_sessions && !call->session[0] && call->token[0] &&
           call->source->identity != IDENTITY_SESSION &&
           accepted_pairs_token_ago_ms(call->worker->gateway->accepted_pairs,
                                       str_from(call->source->id), str_from(call->token),
                                       clock_monotonic_ms()) <= ACCEPTED_FOR_MS;
}

void credential_check_owner_then(struct call *call, call_step next)
{
    if (is_owner_by_token(call))
        next(call);
    else
        credential_check_then(call, next);
}

void credential_check_then(struct call *call, call_step next)
{
    int64_t ago =
        accepted_pairs_ago_ms(call->worker->gateway->accepted_pairs, str_from(call->source->id),
                              str_from(call->session), str_from(call->token), clock_monotonic_ms());
    /* A verified token needs nobody to vouch for it, and the server may not know it at all. */
    if (call->identity || ago <= ACCEPTED_FOR_MS) {
        next(call);
        return;
    }
    if (call_leases_session(call) && !call->upstream_session) {
        call->next = next;
        session_pool_then(call, check_again);
        return;
    }
    OWNED_BUFFER(body);
    OWNED_BUFFER(id);
    struct headers headers;
    headers_init(&headers, true);
    credential_check_write_question(call, &headers, &body, &id);
    const struct exchange_question question = {
        .headers = &headers,
        .body = buffer_str(&body),
        .id = buffer_str(&id),
        .limit_ms = PING_SILENCE_MS,
        .most_bytes = call_server_has_sessions(call)
                          ? PING_MOST_BYTES
                          : (size_t)call->snapshot->config->limits.result_bytes,
        .answered = on_pong,
    };
    call->next = next;
    server_ask(call, &question);
    headers_finish(&headers);
}
