/* News on their way to other replicas, and what comes from these. */
#include "news.h"

#include <stdlib.h>
#include <string.h>

#include "call/broadcast.h"
#include "call/deferred_response.h"
#include "call/headers.h"
#include "relay_signature.h"
#include "replicas.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/random.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"

/* The members of each message, which it has or leaves out. */

static const char *const names[NEWS_COUNT] = {
#define NEWS_ROW(symbol, name) [NEWS_##symbol] = (name),
    NEWS_TABLE(NEWS_ROW)
#undef NEWS_ROW
};

static const char *news_name(enum news_kind kind)
{
    ASSERT_NUMBERS(kind, <, sizeof names / sizeof *names);
    return names[kind];
}

void news_write(struct buffer *out, const struct news *news)
{
    buffer_append_char(out, '{');
    json_add_text(out, "kind", names[news->kind]);
    json_add_number(out, "sequence", news->sequence);
    if (*news->task)
        json_add_text(out, "task", news->task);
    json_add_value(out, "wait", news->wait);
    json_add_value(out, "call", news->call);
    if (news->kind == NEWS_TASK_ASKS) {
        json_add_value(out, "requests", news->requests);
        json_add_value(out, "questions", news->questions);
        json_add_bool(out, "isAsking", news->is_asking);
        json_add_number(out, "changedMs", news->changed_ms);
    }
    buffer_append_char(out, '}');
}

static bool news_read_kind(struct str value, enum news_kind *kind)
{
    for (int i = 0; i < NEWS_COUNT; i++) {
        *kind = (enum news_kind)i;
        if (json_string_equals(value, str_from(names[i])))
            return true;
    }
    return false;
}

static bool news_read_task(struct str value, char id[TASK_ID_BYTES])
{
    OWNED_BUFFER(text);
    bool is_good = json_decode_string(value, &text) && task_id_is_ours(buffer_str(&text)) &&
                   text.length < TASK_ID_BYTES && !memchr(text.bytes, '\0', text.length);
    if (is_good) {
        memcpy(id, text.bytes, text.length);
        id[text.length] = '\0';
    }
    return is_good;
}

static bool news_read_number(struct str value, int64_t *number)
{
    uint64_t read;
    if (!str_to_u64(value, &read) || read > INT64_MAX)
        return false;
    *number = (int64_t)read;
    return true;
}

static bool is_absent_or(struct str value, enum json_type type)
{
    return value.length == 0 || json_type(value) == type;
}

static bool read_asks(struct str text, struct news *news)
{
    news->requests = json_member(text, "requests");
    news->questions = json_member(text, "questions");
    news->is_asking = str_equal(json_member(text, "isAsking"), STR("true"));
    return is_absent_or(news->requests, JSON_OBJECT) && is_absent_or(news->questions, JSON_ARRAY) &&
           news_read_number(json_member(text, "changedMs"), &news->changed_ms);
}

bool news_read(struct str text, struct news *news)
{
    *news = (struct news){.kind = NEWS_COUNT};
    if (!json_check(text, NULL) || json_type(text) != JSON_OBJECT ||
        !news_read_kind(json_member(text, "kind"), &news->kind) ||
        !news_read_number(json_member(text, "sequence"), &news->sequence))
        return false;
    if (news->kind == NEWS_TOOLS_CHANGED)
        return true;
    if (news->kind == NEWS_WAIT_OVER) {
        news->wait = json_member(text, "wait");
        return json_type(news->wait) == JSON_OBJECT;
    }
    if (news->kind == NEWS_REPEATED_CALL) {
        news->call = json_member(text, "call");
        return json_type(news->call) == JSON_OBJECT;
    }
    return news_read_task(json_member(text, "task"), news->task) &&
           (news->kind != NEWS_TASK_ASKS || read_asks(text, news));
}

/* ---- requests to other replicas ---- */

