/* One request: its memory, its parts, its client, its facts, and its end. */
#include "call.h"

#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "authorization.h"
#include "state/session_table.h"
#include "state/tool_catalog.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/identity/identity.h"
#include "taskgate/json/canonical.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect_modern.h"
#include "taskgate/mcp/sse.h"
#include "taskgate/store/replicas.h"
#include "taskgate/telemetry/span.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

/* A burst, and then so many a second. */

#define MS_PER_REQUEST (1000 / SERVER_REQUESTS_PER_SECOND)

static const int64_t bursts[SERVER_REQUEST_KINDS] = {
    [SERVER_PING] = SERVER_PING_BURST,
    [SERVER_REQUEST] = SERVER_REQUEST_BURST,
};

static void refill(struct server_spent *spent, int64_t monotonic_ms)
{
    int64_t due = (monotonic_ms - spent->counted_ms) / MS_PER_REQUEST;
    if (due <= 0)
        return;
    spent->count = due < spent->count ? spent->count - due : 0;
    spent->counted_ms += due * MS_PER_REQUEST;
}

bool server_budget_take(struct server_budget *budget, enum server_request kind,
                        int64_t monotonic_ms)
{
    struct server_spent *spent = &budget->spent[kind];
    refill(spent, monotonic_ms);
    if (spent->count >= bursts[kind])
        return false;
    spent->count++;
    return true;
}

/* Counters of each method, tool and source, in a few slots for each thread. */

#define SLOTS 64
#define TEXT_BYTES 128

/* The key of a slot. A slot gives way to another method or text at its place. */
struct subject {
    const struct mcp_method *method;
    size_t length; /* 1 + that of the text; 0: the slot is free */
    char text[TEXT_BYTES];
};

static _Thread_local struct method_counters {
    const struct mcp_method *method;
    struct metrics_handle payload;
} of_methods[32];

static _Thread_local struct tool_counters {
    struct subject subject;
    struct metrics_handle successes, errors, duration;
} of_tools[SLOTS], of_unlisted; /* the latter of tools/call, as all that name one */

static _Thread_local struct source_counters {
    struct subject subject;
    int status;
    char text[STR_U64_BYTES]; /* of the status, */
    struct str word;          /* which is this part of it */
    struct metrics_handle requests, duration;
} of_sources[SLOTS];

static size_t call_place_of(const struct mcp_method *method, struct str text)
{
    size_t mixed = (size_t)method / sizeof *method * 31 + text.length;
    if (text.length > 0)
        mixed = mixed * 31 + (unsigned char)text.bytes[0] +
                (size_t)(unsigned char)text.bytes[text.length - 1] * 7 +
                (size_t)(unsigned char)text.bytes[text.length / 2] * 13;
    return mixed;
}

static bool call_is_of(const struct subject *subject, const struct mcp_method *method,
                       struct str text)
{
    return subject->method == method && subject->length == text.length + 1 &&
           (text.length == 0 || memcmp(subject->text, text.bytes, text.length) == 0);
}

static void set_subject(struct subject *subject, const struct mcp_method *method, struct str text)
{
    subject->method = method;
    subject->length = text.length + 1;
    if (text.length > 0)
        memcpy(subject->text, text.bytes, text.length);
}

void call_counters_came(const struct mcp_method *method, size_t body_bytes)
{
    size_t place = (size_t)method / sizeof *method;
    struct method_counters *counters =
        &of_methods[place % (sizeof of_methods / sizeof *of_methods)];
    if (counters->method != method)
        *counters = (struct method_counters){.method = method};
    metrics_observe_by(&counters->payload, METRIC_REQUEST_PAYLOAD, (double)body_bytes,
                       METRIC_LABELS(STR("inbound"), str_from(method->name)));
}

/* The slot of the name, or that of all names that no server lists. NULL: there is none for such a
 * name. */
static struct tool_counters *slot_of(const struct mcp_method *method,
                                     const struct counted_tool *tool, struct str *label)
{
    struct tool_counters *counters = &of_tools[call_place_of(method, tool->name) % SLOTS];
    *label = tool->name;
    if (call_is_of(&counters->subject, method, *label))
        return counters;
    if (tool->name.length > 0 && !tool->is_listed(tool->context, tool->name)) {
        *label = STR("__unlisted__");
        return &of_unlisted;
    }
    if (label->length > TEXT_BYTES)
        return NULL;
    memset(counters, 0, sizeof *counters);
    set_subject(&counters->subject, method, *label);
    return counters;
}

