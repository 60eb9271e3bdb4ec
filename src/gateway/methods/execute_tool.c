/* execute_tool: any tool of a server, called with a patience of the caller's own. */
#include "call/client_profile.h"
#include "methods.h"
#include "pseudo_tool_call.h"
#include "taskgate/json/text.h"
#include "tools/answer.h"

#define MOST_PATIENCE_MS INT64_C(900000)

/* Names of tools stand in `why` as in tools/tool_names.h. */
static void fail(struct call *call, struct str what, const char *why)
{
    struct buffer text;
    buffer_init(&text);
    buffer_append_format(&text, "Failed to execute tool: '%.*s' ", STR_ARGS(what));
    pseudo_tools_write_text(call, why, &text);
    pseudo_answer_text(call, buffer_str(&text), true);
    buffer_finish(&text);
}

/* Writes the plain call that the client would have sent: with its own id, and with its own _meta,
 * which holds the progress token. */
static void write_plain_call(struct buffer *body, const struct call *call, struct str arguments)
{
    const struct envelope *envelope = &call->envelope;
    struct str args = json_member(arguments, "args");
    buffer_append_format(body,
                         "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"method\":\"tools/call\","
                         "\"params\":{\"name\":%.*s",
                         STR_ARGS(envelope->id), STR_ARGS(json_member(arguments, "tool")));
    if (json_type(args) == JSON_OBJECT)
        buffer_append_format(body, ",\"arguments\":%.*s", STR_ARGS(args));
    if (envelope->meta.raw.length > 0)
        buffer_append_format(body, ",\"_meta\":%.*s", STR_ARGS(envelope->meta.raw));
    buffer_append_text(body, "}}");
}

/* A client that hears of progress waits for longer than one that does not, unless it has a limit of
 * its own. */
static int64_t patience_ms(const struct call *call, struct str arguments)
{
    const struct config_pseudo *pseudo = &call->snapshot->config->pseudo;
    bool hears = call->envelope.progress_token.length > 0;
    bool is_bounded = !hears || client_own_wait_ms(call) > 0;
    int64_t wait_ms = client_wait_ms(call, hears), usual_ms = pseudo->execute_timeout_ms;
    if (is_bounded && wait_ms < usual_ms)
        usual_ms = wait_ms;
    return pseudo_argument_number(arguments, "timeout_ms", MOST_PATIENCE_MS, usual_ms);
}

/* The arguments have become the call itself. */
static void execute(struct call *call, struct str arguments)
{
    struct error error = {""};
    struct buffer body = {0}, tool = {0};
    int64_t wait_ms = patience_ms(call, arguments);
    pseudo_argument_text(arguments, "tool", &tool);
    write_plain_call(&body, call, arguments);
    if (call_replace_body(call, &body, &error) != ENVELOPE_OK)
        fail(call, buffer_str(&tool), "cannot be called with these arguments");
    else if (pseudo_tool_called(call))
        fail(call, buffer_str(&tool), "is no server's tool: call it by itself");
    else
        tools_call_execute(call, wait_ms);
    buffer_finish(&tool);
}

void pseudo_tool_execute_tool(struct call *call, struct str arguments)
{
    struct buffer server = {0};
    pseudo_argument_text(arguments, "server", &server);
    if (!str_equal(buffer_str(&server), str_from(call->source->id)))
        fail(call, buffer_str(&server),
             "is no server that can be reached here[[; see {list_servers}]]");
    else
        execute(call, arguments);
    buffer_finish(&server);
}
