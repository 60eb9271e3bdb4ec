/* Listen streams of modern clients. */
#include "listen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call/call.h"
#include "call/deferred_response.h"
#include "conversation/execute.h"
#include "conversation/relay.h"
#include "conversation/rounds.h"
#include "replicas/news.h"
#include "server/credential_check.h"
#include "server/listen.h"
#include "state/quota.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/identity/identity.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect_modern.h"
#include "taskgate/mcp/method.h"
#include "taskgate/mcp/subscription.h"

#define RESOURCE_UPDATED "notifications/resources/updated"
#define METHOD_NOT_FOUND STR("-32601")

/* A task of the gateway's own, of whose changes the client is notified. */
struct listened_task {
    char id[TASK_ID_BYTES];
    struct task *task;           /* as it was last seen; NULL until it has been read */
    char sent[DIGEST_HEX_BYTES]; /* digest of the last notification */
    /* The questions of its server at another replica, by its news. */
    struct buffer asked; /* JSON object; empty: nothing */
    int64_t asked_ms, asked_sequence;
};

#define LISTENING_ADDRESS_BYTES 48

struct listening {
    uint32_t magic; /* LISTENING_MAGIC */
    struct list node;
    struct call_part part;
    struct call *call;
    struct listener *listener;             /* NULL: the server's stream passes, or there is none */
    char address[LISTENING_ADDRESS_BYTES]; /* of a client that is not known; "" */
    struct loop_timer end; /* when the token ends that the request was let in with */
    bool wants_tools;
    bool is_open;     /* the client has its acknowledgement */
    bool server_left; /* the server serves nothing of it: the gateway goes on by itself */
    struct listened_task *tasks;
    size_t task_count, read_count;
};
#define LISTENING_MAGIC 0x4757580e

static inline struct listening *listening_from(void *context)
{
    return MAGIC_CAST(struct listening, LISTENING_MAGIC, context);
}

/* ---- its place among those that are open ---- */

/* Takes a place for the call's stream, for `address` too if the client is not known; else "".
 * false: its owner or address has as many streams as allowed, or all have. */
static bool listening_takes_place(const struct call *call, char address[LISTENING_ADDRESS_BYTES])
{
    const struct config_limits *limits = &call->snapshot->config->limits;
    struct gateway *gateway = call->worker->gateway;
    bool is_anybody = owner_is_anybody(call->owner);
    *address = '\0';
    /* Clients without a token cannot be told apart, and tokens can be made up. */
    if (call_is_unknown(call)) {
        snprintf(address, LISTENING_ADDRESS_BYTES, "%.*s", STR_ARGS(http_peer(call->exchange)));
        if (!quota_take(gateway->unknown_listens, str_from(address),
                        quota_share(limits, limits->listens), INT64_MAX))
            return false;
    }
    bool is_free =
        quota_take(gateway->listens, str_from(call->owner),
                   is_anybody ? limits->listens : limits->listens_per_principal, limits->listens);
    if (*address && !is_free)
        quota_give_back(gateway->unknown_listens, str_from(address));
    return is_free;
}

static void drop_listening(struct call *call, void *object)
{
    struct listening *listening = listening_from(object);
    listener_stop(listening->listener);
    quota_give_back(call->worker->gateway->listens, str_from(call->owner));
    if (*listening->address)
        quota_give_back(call->worker->gateway->unknown_listens, str_from(listening->address));
    list_remove(&listening->node);
    atomic_fetch_sub(&call->worker->gateway->listening, 1);
    loop_timer_stop(&listening->end);
    for (size_t i = 0; i < listening->task_count; i++) {
        buffer_finish(&listening->tasks[i].asked);
        task_unref(listening->tasks[i].task);
    }
    free(listening->tasks);
    MAGIC_CLEAR(listening);
    free(listening);
}

static const struct call_part_kind listening_kind =
    CALL_PART_KIND(struct listening, drop_listening);

static struct listening *listening_find(const struct call *call)
{
    return call_part_find(call, &listening_kind);
}

/* ---- its life ---- */

