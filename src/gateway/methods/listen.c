/* `subscriptions/listen` (MCP 2026-07-28, patterns/subscriptions): a stream of notifications, one
 * to one with the server's. The gateway leaves out news of resources that the client may not see,
 * and adds its own: changes of its tasks, and of the tools after a reload. If the server knows no
 * such stream, or is asked for nothing, the gateway serves its own part alone. */
#include "listen.h"

#include <stdlib.h>
#include <string.h>

#include "call/call.h"
#include "call/deferred_response.h"
#include "listen_internal.h"
#include "methods.h"
#include "relay/relay.h"
#include "server/credential_check.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/identity/identity.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect_modern.h"
#include "taskgate/mcp/method.h"

#define RESOURCE_UPDATED "notifications/resources/updated"
#define METHOD_NOT_FOUND STR("-32601")

/* ---- its life ---- */

static void end_gracefully(struct call *call)
{
    struct buffer message = {0}, result = {0};
    buffer_append_text(&result, "{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":");
    buffer_append(&result, call->envelope.id);
    buffer_append_text(&result, "}}");
    call->dialect->write_own_result(&message, call->envelope.id, buffer_str(&result));
    buffer_finish(&result);
    if (relay_is_under_way(call))
        relay_end_with(call, buffer_str(&message));
    else
        call_answer(call, buffer_str(&message));
    buffer_finish(&message);
}

static void on_token_end(void *context)
{
    end_gracefully(listening_from(context)->call);
}

static void on_sign_of_life(void *context)
{
    struct listening *listening = listening_from(context);
    loop_timer_start(&listening->life, SIGN_OF_LIFE_MS);
    relay_show_life(listening->call);
}

static struct listening *create(struct call *call, const struct mcp_subscription *wanted,
                                const char *address)
{
    struct listening *listening = memory_alloc(sizeof *listening);
    *listening = (struct listening){.call = call, .wants_tools = wanted->wants_tools};
    MAGIC_SET(listening, LISTENING_MAGIC);
    memcpy(listening->address, address, sizeof listening->address);
    loop_timer_init(&listening->end, call->worker->loop, on_token_end, listening);
    loop_timer_init(&listening->life, call->worker->loop, on_sign_of_life, listening);
    if (call->identity)
        loop_timer_start(&listening->end, call->identity->until_ms - clock_now_ms());
    listen_tasks_init(listening, wanted->task_ids);
    listening_add(call, listening);
    return listening;
}

/* ---- the acknowledgement ---- */

static bool has_own(const struct listening *listening)
{
    return listening->wants_tools || listening->task_count > 0;
}

/* With the server's own message, where there is one, and all else that this has. */
static void write_acknowledgement(const struct listening *listening, struct str theirs,
                                  struct buffer *out)
{
    struct str id = listening->call->envelope.id, params = json_member(theirs, "params");
    struct buffer own = {0}, honoured = {0}, marked = {0}, whole = {0}, meta = {0};
    listen_tasks_write_ids(listening, &own);
    mcp_subscription_write_honoured(&honoured, json_member(params, "notifications"),
                                    listening->wants_tools, buffer_str(&own));
    json_write_with_member(&meta, json_member(params, "_meta"),
                           "io.modelcontextprotocol/subscriptionId", id);
    json_write_with_member(&marked, params, "notifications", buffer_str(&honoured));
    json_write_with_member(&whole, buffer_str(&marked), "_meta", buffer_str(&meta));
    if (theirs.length == 0)
        theirs = STR("{\"jsonrpc\":\"2.0\",\"method\":\"" MCP_ACKNOWLEDGED "\"}");
    json_write_with_member(out, theirs, "params", buffer_str(&whole));
    buffer_finish(&meta);
    buffer_finish(&whole);
    buffer_finish(&marked);
    buffer_finish(&honoured);
    buffer_finish(&own);
}

/* From here on the client hears of changes; what has changed before is told at once. */
static void acknowledge(struct listening *listening, struct str theirs)
{
    struct buffer message;
    buffer_init(&message);
    write_acknowledgement(listening, theirs, &message);
    relay_pass(listening->call, buffer_str(&message));
    buffer_finish(&message);
    listening->is_open = true;
    listen_tasks_tell(listening);
}

/* ---- the gateway alone ---- */

static void open_stream(struct call *call)
{
    deferred_response_begin(call, "Listening", STR_EMPTY);
    deferred_response_be_quiet(call);
    deferred_response_open(call);
}

/* The stream of the server's that has begun stays the client's. */
static void go_on_alone(struct call *call, bool has_begun)
{
    struct listening *listening = listening_find(call);
    loop_timer_stop(&listening->life);
    if (has_begun)
        deferred_response_take_stream(call, "Listening");
    else
        open_stream(call);
    if (!listening->is_open)
        acknowledge(listening, STR_EMPTY);
    if (!has_own(listening))
        end_gracefully(call);
}

/* ---- with the server ---- */

static bool is_hidden(const struct call *call, struct str message)
{
    struct buffer uri;
    buffer_init(&uri);
    bool is_hidden = !json_decode_string(json_path(message, "params", "uri"), &uri) ||
                     !policy_is_uri_visible(call->snapshot->policy, call->source, buffer_str(&uri));
    buffer_finish(&uri);
    return is_hidden;
}

static bool says_not_found(struct str message)
{
    return str_equal(json_path(message, "error", "code"), METHOD_NOT_FOUND);
}

/* The end of a subscription of which the server has honoured nothing, or its refusal. */
static bool is_servers_leave(const struct listening *listening, struct str message)
{
    if (!has_own(listening))
        return false;
    if (!listening->is_open)
        return says_not_found(message);
    return listening->server_left && json_member(message, "result").length > 0;
}

/* The snapshot is that of the request: a listener of before a reload is told that lists changed,
 * and listens anew. */
static bool take_message(struct call *call, struct str message)
{
    struct listening *listening = listening_find(call);
    struct str method = json_member(message, "method");
    if (method.length == 0) {
        bool is_leave = is_servers_leave(listening, message);
        listening->server_left |= is_leave;
        return is_leave;
    }
    if (json_string_equals(method, STR(MCP_ACKNOWLEDGED)) && !listening->is_open) {
        listening->server_left = json_count(json_path(message, "params", "notifications")) == 0;
        acknowledge(listening, message);
        return true;
    }
    return json_string_equals(method, STR(RESOURCE_UPDATED)) && is_hidden(call, message);
}

/* A server without this method; its own clients would know it by its HTTP status. */
static bool outlives(struct call *call, int status, struct str reply)
{
    const struct listening *listening = listening_find(call);
    if (!has_own(listening))
        return false;
    if (reply.length == 0 && listening->server_left)
        return true; /* its stream has ended */
    if (listening->is_open)
        return false;
    if (json_check(reply, NULL) && json_member(reply, "error").length > 0)
        return says_not_found(reply);
    return status == 404 || status == 405 || status == 501;
}

/* ---- with a listener at a server of the other era ---- */

static void on_opened(void *context, struct str honoured)
{
    struct listening *listening = listening_from(context);
    struct call *call = listening->call;
    struct buffer message;
    buffer_init(&message);
    open_stream(call);
    buffer_append_format(&message,
                         "{\"jsonrpc\":\"2.0\",\"method\":\"" MCP_ACKNOWLEDGED
                         "\",\"params\":{\"notifications\":%.*s}}",
                         STR_ARGS(honoured));
    acknowledge(listening, buffer_str(&message));
    buffer_finish(&message);
    if (json_count(honoured) == 0 && !has_own(listening))
        end_gracefully(call);
}

static void on_message(void *context, struct str method, struct str message)
{
    struct call *call = listening_from(context)->call;
    struct buffer params = {0}, meta = {0}, marked = {0};
    (void)method;
    json_write_with_member(&meta, json_path(message, "params", "_meta"),
                           "io.modelcontextprotocol/subscriptionId", call->envelope.id);
    json_write_with_member(&params, json_member(message, "params"), "_meta", buffer_str(&meta));
    json_write_with_member(&marked, message, "params", buffer_str(&params));
    relay_pass(call, buffer_str(&marked));
    buffer_finish(&params);
    buffer_finish(&meta);
    buffer_finish(&marked);
}

static void on_ended(void *context, const struct listener *listener)
{
    (void)listener;
    end_gracefully(listening_from(context)->call);
}

/* Puts `filter` in the place of the client's. */
static bool replace_filter(struct call *call, struct str filter)
{
    struct str old = call->envelope.notifications;
    struct error error = {""};
    struct buffer text;
    if (str_equal(old, filter))
        return true;
    buffer_init(&text);
    envelope_write_replaced(&call->envelope, old, filter, &text);
    return call_replace_body(call, &text, &error) == ENVELOPE_OK;
}

static void open(struct call *call)
{
    const struct relay_options options = {.take_message = take_message,
                                          .takes_responses = true,
                                          .outlives = outlives,
                                          .alone = go_on_alone};
    static const struct listener_events events = {
        .opened = on_opened, .message = on_message, .ended = on_ended};
    struct listening *listening = listening_find(call);
    struct buffer rest;
    buffer_init(&rest);
    bool asks_server = mcp_subscription_write_rest(&rest, call->envelope.notifications);
    if (atomic_load(&call->worker->gateway->shutting_down)) {
        end_gracefully(call);
    } else if (!asks_server && json_count(call->envelope.notifications) > 0) {
        go_on_alone(call, false);
    } else if (call_server_has_sessions(call)) {
        server_listen(call, call->envelope.notifications, &events, listening, &listening->listener);
    } else if (asks_server && !replace_filter(call, buffer_str(&rest))) {
        call_answer_error(call, JSONRPC_INTERNAL, STR_EMPTY, NULL);
    } else {
        loop_timer_start(&listening->life, SIGN_OF_LIFE_MS);
        relay_start(call, &options);
    }
    buffer_finish(&rest);
}

/* ---- the request ---- */

static void read_tasks(struct call *call)
{
    listen_tasks_read(call, open);
}

/* The server must accept who asks before anything is said of a task. */
static void verify(struct call *call)
{
    credential_check_then(call, read_tasks);
}

static void refuse_for_place(struct call *call)
{
    const struct jsonrpc_error_data data = {
        .details = STR("too many streams of subscriptions/listen are open")};
    metrics_count(METRIC_LIMITS_REACHED, STR("listens"));
    call_answer_error(call, JSONRPC_INTERNAL, STR_EMPTY, &data);
}

static void begin(struct call *call, const struct mcp_subscription *wanted, const char *address)
{
    const struct listening *listening = create(call, wanted, address);
    call_own_body(call);
    if (listening->task_count > 0)
        call_with_facts(call, verify);
    else
        open(call);
}

void listen_handle(struct call *call)
{
    struct str filter = call->envelope.notifications;
    struct jsonrpc_error_data needs_tasks = {.required_capabilities = MODERN_REQUIRES_TASKS};
    struct mcp_subscription wanted;
    char address[LISTENING_ADDRESS_BYTES] = "";
    const char *wrong = json_type(filter) == JSON_OBJECT ? mcp_subscription_read(filter, &wanted)
                                                         : "params.notifications must be an object";
    if (wrong)
        methods_refuse_params(call, wrong);
    else if (wanted.task_ids.length > 0 &&
             !dialect_modern_declares_tasks(call->envelope.reserved.client_capabilities))
        call_answer_error(call, JSONRPC_MISSING_CAPABILITY, STR_EMPTY, &needs_tasks);
    else if (!deferred_response_may_stream(call))
        methods_refuse_params(call, "the Accept header must name text/event-stream");
    else if (!listening_takes_place(call, address))
        refuse_for_place(call);
    else
        begin(call, &wanted, address);
}

/* ---- the gateway's own news ---- */

static void tell_of_tools(struct call *call)
{
    struct buffer message;
    buffer_init(&message);
    buffer_append_text(&message, "{\"jsonrpc\":\"2.0\",\"method\":\"" MCP_TOOLS_CHANGED
                                 "\",\"params\":{\"_meta\":{"
                                 "\"io.modelcontextprotocol/subscriptionId\":");
    buffer_append(&message, call->envelope.id);
    buffer_append_text(&message, "}}}");
    relay_pass(call, buffer_str(&message));
    buffer_finish(&message);
}

void listen_tell_of_tools(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->listens) {
        const struct listening *listening = LIST_ENTRY(node, struct listening, node);
        if (listening->wants_tools && listening->is_open)
            tell_of_tools(listening->call);
    }
}

void listen_end_all(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->listens) {
        end_gracefully(LIST_ENTRY(node, struct listening, node)->call);
    }
}
