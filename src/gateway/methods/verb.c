/* Requests that are no message: GET opens the client's notification stream, DELETE ends its
 * session. Only the legacy era has them. */
#include "client/legacy_session.h"
#include "client/legacy_stream.h"
#include "conversation/question.h"
#include "conversation/relay.h"
#include "methods.h"
#include "state/source_eras.h"
#include "state/tool_catalog.h"

static void note_stream(struct call *call, int status, const struct headers *headers)
{
    catalog_note_stream(call->worker->gateway->catalog, call->source, status,
                        loop_now_ms(call->worker->loop));
}

static void verb_open_stream(struct call *call)
{
    static const struct looks of_new = {.opened = client_stream_opened,
                                        .take_message = question_take_from_stream,
                                        .head = note_stream};
    static const struct looks of_resumed = {.opened = client_stream_opened,
                                            .take_message = question_take_from_stream,
                                            .head = note_stream,
                                            .rewrite = lists_rewrite_resumed,
                                            .replace_result = skill_contents_refuse_late};
    bool is_resumed = http_header(call->exchange, "last-event-id").length > 0;
    if (atomic_load(&call->worker->gateway->shutting_down))
        call_answer_status(call, 503, STR_EMPTY);
    else if (catalog_lacks_stream(call->worker->gateway->catalog, call->source,
                                  loop_now_ms(call->worker->loop)))
        call_answer_wrong_verb(call, "POST, DELETE");
    else
        relay_start(call, is_resumed ? &of_resumed : &of_new, NULL);
}

void verb_handle(struct call *call)
{
    struct str verb = http_method(call->exchange);
    call_identify(call);
    if (!call_server_has_sessions(call))
        given_session_handle_verb(call);
    else if (!source_eras_has_sessions(call->worker->gateway->eras, call->source,
                                       loop_now_ms(call->worker->loop)))
        call_answer_wrong_verb(call, "POST");
    else if (str_equal(verb, STR("GET")))
        call_with_facts(call, verb_open_stream);
    else if (str_equal(verb, STR("DELETE")))
        session_end_handle(call);
    else
        call_answer_wrong_verb(call, "GET, POST, DELETE");
}