struct upstream_call *replicas_send(struct gateway_worker *worker,
                                    const struct replica_request *request, struct headers *headers,
                                    const struct upstream_callbacks *callbacks, void *context)
{
    const struct replicas *replicas = worker->gateway->replicas;
    char nonce[RELAY_NONCE_BYTES];
    OWNED_BUFFER(signature);
    random_hex(nonce, RELAY_NONCE_BYTES - 1);
    const struct relay_signed what = {
        .from = str_from(store_replica_id(replicas->store)),
        .to = str_from(request->replica),
        .epoch = request->epoch,
        .time_ms = clock_now_ms(),
        .nonce = str_from(nonce),
        .method = request->method,
        .target = request->target,
        .body = request->body,
        .headers = headers->items,
        .header_count = headers->count,
    };
    relay_signature_write(str_from(replicas->key), &what, &signature);
    headers_add(headers, STR(RELAY_SIGNATURE_HEADER), buffer_str(&signature));
    OWNED char *method = memory_copy_str(request->method);
    OWNED char *url = memory_format("%s%.*s", request->address, STR_ARGS(request->target));
    const struct upstream_request sent = {.method = method,
                                          .url = url,
                                          .headers = headers->items,
                                          .header_count = headers->count,
                                          .body = request->body,
                                          .silence_timeout_ms = request->silence_ms};
    return upstream_call_start(worker->client, &sent, callbacks, context);
}

#define SILENCE_MS 5000
/* That are under way from one worker. More are not sent. */
#define SENDING_MOST 256

/* One message to one replica. */
struct sending {
    struct list node; /* in worker->news */
    uint32_t magic;   /* SENDING_MAGIC */
    struct gateway_worker *worker;
    struct upstream_call *upstream;
    char *replica;
    enum news_kind kind;
    struct buffer body;
    int status;
};
#define SENDING_MAGIC 0x47574e57

static struct sending *sending_from(void *context)
{
    return MAGIC_CAST(struct sending, SENDING_MAGIC, context);
}

static void destroy(struct sending *sending)
{
    list_remove(&sending->node);
    ASSERT_NUMBERS(sending->worker->news_count, >, 0);
    sending->worker->news_count--;
    buffer_finish(&sending->body);
    free(sending->replica);
    MAGIC_CLEAR(sending);
    free(sending);
}

static void count(enum news_kind kind, const char *outcome)
{
    metrics_count(METRIC_REPLICA_NEWS, str_from(news_name(kind)), str_from(outcome));
}

/* ---- sending ---- */

static void news_on_head(void *context, int status, const struct http_header *items,
                         size_t item_count)
{
    struct sending *sending = sending_from(context);
    (void)items, (void)item_count;
    sending->status = status;
}

static void news_on_body(void *context, struct str bytes)
{
    (void)context, (void)bytes;
}

static void on_end(void *context, enum upstream_result result, const char *detail)
{
    struct sending *sending = sending_from(context);
    bool is_sent = result == UPSTREAM_DONE && sending->status == 204;
    if (!is_sent)
        log_warn("News did not reach another replica", LOG_TEXT("replica", sending->replica),
                 LOG_TEXT("kind", news_name(sending->kind)),
                 LOG_TEXT("detail", result == UPSTREAM_DONE ? "refused" : detail));
    count(sending->kind, is_sent ? "sent" : "lost");
    destroy(sending);
}

struct recipient {
    char *id, *address;
    int64_t epoch;
};

struct recipients {
    struct recipient *items;
    size_t count;
};

static bool add_recipient(void *context, const struct store_peer *peer)
{
    struct recipients *recipients = context;
    if (peer->state == STORE_PEER_GONE || !*peer->address)
        return true;
    recipients->items =
        memory_grow_array(recipients->items, recipients->count + 1, sizeof *recipients->items);
    recipients->items[recipients->count++] =
        (struct recipient){.id = memory_copy_text(peer->id),
                           .address = memory_copy_text(peer->address),
                           .epoch = peer->epoch};
    return true;
}

static void news_start(struct sending *sending, const struct recipient *to)
{
    static const struct upstream_callbacks callbacks = {news_on_head, news_on_body, on_end};
    OWNED_HEADERS(headers, false);
    headers_add(&headers, STR("content-type"), STR("application/json"));
    const struct replica_request request = {.replica = to->id,
                                            .epoch = to->epoch,
                                            .address = to->address,
                                            .method = STR("POST"),
                                            .target = STR(NEWS_TARGET),
                                            .body = buffer_str(&sending->body),
                                            .silence_ms = SILENCE_MS};
    sending->upstream = replicas_send(sending->worker, &request, &headers, &callbacks, sending);
}