static void end_gracefully(struct call *call)
{
    OWNED_BUFFER(message);
    OWNED_BUFFER(result);
    buffer_append_text(&result, "{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":");
    buffer_append(&result, call->envelope.id);
    buffer_append_text(&result, "}}");
    call->dialect->write_own_result(&message, call->envelope.id, buffer_str(&result));
    relay_end_with(call, buffer_str(&message));
}

static void on_token_end(void *context)
{
    end_gracefully(listening_from(context)->call);
}

/* ---- the gateway's own tasks ---- */

static struct listened_task *find_listened(struct listening *listening, struct str id)
{
    for (size_t i = 0; i < listening->task_count; i++) {
        if (str_equal(str_from(listening->tasks[i].id), id))
            return &listening->tasks[i];
    }
    return NULL;
}

static void add_listened(struct listening *listening, struct str id)
{
    if (!task_id_is_ours(id) || id.length >= TASK_ID_BYTES ||
        memchr(id.bytes, '\0', id.length) != NULL || find_listened(listening, id))
        return;
    listening->tasks =
        memory_grow_array(listening->tasks, listening->task_count + 1, sizeof *listening->tasks);
    struct listened_task *listened = &listening->tasks[listening->task_count++];
    memset(listened, 0, sizeof *listened);
    memcpy(listened->id, id.bytes, id.length);
}

/* Those of the filter's list that are the gateway's own, each once. */
static void add_tasks(struct listening *listening, struct str task_ids)
{
    struct str element;
    OWNED_BUFFER(id);
    for (size_t position = 0; json_next_element(task_ids, &position, &element);) {
        buffer_clear(&id);
        json_decode_string(element, &id);
        add_listened(listening, buffer_str(&id));
    }
}

static void read_next_task(struct call *call);

static void leave_out(struct listening *listening, size_t at)
{
    ASSERT_NUMBERS(at, <, listening->task_count);
    memmove(&listening->tasks[at], &listening->tasks[at + 1],
            (listening->task_count - at - 1) * sizeof *listening->tasks);
    listening->task_count--;
}

/* Another replica may run it, and knows what its server has asked before. */
static void ask_others(const struct call *call, const struct task *task)
{
    struct news news = {.kind = NEWS_TASK_WANTED};
    snprintf(news.task, sizeof news.task, "%s", task->id);
    news_send(call->worker, &news);
}

/* A client that listens waits for the result. Its credentials are fresh. */
static void take_listened(struct call *call, struct listened_task *listened, struct task *task)
{
    if (task->state == TASK_EXECUTING)
        ask_others(call, task);
    listened->task = execution_offer_shown(call, task, true);
}

static void on_task_read(struct call *call, const struct store_reply *reply)
{
    struct listening *listening = listening_find(call);
    if (listening && reply->status == STORE_FAILED) {
        call_answer_no_store(call);
    } else if (listening) {
        struct listened_task *listened = &listening->tasks[listening->read_count];
        struct task *task = call_own_task(call, reply, str_from(listened->id));
        if (task) {
            take_listened(call, listened, task);
            listening->read_count++;
        } else {
            leave_out(listening, listening->read_count);
        }
        read_next_task(call);
    }
}

static void open_listening(struct call *call);

/* One after the other; those that are not the client's are left out. A change comes behind the
 * answer that does not have it. */
static void read_next_task(struct call *call)
{
    struct listening *listening = listening_find(call);
    ASSERT_NUMBERS(listening->read_count, <=, listening->task_count);
    if (listening->read_count == listening->task_count)
        open_listening(call);
    else
        store_task_get(call->worker->gateway->store,
                       str_from(listening->tasks[listening->read_count].id),
                       call_to_store(call, on_task_read));
}

/* As JSON strings with commas between them. */
static void write_task_ids(const struct listening *listening, struct buffer *out)
{
    for (size_t i = 0; i < listening->task_count; i++)
        buffer_append_format(out, "%s\"%s\"", i > 0 ? "," : "", listening->tasks[i].id);
}

/* The same text is sent once. */
static bool is_first_of_text(struct listened_task *listened, struct str message)
{
    char digest[DIGEST_HEX_BYTES];
    digest_sha256_hex(message, digest);
    if (strcmp(digest, listened->sent) == 0)
        return false;
    memcpy(listened->sent, digest, sizeof digest);
    return true;
}

/* The server's questions: of a call that runs here, or else by the news of another replica. */
static void look_at_requests(const struct listening *listening,
                             const struct listened_task *listened, struct dialect_view *view,
                             struct buffer *requests)
{
    struct question_table *rounds = listening->call->worker->gateway->questions;
    if (listened->task->state != TASK_EXECUTING)
        return;
    if (rounds_show(rounds, str_from(listened->id), requests, &view->changed_ms)) {
        view->input_requests = buffer_str(requests);
    } else if (listened->asked_sequence > 0) {
        view->input_requests = buffer_str(&listened->asked);
        view->changed_ms = listened->asked_ms;
    }
}

static void notify_of_task(struct listening *listening, struct listened_task *listened)
{
    struct call *call = listening->call;
    struct dialect_view view = {.now_ms = clock_now_ms()};
    OWNED_BUFFER(message);
    OWNED_BUFFER(requests);
    ASSERT(listening->is_open && listened->task);
    look_at_requests(listening, listened, &view, &requests);
    dialect_modern_write_notification(&message, listened->task, &view, call->envelope.id);
    if (is_first_of_text(listened, buffer_str(&message)))
        relay_pass(call, buffer_str(&message));
}

static void notify_of_tasks(struct listening *listening)
{
    for (size_t i = 0; i < listening->task_count; i++)
        notify_of_task(listening, &listening->tasks[i]);
}

/* ---- its beginning ---- */

static struct listening *create_listening(struct call *call, const struct mcp_subscription *wanted,
                                          const char *address)
{
    struct listening *listening = memory_alloc(sizeof *listening);
    *listening = (struct listening){.call = call, .wants_tools = wanted->wants_tools};
    MAGIC_SET(listening, LISTENING_MAGIC);
    memcpy(listening->address, address, sizeof listening->address);
    loop_timer_init(&listening->end, call->worker->loop, on_token_end, listening);
    if (call->identity)
        loop_timer_start(&listening->end, call->identity->until_ms - clock_now_ms());
    add_tasks(listening, wanted->task_ids);
    list_append(&call->worker->listens, &listening->node);
    atomic_fetch_add(&call->worker->gateway->listening, 1);
    call_part_add(call, &listening->part, &listening_kind);
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
    OWNED_BUFFER(own);
    OWNED_BUFFER(honoured);
    OWNED_BUFFER(marked);
    OWNED_BUFFER(whole);
    write_task_ids(listening, &own);
    mcp_subscription_write_honoured(&honoured, json_member(params, "notifications"),
                                    listening->wants_tools, buffer_str(&own));
    json_write_with_member(&marked, params, "notifications", buffer_str(&honoured));
    json_write_with_inner(&whole, buffer_str(&marked), "_meta",
                          "io.modelcontextprotocol/subscriptionId", id);
    if (theirs.length == 0)
        theirs = STR("{\"jsonrpc\":\"2.0\",\"method\":\"" MCP_ACKNOWLEDGED "\"}");
    json_write_with_member(out, theirs, "params", buffer_str(&whole));
}

/* From here on the client is notified of changes; of those before at once. */
static void acknowledge(struct listening *listening, struct str theirs)
{
    OWNED_BUFFER(message);
    ASSERT(!listening->is_open && listening->read_count == listening->task_count);
    write_acknowledgement(listening, theirs, &message);
    relay_pass(listening->call, buffer_str(&message));
    listening->is_open = true;
    notify_of_tasks(listening);
}

/* ---- the gateway alone ---- */

static void open_own_stream(struct call *call)
{
    deferred_response_begin(call,
                            &(struct deferred_options){.what = "Listening", .is_quiet = true});
    deferred_response_open(call);
}

/* The stream of the server's that has begun stays the client's. */
static void go_on_alone(struct call *call, bool has_begun)
{
    struct listening *listening = listening_find(call);
    if (has_begun)
        deferred_response_begin(
            call, &(struct deferred_options){.what = "Listening", .has_stream = true});
    else
        open_own_stream(call);
    if (!listening->is_open)
        acknowledge(listening, STR_EMPTY);
    if (!has_own(listening))
        end_gracefully(call);
}

/* ---- with the server ---- */

static bool is_hidden(const struct call *call, struct str message)
{
    OWNED_BUFFER(uri);
    return !json_decode_string(json_path(message, "params", "uri"), &uri) ||
           !policy_is_uri_visible(call->snapshot->policy, call->source, buffer_str(&uri));
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

/* The snapshot is that of the request: a client of before a reload is notified that lists have
 * changed, and listens anew. */
static bool take_servers_message(struct call *call, struct str message)
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

/* ---- with a listener ---- */

/* With the id of the subscription. */
static void send_marked(struct call *call, struct str message)
{
    OWNED_BUFFER(params);
    OWNED_BUFFER(marked);
    json_write_with_inner(&params, json_member(message, "params"), "_meta",
                          "io.modelcontextprotocol/subscriptionId", call->envelope.id);
    json_write_with_member(&marked, message, "params", buffer_str(&params));
    relay_pass(call, buffer_str(&marked));
}

static void on_listener_opened(void *context, struct str honoured)
{
    struct listening *listening = listening_from(context);
    struct call *call = listening->call;
    OWNED_BUFFER(message);
    open_own_stream(call);
    buffer_append_format(&message,
                         "{\"jsonrpc\":\"2.0\",\"method\":\"" MCP_ACKNOWLEDGED
                         "\",\"params\":{\"notifications\":%.*s}}",
                         STR_ARGS(honoured));
    acknowledge(listening, buffer_str(&message));
    if (json_count(honoured) == 0 && !has_own(listening))
        end_gracefully(call);
}

static void on_listener_message(void *context, struct str message)
{
    send_marked(listening_from(context)->call, message);
}

static void on_listener_ended(void *context, const struct listener *listener)
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

static void open_listening(struct call *call)
{
    static const struct looks looks = {.take_message = take_servers_message,
                                       .takes_all = true,
                                       .outlives = outlives,
                                       .alone = go_on_alone};
    static const struct listener_events events = {
        .opened = on_listener_opened, .message = on_listener_message, .ended = on_listener_ended};
    struct listening *listening = listening_find(call);
    OWNED_BUFFER(rest);
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
        relay_start(call, &looks, NULL);
    }
}

/* ---- the request ---- */

/* The server must accept who asks before anything is said of a task. */
static void verify_then_read(struct call *call)
{
    credential_check_then(call, read_next_task);
}

static void refuse_for_place(struct call *call)
{
    const struct jsonrpc_error_data data = {
        .details = STR("too many streams of subscriptions/listen are open")};
    metrics_count(METRIC_LIMITS_REACHED, STR("listens"));
    call_answer_error(call, JSONRPC_INTERNAL, STR_EMPTY, &data);
}

/* Serves the request, whose filter says what is wanted, unless too many streams are open. */
static void listen_begin(struct call *call, const struct mcp_subscription *wanted)
{
    char address[LISTENING_ADDRESS_BYTES] = "";
    if (!listening_takes_place(call, address)) {
        refuse_for_place(call);
        return;
    }
    const struct listening *listening = create_listening(call, wanted, address);
    call_own_body(call);
    if (listening->task_count > 0)
        call_with_facts(call, verify_then_read);
    else
        open_listening(call);
}

/* ---- the gateway's own news ---- */

void listens_send_list_changed(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->listens) {
        const struct listening *listening = LIST_ENTRY(node, struct listening, node);
        if (listening->wants_tools && listening->is_open)
            send_marked(listening->call,
                        STR("{\"jsonrpc\":\"2.0\",\"method\":\"" MCP_TOOLS_CHANGED "\"}"));
    }
}