void call_counters_answered(const struct mcp_method *method, const struct counted_tool *tool,
                            const char *outcome, int64_t elapsed_ms)
{
    const char *name = method ? method->name : "http";
    struct str label;
    struct tool_counters *counters = slot_of(method, tool, &label);
    if (!counters) {
        metrics_count(METRIC_REQUESTS, str_from(name), label, str_from(outcome));
        metrics_observe(METRIC_REQUEST_DURATION, (double)elapsed_ms,
                        METRIC_LABELS(str_from(name), label));
        return;
    }
    struct metrics_handle *requests =
        strcmp(outcome, "success") == 0 ? &counters->successes : &counters->errors;
    metrics_add_by(requests, METRIC_REQUESTS, 1,
                   METRIC_LABELS(str_from(name), label, str_from(outcome)));
    metrics_observe_by(&counters->duration, METRIC_REQUEST_DURATION, (double)elapsed_ms,
                       METRIC_LABELS(str_from(name), label));
}

void call_counters_upstream(struct str source, int status, int64_t elapsed_ms)
{
    struct source_counters *counters =
        &of_sources[(call_place_of(NULL, source) + (size_t)status) % SLOTS];
    if (source.length > TEXT_BYTES) {
        char text[STR_U64_BYTES];
        metrics_count(METRIC_UPSTREAM_REQUESTS, source, str_from_u64((uint64_t)status, text));
        metrics_observe(METRIC_UPSTREAM_DURATION, (double)elapsed_ms, METRIC_LABELS(source));
        return;
    }
    if (counters->status != status || !call_is_of(&counters->subject, NULL, source)) {
        memset(counters, 0, sizeof *counters);
        set_subject(&counters->subject, NULL, source);
        counters->status = status;
        counters->word = str_from_u64((uint64_t)status, counters->text);
    }
    metrics_add_by(&counters->requests, METRIC_UPSTREAM_REQUESTS, 1,
                   METRIC_LABELS(source, counters->word));
    metrics_observe_by(&counters->duration, METRIC_UPSTREAM_DURATION, (double)elapsed_ms,
                       METRIC_LABELS(source));
}

/* ---- its memory: one piece of spare memory for each call, taken from its front to its end; then
 * the heap ---- */

/* A held call needs less, but for a long `_meta`. */
#define WANTED_BYTES 1280