static void send_to(struct gateway_worker *worker, const struct news *news,
                    const struct recipient *to)
{
    if (worker->news_count == SENDING_MOST) {
        count(news->kind, "lost");
        return;
    }
    struct sending *sending = memory_alloc(sizeof *sending);
    MAGIC_SET(sending, SENDING_MAGIC);
    sending->worker = worker;
    sending->replica = memory_copy_text(to->id);
    sending->kind = news->kind;
    buffer_init(&sending->body);
    news_write(&sending->body, news);
    list_append(&worker->news, &sending->node);
    worker->news_count++;
    news_start(sending, to);
}

/* Later messages of one process have higher numbers, and hardly ever those of another task's home
 * before. */
static int64_t next_sequence(struct replicas *replicas)
{
    int64_t now = clock_now_ms() * 1000, last = atomic_load(&replicas->news_sequence), next;
    do {
        next = last >= now ? last + 1 : now;
    } while (!atomic_compare_exchange_weak(&replicas->news_sequence, &last, next));
    return next;
}

void news_send(struct gateway_worker *worker, const struct news *news)
{
    struct replicas *replicas = worker->gateway->replicas;
    struct recipients recipients = {.count = 0};
    /* Of a process that stops the others need to learn what its clients got, and nothing else. */
    bool is_about_clients = news->kind == NEWS_REPEATED_CALL || news->kind == NEWS_WAIT_OVER;
    if (!replicas || (atomic_load(&worker->gateway->shutting_down) && !is_about_clients))
        return;
    struct news numbered = *news;
    numbered.sequence = next_sequence(replicas);
    store_visit_peers(replicas->store, add_recipient, &recipients);
    for (size_t i = 0; i < recipients.count; i++) {
        send_to(worker, &numbered, &recipients.items[i]);
        free(recipients.items[i].id);
        free(recipients.items[i].address);
    }
    free(recipients.items);
}

void news_drop(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->news) {
        struct sending *sending = LIST_ENTRY(node, struct sending, node);
        upstream_call_cancel(sending->upstream);
        destroy(sending);
    }
}

/* ---- the proof that a request comes from another replica ---- */

static void refuse(struct http_exchange *exchange, int status, struct str refusal)
{
    const struct http_header header = {.name = STR(RELAY_SIGNATURE_HEADER), .value = refusal};
    http_respond(exchange, status, &header, 1, STR_EMPTY);
}

/* One answer for all, which says nothing of what the request names. */
static bool refuse_unsigned(struct http_exchange *exchange, const char *why)
{
    log_warn("A request on the port for replicas was refused", LOG_TEXT("reason", why),
             LOG_STR("peer", http_peer(exchange)));
    metrics_count(METRIC_RELAYED_REQUESTS, STR("unsigned"));
    refuse(exchange, 403, STR(RELAYED_REFUSED));
    return false;
}

/* The headers as the other replica has sent them, but for those of the connection. */
static void relayed_take_headers(struct headers *headers, const struct http_exchange *exchange)
{
    size_t count = http_header_count(exchange);
    for (size_t i = 0; i < count; i++) {
        struct http_header item = http_header_at(exchange, i);
        unsigned flags = http_name_flags(http_name_of(&item));
        if (!(flags & (HTTP_NAME_HOP_BY_HOP | HTTP_NAME_NOT_SENT_UP)))
            headers_add(headers, item.name, item.value);
    }
}