static void note_listened(struct listening *listening, struct task *task)
{
    struct listened_task *listened = find_listened(listening, str_from(task->id));
    if (!listened || !listened->task)
        return;
    task_unref(listened->task);
    listened->task = task_ref(task);
    if (listening->is_open)
        notify_of_task(listening, listened);
    if (task->state == TASK_APPROVED && task->on_result)
        execution_offer(listening->call, task, true);
}

void listens_note_task(struct gateway_worker *worker, struct task *task)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->listens) {
        note_listened(LIST_ENTRY(node, struct listening, node), task);
    }
}

void listens_note_requests(struct gateway_worker *worker, const struct task *task)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->listens) {
        struct listening *listening = LIST_ENTRY(node, struct listening, node);
        struct listened_task *listened = find_listened(listening, str_from(task->id));
        if (listened && listened->task && listening->is_open)
            notify_of_task(listening, listened);
    }
}

static void note_news(struct listening *listening, const struct news *news)
{
    struct listened_task *listened = find_listened(listening, str_from(news->task));
    if (!listened || news->sequence <= listened->asked_sequence)
        return;
    buffer_clear(&listened->asked);
    buffer_append(&listened->asked, news->requests);
    listened->asked_ms = news->changed_ms;
    listened->asked_sequence = news->sequence;
    if (listened->task && listening->is_open)
        notify_of_task(listening, listened);
}

void listens_note_news(struct gateway_worker *worker, const struct news *news)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->listens) {
        note_news(LIST_ENTRY(node, struct listening, node), news);
    }
}

void listens_end_all(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->listens) {
        end_gracefully(LIST_ENTRY(node, struct listening, node)->call);
    }
}

/* `subscriptions/listen`: what its request must be. */

void listen_handle(struct call *call)
{
    struct str filter = call->envelope.notifications;
    struct jsonrpc_error_data needs_tasks = {.required_capabilities = DIALECT_REQUIRES_TASKS};
    struct mcp_subscription wanted;
    const char *wrong = json_type(filter) == JSON_OBJECT ? mcp_subscription_read(filter, &wanted)
                                                         : "params.notifications must be an object";
    if (wrong)
        call_refuse_params(call, wrong);
    else if (wanted.task_ids.length > 0 &&
             !mcp_declares_task_extension(call->envelope.reserved.client_capabilities))
        call_answer_error(call, JSONRPC_MISSING_CAPABILITY, STR_EMPTY, &needs_tasks);
    else if (!deferred_response_may_stream(call))
        call_refuse_params(call, "the Accept header must name text/event-stream");
    else
        listen_begin(call, &wanted);
}