static size_t round_up(size_t size)
{
    return (size + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
}

static void find_spare(struct call *call)
{
    struct call_spare *spare = &call->spare;
    size_t size = WANTED_BYTES;
    if (spare->is_known || !call->exchange)
        return;
    spare->is_known = true;
    spare->bytes = http_take_spare(call->exchange, &size);
    spare->size = spare->bytes ? size : 0;
}

void *call_memory_take(struct call *call, size_t size)
{
    struct call_spare *spare = &call->spare;
    size_t rounded = round_up(size);
    find_spare(call);
    if (rounded > spare->size - spare->used)
        return memory_alloc(size);
    void *memory = spare->bytes + spare->used;
    spare->used += rounded;
    return memset(memory, 0, size);
}

char *call_memory_copy(struct call *call, struct str text)
{
    char *copy = call_memory_take(call, text.length + 1);
    if (text.length > 0)
        memcpy(copy, text.bytes, text.length);
    return copy;
}

static bool is_spare(const struct call *call, const void *memory)
{
    uintptr_t at = (uintptr_t)memory, begin = (uintptr_t)call->spare.bytes;
    return at >= begin && at - begin < call->spare.size;
}

void call_memory_give(struct call *call, void *memory)
{
    if (!is_spare(call, memory))
        free(memory);
#ifdef __SANITIZE_ADDRESS__
    else
        ASAN_POISON_MEMORY_REGION(memory, _Alignof(max_align_t)); /* the least that it was */
#endif
}

/* ---- the message of a call that waits ---- */

void call_digest_arguments(const struct call *call, char digest[DIGEST_HEX_BYTES])
{
    if (call->arguments_digest)
        memcpy(digest, call->arguments_digest, DIGEST_HEX_BYTES);
    else
        canonical_digest(call->envelope.arguments.raw, digest);
}

static void write_rest(const struct envelope *envelope, struct buffer *out)
{
    const struct {
        const char *name;
        struct str value;
    } kept[] = {
        {"name", envelope->name.raw},      {"uri", envelope->uri.raw},
        {"taskId", envelope->task_id.raw}, {"task", envelope->task.raw},
        {"_meta", envelope->meta.raw},
    };
    char before = '{';
    buffer_append_text(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buffer_append(out, envelope->id);
    buffer_append_text(out, ",\"method\":");
    buffer_append_json_string(out, envelope->method);
    buffer_append_text(out, ",\"params\":");
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        if (kept[i].value.length == 0)
            continue;
        buffer_append_format(out, "%c\"%s\":", before, kept[i].name);
        buffer_append(out, kept[i].value);
        before = ',';
    }
    buffer_append_text(out, before == '{' ? "{}}" : "}}");
}

enum envelope_status call_replace_body(struct call *call, struct buffer *body, struct error *error)
{
    size_t length;
    char *made = buffer_take(body, &length);
    envelope_finish(&call->envelope);
    call_memory_give(call, call->made_body);
    call->made_body = made;
    return envelope_read(&call->envelope, str_slice(made, length), error);
}

static void replace_message(struct call *call, struct str message)
{
    struct error error = {""};
    struct buffer exact = {call_memory_copy(call, message), message.length, message.length + 1};
    if (call_replace_body(call, &exact, &error) == ENVELOPE_OK)
        http_forget_body(call->exchange);
}

void call_own_body(struct call *call)
{
    if (!call->exchange || call->made_body)
        return;
    http_charge(call->exchange, call->envelope.body.length);
    replace_message(call, call->envelope.body);
}

void call_forget_body(struct call *call)
{
    OWNED_BUFFER(rest);
    if (!call->exchange)
        return;
    bool is_forgotten = call->made_body && http_body(call->exchange).length == 0;
    if (is_forgotten || call->envelope.kind != ENVELOPE_REQUEST)
        return;
    if (!call->arguments_digest && call->envelope.arguments.raw.length > 0) {
        call->arguments_digest = call_memory_take(call, DIGEST_HEX_BYTES);
        canonical_digest(call->envelope.arguments.raw, call->arguments_digest);
    }
    write_rest(&call->envelope, &rest);
    replace_message(call, buffer_str(&rest));
}

/* ---- its parts ---- */

static void *object_of(const struct call_part *part)
{
    return (char *)part - part->kind->offset;
}

void call_part_add(struct call *call, struct call_part *part, const struct call_part_kind *kind)
{
    assert(!call_part_find(call, kind));
    part->kind = kind;
    list_append(&call->parts, &part->node);
}

void call_part_remove(struct call_part *part)
{
    if (part->kind)
        list_remove(&part->node);
    part->kind = NULL;
}

void *call_part_find(const struct call *call, const struct call_part_kind *kind)
{
    LIST_FOR_EACH_SAFE (node, next, &call->parts) {
        const struct call_part *part = LIST_ENTRY(node, struct call_part, node);
        if (part->kind == kind)
            return object_of(part);
    }
    return NULL;
}

void *call_part_get(const struct call *call, const struct call_part_kind *kind)
{
    void *object = call_part_find(call, kind);
    assert(object);
    return object;
}

void call_part_report_gone(struct call *call)
{
    LIST_FOR_EACH_SAFE (node, next, &call->parts) {
        struct call_part *part = LIST_ENTRY(node, struct call_part, node);
        if (!part->kind->gone)
            continue;
        part->kind->gone(call, object_of(part)); /* other parts may go, too */
        return;
    }
}

void call_part_drop_all(struct call *call)
{
    while (!list_is_empty(&call->parts)) {
        struct call_part *part = LIST_ENTRY(call->parts.previous, struct call_part, node);
        const struct call_part_kind *kind = part->kind;
        void *object = object_of(part);
        call_part_remove(part);
        kind->drop(call, object);
    }
}

/* ---- its client ---- */

/* Under verified tokens a session belongs to its owner. The same id of another owner is another
 * session. */
void call_digest_session(const struct call *call, struct str id, char digest[DIGEST_HEX_BYTES])
{
    if (!call->identity) {
        digest_sha256_hex(id, digest);
        return;
    }
    OWNED_BUFFER(text);
    buffer_append_text(&text, call->identity->owner);
    buffer_append_char(&text, '\0');
    buffer_append(&text, id);
    digest_sha256_hex(buffer_str(&text), digest);
}

/* Without sessions a session owns nothing. */
static enum config_identity identity_of(const struct call *call)
{
    enum config_identity identity = call->source->identity;
    bool wants_session = identity == IDENTITY_SESSION;
    return wants_session && !call->dialect->has_sessions ? IDENTITY_AUTHORIZATION : identity;
}

/* Without `auth` no claim inside a token is read: only its digest counts. */
void call_identify(struct call *call)
{
    if (call->identified)
        return;
    struct str session = http_header_known(call->exchange, HTTP_NAME_MCP_SESSION_ID);
    struct str token = http_header_known(call->exchange, HTTP_NAME_AUTHORIZATION);
    call->identified = true;
    if (session.length > 0)
        call_digest_session(call, session, call->session);
    if (token.length > 0)
        authorization_digest(token, call->token);
    if (call->identity)
        snprintf(call->owner, sizeof call->owner, "%s", call->identity->owner);
    else
        owner_write(call->owner, call->token, call->session, identity_of(call));
}

bool call_server_has_sessions(const struct call *call)
{
    return call->dialect->has_sessions == !call->carrier;
}

const struct policy_verified *call_verified(const struct call *call)
{
    return call->identity ? &call->verified : NULL;
}

void call_find_tool(struct call *call, struct str name, struct catalog_tool *tool)
{
    call_identify(call);
    catalog_find_tool(call->worker->gateway->catalog, str_from(call->source->id),
                      str_from(call->owner), name, tool);
}

void call_note_acceptance(struct call *call, struct str session)
{
    struct gateway *gateway = call->worker->gateway;
    struct str source = str_from(call->source->id), token = str_from(call->token);
    OWNED char *forgotten = NULL; /* another session of the token */
    call_vouch(call);
    if (accepted_pairs_note(gateway->accepted_pairs, source, session, token, clock_monotonic_ms(),
                            &call->snapshot->config->limits, &forgotten))
        store_pair_put(gateway->store, source, session, token, clock_now_ms(),
                       (struct store_call){call->worker->loop, NULL, NULL});
    if (forgotten)
        seen_table_forget_session(gateway->sessions, source, str_from(forgotten));
}

void call_vouch(const struct call *call)
{
    const char *owner = call->identity ? call->identity->owner : call->owner;
    if (call->exchange && !owner_is_anybody(owner))
        http_vouch(call->exchange, str_from(owner));
}

bool call_is_stranger(const struct call *call)
{
    return !call->identity &&
           accepted_pairs_ago_ms(call->worker->gateway->accepted_pairs, str_from(call->source->id),
                                 str_from(call->session), str_from(call->token),
                                 clock_monotonic_ms()) == INT64_MAX;
}

bool call_is_unknown(const struct call *call)
{
    return owner_is_anybody(call->owner) || call_is_stranger(call);
}

/* ---- the memory of calls ---- */

/* Memory for calls, kept for the next one: a call is larger than what malloc() keeps for a thread,
 * and each would go the slow way through it. A chain of calls that nobody uses, for each thread. */

/* The sanitizer's build keeps none, so that it sees the use of a call that has ended. */
#ifdef __SANITIZE_ADDRESS__
#define KEEPS_NONE true
#else
#define KEEPS_NONE false
#endif
#define MOST_SPARE 64

union spare {
    union spare *next;
    struct call call;
};

static _Thread_local struct chain {
    union spare *first;
    size_t count;
    bool is_watched; /* it is freed when the thread ends */
} chain;
static pthread_key_t thread_end;
static pthread_once_t thread_end_once = PTHREAD_ONCE_INIT;

static void free_chain(void *context)
{
    struct chain *ending = context;
    while (ending->first) {
        union spare *spare = ending->first;
        ending->first = spare->next;
        free(spare);
    }
    *ending = (struct chain){0};
}

static void call_watch_thread_ends(void)
{
    if (pthread_key_create(&thread_end, free_chain) != 0)
        abort();
}

static struct call *call_pool_take(void)
{
    union spare *spare = chain.first;
    if (!spare)
        return memory_alloc(sizeof *spare);
    chain.first = spare->next;
    chain.count--;
    return memset(spare, 0, sizeof *spare);
}

static void call_pool_give(struct call *call)
{
    union spare *spare = (union spare *)call;
    if (KEEPS_NONE || chain.count >= MOST_SPARE) {
        free(spare);
        return;
    }
    if (!chain.is_watched) {
        pthread_once(&thread_end_once, call_watch_thread_ends);
        pthread_setspecific(thread_end, &chain);
        chain.is_watched = true;
    }
    spare->next = chain.first;
    chain.first = spare;
    chain.count++;
}

/* ---- its life ---- */

/* The client has gone. A task that the call has become goes on without it. */
static void on_gone(void *context)
{
    struct call *call = call_from(context);
    span_fail(call->span, STR("cancelled"), STR_EMPTY);
    call_part_report_gone(call);
    call_ended(call);
}

struct call *call_create(struct gateway_worker *worker, struct http_exchange *exchange,
                         struct snapshot *snapshot, const struct config_source *source)
{
    struct call *call = call_pool_take();
    MAGIC_SET(call, CALL_MAGIC);
    call->worker = worker;
    call->exchange = exchange;
    call->references = 1;
    call->snapshot = snapshot;
    call->source = source;
    call->dialect = &dialect_legacy;
    call->outcome = "success";
    list_init(&call->parts);
    return call;
}

void call_begin(struct call *call)
{
    struct gateway_worker *worker = call->worker;
    assert(call->exchange && call->source && call->references == 1);
    list_append(&worker->calls, &call->node);
    atomic_fetch_add(&worker->gateway->in_flight, 1);
    atomic_fetch_add_explicit(&worker->gateway->arrived, 1, memory_order_relaxed);
    metrics_add_by(&worker->active_requests, METRIC_ACTIVE_REQUESTS, 1, NULL);
    http_on_gone(call->exchange, on_gone, call);
}

struct call *call_ref(struct call *call)
{
    assert(call->references > 0);
    call->references++;
    return call;
}

void call_unref(struct call *call)
{
    assert(call->references > 0);
    if (--call->references > 0)
        return;
    envelope_finish(&call->envelope);
    call_memory_give(call, call->made_body);
    call_memory_give(call, call->arguments_digest);
    free(call->agent_reason);
    identity_unref(call->identity);
    free(call->upstream_authorization);
    buffer_finish(&call->declared);
    snapshot_unref(call->snapshot);
    MAGIC_CLEAR(call);
    call_pool_give(call);
}

struct str call_tool(const struct call *call)
{
    bool has_tool = call->method && call->method->treatment == MCP_TOOLS_CALL;
    return has_tool ? call->envelope.name.text : STR_EMPTY;
}

/* The gateway's own tools are listed, too. */
static bool is_in_any_list(const struct call *call, struct str name)
{
    struct str rest = name, prefix = str_from(call->snapshot->config->pseudo.prefix);
    struct catalog_tool tool;
    if (str_starts_with(name, prefix))
        rest = str_slice(name.bytes + prefix.length, name.length - prefix.length);
    if (config_pseudo_tool_find(rest) != PSEUDO_TOOL_COUNT)
        return true;
    if (!call->source)
        return false;
    catalog_find_tool(call->worker->gateway->catalog, str_from(call->source->id), CATALOG_GATEWAY,
                      name, &tool);
    return tool.known;
}

/* The last name that no list had, as of the settings and the lists of then. */
static _Thread_local struct {
    const struct config_source *source;
    uint64_t snapshot, lists;
    struct subject subject;
} unlisted;

static bool is_listed(void *context, struct str name)
{
    const struct call *call = call_from(context);
    uint64_t lists = catalog_version();
    if (unlisted.lists == lists && unlisted.snapshot == call->snapshot->number &&
        unlisted.source == call->source && call_is_of(&unlisted.subject, call->method, name))
        return false;
    if (is_in_any_list(call, name))
        return true;
    if (name.length <= TEXT_BYTES) {
        unlisted.source = call->source;
        unlisted.snapshot = call->snapshot->number;
        unlisted.lists = lists;
        set_subject(&unlisted.subject, call->method, name);
    }
    return false;
}

static void count(struct call *call)
{
    const struct counted_tool tool = {call_tool(call), is_listed, call};
    call_counters_answered(call->method, &tool, call->outcome,
                           loop_now_ms(call->worker->loop) - http_received_ms(call->exchange));
}

/* The exchange is still there. */
SPAN_COLD static void end_span(struct call *call)
{
    if (span_is_sampled(call->span)) {
        call_identify(call);
        span_set_text(call->span, ATTRIBUTE_SESSION, str_from(call->session));
    }
    span_end(call->span);
    call->span = NULL;
}

struct http_exchange *call_ended(struct call *call)
{
    struct http_exchange *exchange = call->exchange;
    assert(exchange);
    http_on_gone(exchange, NULL, NULL);
    call_part_drop_all(call);
    count(call);
    if (call->span)
        end_span(call);
    call->exchange = NULL;
    list_remove(&call->node);
    atomic_fetch_sub(&call->worker->gateway->in_flight, 1);
    metrics_add_by(&call->worker->active_requests, METRIC_ACTIVE_REQUESTS, -1, NULL);
    call_unref(call);
    return exchange;
}

void call_end_stream(struct call *call, struct str message, bool is_cut)
{
    OWNED_BUFFER(event);
    if (message.length > 0)
        sse_write_event(&event, STR_EMPTY, STR_EMPTY, message);
    struct http_exchange *exchange = call_ended(call);
    if (is_cut) {
        http_stream_abort(exchange);
        return;
    }
    if (event.length > 0)
        http_stream_write(exchange, buffer_str(&event));
    http_stream_end(exchange);
}

/* ---- what is known of the session ---- */

/* A reply on its way to a call, which may await several. */
struct awaited {
    uint32_t magic; /* AWAITED_MAGIC */
    struct call *call;
    call_reply take;
};
#define AWAITED_MAGIC 0x47574157

static void call_on_reply(void *context, const struct store_reply *reply)
{
    struct awaited *awaited = MAGIC_CAST(struct awaited, AWAITED_MAGIC, context);
    struct call *call = awaited->call;
    if (call->exchange)
        awaited->take(call, reply);
    call_unref(call);
    MAGIC_CLEAR(awaited);
    free(awaited);
}

struct store_call call_to_store(struct call *call, call_reply take)
{
    struct awaited *awaited = memory_alloc(sizeof *awaited);
    ASSERT(take);
    MAGIC_SET(awaited, AWAITED_MAGIC);
    awaited->call = call_ref(call);
    awaited->take = take;
    return (struct store_call){call->worker->loop, call_on_reply, awaited};
}

/* The last capabilities of the server. A session in memory has better ones. */
static bool lacks_resources(const struct call *call)
{
    struct mcp_capabilities last;
    return catalog_capabilities(call->worker->gateway->catalog, str_from(call->source->id),
                                &last) &&
           !last.resources;
}

static void copy_name(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
}

/* Without a session in memory the request's header tells the negotiated version. */
static void call_read_version(const struct call *call, char *version, size_t size)
{
    struct str header = http_header(call->exchange, "mcp-protocol-version");
    if (mcp_is_version(header))
        str_join(version, size, header, STR_EMPTY);
}

/* The name is for people: no right depends on it. */
void call_read_client(struct call *call, struct str capabilities, struct str info)
{
    struct client_session *client = &call->facts.client;
    client->declares_elicitation = json_member(capabilities, "elicitation").length > 0;
    client->declares_sampling = json_member(capabilities, "sampling").length > 0;
    json_copy_text(client->name, sizeof client->name, json_member(info, "name"));
    json_copy_text(client->version, sizeof client->version, json_member(info, "version"));
}

/* A modern request says each time who its client is, and what that can do. */
static void read_declarations(struct call *call)
{
    struct str declared = call->envelope.reserved.client_capabilities;
    call_read_client(call, declared, call->envelope.reserved.client_info);
    call->facts.client.declares_tasks = mcp_declares_task_extension(declared);
}

static void use_source_values(struct call *call)
{
    struct mcp_capabilities last;
    bool is_known =
        catalog_capabilities(call->worker->gateway->catalog, str_from(call->source->id), &last);
    call->facts = (struct session_facts){
        .server.has_tasks = last.tasks,
        .server.has_task_status = last.task_status,
        .server.lacks_resources = is_known && !last.resources,
    };
    call_read_version(call, call->facts.version, sizeof call->facts.version);
    if (!call->dialect->has_sessions)
        read_declarations(call);
}

static struct session_facts facts_of(const struct call *call, const struct store_session *stored)
{
    struct str declared = str_from(stored->client_capabilities);
    struct str injected = json_member(declared, SESSION_INJECTED);
    struct session_facts facts = {
        .known = true,
        .server.has_tasks = stored->upstream_tasks,
        .server.has_task_status = stored->upstream_sse,
        .server.lacks_resources = lacks_resources(call),
        .client.declares_tasks = json_member(declared, "tasks").length > 0,
        .client.declares_elicitation = json_member(declared, "elicitation").length > 0,
        .client.declares_sampling = json_member(declared, "sampling").length > 0,
        .server.injected_elicitation = json_type(json_member(injected, "elicitation")) == JSON_TRUE,
        .server.injected_sampling = json_type(json_member(injected, "sampling")) == JSON_TRUE,
    };
    copy_name(facts.version, sizeof facts.version, stored->version);
    copy_name(facts.client.name, sizeof facts.client.name, stored->client_name);
    copy_name(facts.client.version, sizeof facts.client.version, stored->client_version);
    return facts;
}

/* A session of before a restart. */
static void restore_given(const struct call *call, const struct store_session *stored)
{
    struct str text = json_member(str_from(stored->client_capabilities), SESSION_GIVEN);
    if (json_type(text) == JSON_OBJECT && text.length <= GIVEN_SESSION_BYTES)
        given_sessions_put(call->worker->gateway->given_sessions, str_from(call->source->id),
                           str_from(call->session), text, call->snapshot->config->limits.sessions);
}

void call_take_facts(struct call *call, const struct store_reply *reply)
{
    bool is_stored = reply->status == STORE_OK && reply->session;
    if (is_stored)
        call->facts = facts_of(call, reply->session);
    if (is_stored && call_gives_session(call))
        restore_given(call, reply->session);
    if (!is_stored)
        use_source_values(call);
    call->facts_failed = reply->status == STORE_FAILED;
    if (call->facts_failed)
        return; /* nothing is known, not even that */
    /* An unknown session is remembered as well, so that it asks the disk once, and a database that
     * others write to once in a while. */
    call->facts.unknown_until_ms = clock_monotonic_ms() + SESSION_UNKNOWN_KEPT_MS;
    sessions_put(call->worker->gateway->sessions, str_from(call->source->id),
                 str_from(call->session), &call->facts, call->snapshot->config->limits.sessions);
}

static void call_on_session(struct call *call, const struct store_reply *reply)
{
    call_take_facts(call, reply);
    call->next(call);
}

/* Copies the facts that are remembered of the session to the call. false: the store is asked. */
static bool recall_facts(struct call *call)
{
    const struct gateway *gateway = call->worker->gateway;
    return sessions_get(gateway->sessions, str_from(call->source->id), str_from(call->session),
                        &call->facts) &&
           (call->facts.known || !store_is_shared(gateway->store) ||
            clock_monotonic_ms() < call->facts.unknown_until_ms);
}

void call_with_facts(struct call *call, call_step next)
{
    if (!call->session[0]) {
        use_source_values(call);
        next(call);
    } else if (recall_facts(call)) {
        if (!call->facts.known)
            use_source_values(call);
        next(call);
    } else {
        call->next = next;
        store_session_get(call->worker->gateway->store, str_from(call->source->id),
                          str_from(call->session), call_to_store(call, call_on_session));
    }
}

/* ---- what outlives a restart of it ---- */

static void add_declared(struct buffer *out, const char *key, bool is_declared)
{
    if (!is_declared)
        return;
    json_add_key(out, key);
    buffer_append_text(out, "{}");
}

static void add_given(struct buffer *out, const struct call *call, const char *session)
{
    OWNED_BUFFER(said);
    if (call_gives_session(call) &&
        given_sessions_get(call->worker->gateway->given_sessions, str_from(call->source->id),
                           str_from(session), &said)) {
        json_add_value(out, SESSION_GIVEN, buffer_str(&said));
    }
}

/* The client's capabilities that are needed later, and those that were declared in its place. The
 * rest is not stored: it may be as long as a body, and would stay on the disk for a month. */
static char *stored_capabilities(const struct call *call, const char *session)
{
    const struct session_facts *facts = &call->facts;
    OWNED_BUFFER(text);
    buffer_append_char(&text, '{');
    add_declared(&text, "tasks", facts->client.declares_tasks);
    add_declared(&text, "elicitation", facts->client.declares_elicitation);
    add_declared(&text, "sampling", facts->client.declares_sampling);
    json_add_key(&text, SESSION_INJECTED);
    buffer_append_char(&text, '{');
    json_add_bool(&text, "elicitation", facts->server.injected_elicitation);
    json_add_bool(&text, "sampling", facts->server.injected_sampling);
    buffer_append_char(&text, '}');
    add_given(&text, call, session);
    buffer_append_char(&text, '}');
    return buffer_take(&text, NULL);
}

void call_store_session(const struct call *call, const char *session, struct store_call then)
{
    const struct session_facts *facts = &call->facts;
    OWNED char *text = stored_capabilities(call, session);
    struct store_session stored = {
        .source = call->source->id,
        .id_digest = (char *)(uintptr_t)session,
        .version = (char *)(uintptr_t)facts->version,
        .client_name = (char *)(uintptr_t)facts->client.name,
        .client_version = (char *)(uintptr_t)facts->client.version,
        .client_capabilities = text,
        .owner = (char *)(uintptr_t)call->owner,
        .upstream_tasks = facts->server.has_tasks,
        .upstream_sse = facts->server.has_task_status,
        .seen_ms = clock_now_ms(),
    };
    store_session_put(call->worker->gateway->store, &stored, then);
}

/* ---- ownership ---- */

/* A modern client has no session that would join its old token and its new one. If the source says
 * so, the id that nobody can guess does; the server still has to accept the credentials. A task of
 * the control plane is never reached so. */
static bool holds_task(const struct call *call, const struct task *task)
{
    return call->source->identity == IDENTITY_BEARER_TASK &&
           !str_starts_with(str_from(task->owner), STR("admin:"));
}

bool call_owns(const struct call *call, const struct task *task)
{
    if (strcmp(task->source, call->source->id) != 0 || task_is_answer(task))
        return false;
    if (strcmp(task->owner, call->owner) == 0)
        return true;
    if (call->identity)
        return false;
    /* Its id alone leads to it, as after the end of the session in which it was promised. */
    if (strcmp(task->owner, OWNER_ANONYMOUS) == 0 && !call->token[0])
        return true;
    if (!call->dialect->has_sessions)
        return holds_task(call, task);
    /* A token that was exchanged for a new one inside the task's own session. */
    return task->session[0] && strcmp(task->session, call->session) == 0;
}

struct task *call_own_task(const struct call *call, const struct store_reply *reply, struct str id)
{
    bool is_own = reply->status != STORE_FAILED && reply->task &&
                  str_equal(str_from(reply->task->id), id) && call_owns(call, reply->task);
    return is_own ? reply->task : NULL;
}

void call_cancel_task(struct call *call, const struct task *task, const char *reason,
                      call_reply take)
{
    const struct task_change change = {.to = TASK_CANCELLED, .by = "client", .reason = reason};
    const struct store_actor actor = {"client", call->owner};
    ASSERT(call_owns(call, task));
    store_task_change(call->worker->gateway->store, str_from(task->id), &change, &actor,
                      call_to_store(call, take));
}