/* NULL: it is good. */
static const char *judge(const struct replicas *replicas, const struct http_exchange *exchange,
                         struct relay_signed *request)
{
    struct http_header room[HEADERS_ROOM];
    struct headers headers;
    struct str signature, value = http_header_known(exchange, HTTP_NAME_TASKGATE_RELAY);
    if (!value.bytes || http_header_is_repeated(exchange, HTTP_NAME_TASKGATE_RELAY) ||
        !relay_signature_read(value, request, &signature))
        return "it has no signature";
    OWNED_BUFFER(target);
    relay_target_write(http_path(exchange), http_query(exchange), &target);
    headers_init_in(&headers, room, HEADERS_ROOM);
    relayed_take_headers(&headers, exchange);
    request->method = http_method(exchange);
    request->target = buffer_str(&target);
    request->body = http_body(exchange);
    request->headers = headers.items;
    request->header_count = headers.count;
    bool is_good = relay_signature_is_good(str_from(replicas->key), request, signature);
    headers_finish(&headers);
    if (!is_good)
        return "its signature is wrong";
    if (!relay_signature_is_in_time(request, clock_now_ms()))
        return "it was signed too long ago, or the clocks differ";
    if (!str_equal(request->to, str_from(store_replica_id(replicas->store))))
        return "it is for another replica";
    return nonce_cache_take(replicas->nonces, request->nonce, request->time_ms,
                            clock_monotonic_ms())
               ? NULL
               : "it has come before, or may have: the clock was set back";
}

bool relayed_is_good(struct gateway_worker *worker, struct http_exchange *exchange)
{
    const struct gateway *gateway = worker->gateway;
    struct relay_signed request = {0};
    if (!gateway->replicas)
        return refuse_unsigned(exchange, "nothing is relayed here");
    const char *wrong = judge(gateway->replicas, exchange, &request);
    if (wrong)
        return refuse_unsigned(exchange, wrong);
    atomic_store(&gateway->replicas->relayed_ms, clock_monotonic_ms());
    if (request.epoch == store_replica_epoch(gateway->store) &&
        !atomic_load(&gateway->shutting_down))
        return true;
    refuse(exchange, 421, STR(RELAYED_NOT_HERE));
    return false;
}

/* ---- a sender that ends ---- */

static struct str sender_of(const struct http_exchange *exchange)
{
    struct relay_signed request = {0};
    struct str signature, value = http_header_known(exchange, HTTP_NAME_TASKGATE_RELAY);
    return relay_signature_read(value, &request, &signature) ? request.from : STR_EMPTY;
}

static void deliver_leaving(struct gateway_worker *worker, const void *message)
{
    const struct str *sender = message;
    LIST_FOR_EACH_SAFE (node, next, &worker->calls) {
        struct call *call = LIST_ENTRY(node, struct call, node);
        if (call->is_relayed && deferred_response_is_held(call) &&
            str_equal(sender_of(call->exchange), *sender))
            deferred_response_stop(call);
    }
}

static const struct broadcast_kind leaving_kind = {
    .bytes = sizeof(struct str), .texts = 1, .deliver = deliver_leaving};

/* What is held here of its calls is answered now. */
static void relayed_end_held(struct gateway_worker *worker, struct http_exchange *exchange)
{
    const struct str sender = sender_of(exchange);
    broadcast_send(worker->gateway, &leaving_kind, &sender);
}

/* ---- taking ---- */

static void news_deliver(struct gateway_worker *worker, const void *message)
{
    worker->gateway->news(worker, message);
}

static const struct broadcast_kind news_kind = {
    .bytes = sizeof(struct news), .texts = 4, .deliver = news_deliver};

bool news_take(struct gateway_worker *worker, struct http_exchange *exchange)
{
    struct news news;
    if (!str_equal(http_path(exchange), STR(NEWS_TARGET)))
        return false;
    if (!relayed_is_good(worker, exchange))
        return true;
    if (str_equal(http_method(exchange), STR("GET"))) { /* whether anybody is here (carry.c) */
        if (str_equal(http_query(exchange), STR(RELAYED_LEAVING)))
            relayed_end_held(worker, exchange);
        http_respond(exchange, 204, NULL, 0, STR_EMPTY);
    } else if (news_read(http_body(exchange), &news)) {
        count(news.kind, "taken");
        broadcast_send(worker->gateway, &news_kind, &news);
        http_respond(exchange, 204, NULL, 0, STR_EMPTY);
    } else {
        log_warn("News of another replica were not understood; it may run another version");
        http_respond(exchange, 400, NULL, 0, STR_EMPTY);
    }
    return true;
}
