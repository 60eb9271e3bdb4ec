/* The exchange of tokens for each source, and the calls that wait for it. */
#include "token_exchange.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "call/call.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/identity/identity.h"
#include "taskgate/identity/issuer.h"
#include "token_check.h"

/* One set of settings. It lives while the snapshot that some worker saw last has them. */
struct trader {
    struct list node; /* in the table */
    int references;
    struct exchanger *exchanger;
};

/* Of the gateway: each set of settings once. */
struct token_exchange_table {
    pthread_mutex_t lock;
    struct list traders; /* with their references, under the lock */
};

/* Of a worker: the traders of the snapshot that it saw last, beside its sources. */
struct token_exchanges {
    uint64_t snapshot_number;
    struct trader **traders; /* NULL in it: the source exchanges nothing */
    size_t count;
};

struct token_exchange_table *token_exchange_table_create(void)
{
    struct token_exchange_table *table = memory_alloc(sizeof *table);
    pthread_mutex_init(&table->lock, NULL);
    list_init(&table->traders);
    return table;
}

void token_exchange_table_destroy(struct token_exchange_table *table)
{
    if (!table)
        return;
    pthread_mutex_destroy(&table->lock);
    free(table);
}

bool token_exchange_is_due(const struct config_source *source)
{
    return source->auth.issuer && source->auth.upstream == AUTH_UPSTREAM_EXCHANGE;
}

/* ---- traders ---- */

/* Under the lock. */
static struct trader *find_trader(struct token_exchange_table *table,
                                  const struct exchanger_settings *settings)
{
    LIST_FOR_EACH_SAFE (node, next, &table->traders) {
        struct trader *trader = LIST_ENTRY(node, struct trader, node);
        if (exchanger_has_settings(trader->exchanger, settings))
            return trader;
    }
    return NULL;
}

/* NULL: nothing can be fetched. */
static struct trader *trader_get(struct gateway_worker *worker,
                                 const struct config_exchange *wanted)
{
    const struct exchanger_settings settings = {
        .token_url = wanted->token_url,
        .client_id = wanted->client_id,
        .client_secret = wanted->client_secret,
        .audience = wanted->audience,
        .scope = wanted->scope,
    };
    struct token_exchange_table *table = worker->gateway->token_exchanges;
    struct fetcher *fetcher = token_check_fetcher(worker);
    pthread_mutex_lock(&table->lock);
    struct trader *trader = find_trader(table, &settings);
    if (!trader && fetcher) {
        trader = memory_alloc(sizeof *trader);
        trader->exchanger = exchanger_create(fetcher, &settings, TOKEN_EXCHANGE_REMEMBERED);
        list_append(&table->traders, &trader->node);
    }
    if (trader)
        trader->references++;
    pthread_mutex_unlock(&table->lock);
    return trader;
}

/* Under the lock. */
static void trader_unref(struct trader *trader)
{
    if (!trader)
        return;
    ASSERT_NUMBERS(trader->references, >, 0);
    if (--trader->references > 0)
        return;
    list_remove(&trader->node);
    exchanger_unref(trader->exchanger);
    free(trader);
}

static void token_exchange_release(struct token_exchange_table *table,
                                   struct token_exchanges *exchanges)
{
    pthread_mutex_lock(&table->lock);
    for (size_t i = 0; i < exchanges->count; i++)
        trader_unref(exchanges->traders[i]);
    pthread_mutex_unlock(&table->lock);
    free(exchanges->traders);
}

/* The new ones are taken before the old ones go: one that stays keeps its tokens. */
static void token_exchange_follow(struct gateway_worker *worker, const struct snapshot *snapshot)
{
    struct token_exchanges *exchanges = worker->exchanges;
    const struct config *config = snapshot->config;
    if (!exchanges) {
        exchanges = worker->exchanges = memory_alloc(sizeof *exchanges);
    } else if (exchanges->snapshot_number == snapshot->number) {
        return;
    }
    struct token_exchanges old = *exchanges;
    exchanges->snapshot_number = snapshot->number;
    exchanges->count = config->source_count;
    exchanges->traders = memory_alloc_array(config->source_count, sizeof(struct trader *));
    for (size_t i = 0; i < config->source_count; i++) {
        if (token_exchange_is_due(&config->sources[i]))
            exchanges->traders[i] = trader_get(worker, &config->sources[i].auth.exchange);
    }
    token_exchange_release(worker->gateway->token_exchanges, &old);
}

/* NULL: nothing can be asked. */
static struct exchanger *exchanger_of(const struct token_request *request)
{
    token_exchange_follow(request->worker, request->snapshot);
    const struct trader *trader =
        request->worker->exchanges->traders[request->source - request->snapshot->config->sources];
    return trader ? trader->exchanger : NULL;
}

void token_exchange_worker_close(struct gateway_worker *worker)
{
    if (!worker->exchanges)
        return;
    token_exchange_release(worker->gateway->token_exchanges, worker->exchanges);
    free(worker->exchanges);
    worker->exchanges = NULL;
}

/* ---- one token ---- */

char *token_exchange_find(const struct token_request *request)
{
    struct exchanger *exchanger = exchanger_of(request);
    struct str token;
    if (!exchanger || token_from_value(request->authorization, &token) != TOKEN_OK)
        return NULL;
    struct token_digest digest = token_digest(token);
    return exchanger_find(exchanger, &digest, clock_now_ms());
}

void token_exchange_note_refused(struct gateway_worker *worker, const struct snapshot *snapshot,
                                 const struct config_source *source, struct str authorization)
{
    const struct token_request request = {
        .worker = worker, .snapshot = snapshot, .source = source, .authorization = authorization};
    struct exchanger *exchanger = token_exchange_is_due(source) ? exchanger_of(&request) : NULL;
    struct str token;
    if (exchanger && token_from_value(authorization, &token) == TOKEN_OK)
        exchanger_forget(exchanger, token);
}

/* As the issuer's metadata has it, where that is known (behaviour 13.6). */
static bool wants_secret_in_body(const struct token_request *request)
{
    const char *token_url = request->source->auth.exchange.token_url;
    struct issuer_metadata *metadata =
        token_check_metadata(request->worker, request->snapshot, request->source);
    bool is_known =
        metadata && metadata->token_endpoint && strcmp(metadata->token_endpoint, token_url) == 0;
    bool is_wanted = is_known && metadata->secret_in_body;
    issuer_metadata_unref(metadata);
    return is_wanted;
}

struct exchanger_wait *token_exchange_start(const struct token_request *request,
                                            exchanger_callback callback, void *context)
{
    struct exchanger *exchanger = exchanger_of(request);
    struct str token;
    if (!exchanger || token_from_value(request->authorization, &token) != TOKEN_OK)
        return NULL;
    const struct exchanger_order order = {
        .digest = token_digest(token),
        .token = token,
        .until_ms = request->until_ms,
        .secret_in_body = wants_secret_in_body(request),
        .loop = request->worker->loop,
    };
    return exchanger_request(exchanger, &order, callback, context);
}

/* ---- a call ---- */

struct call_trade {
    struct call_part part;
    struct call *call;
    struct exchanger_wait *wait;
    call_step next;
};

static void drop_trade(struct call *call, void *object)
{
    struct call_trade *waiting = object;
    exchanger_wait_cancel(waiting->wait);
    free(waiting);
}

static const struct call_part_kind trade_kind = CALL_PART_KIND(struct call_trade, drop_trade);

static struct token_request request_of(const struct call *call)
{
    return (struct token_request){
        .worker = call->worker,
        .snapshot = call->snapshot,
        .source = call->source,
        .authorization = http_header_known(call->exchange, HTTP_NAME_AUTHORIZATION),
        .until_ms = call->identity->until_ms,
    };
}

static void token_exchange_take_token(struct call *call, struct str token)
{
    call->upstream_authorization = memory_format("Bearer %.*s", STR_ARGS(token));
}

static void on_token(void *context, enum exchanger_result result, struct str token)
{
    static const enum token_error errors[] = {
        [EXCHANGER_REFUSED] = TOKEN_EXCHANGE_REFUSED,
        [EXCHANGER_FORBIDDEN] = TOKEN_EXCHANGE_FORBIDDEN,
        [EXCHANGER_UNAVAILABLE] = TOKEN_EXCHANGE_UNAVAILABLE,
    };
    struct call_trade *waiting = context;
    struct call *call = waiting->call;
    call_step next = waiting->next;
    call_part_remove(&waiting->part);
    free(waiting);
    if (result != EXCHANGER_DONE) {
        token_check_refuse(call, errors[result]);
        return;
    }
    token_exchange_take_token(call, token);
    next(call);
}

enum gate_verdict token_exchange_then(struct call *call, call_step next)
{
    const struct token_request request = request_of(call);
    char *token = token_exchange_find(&request);
    if (token) {
        token_exchange_take_token(call, str_from(token));
        free(token);
        return GATE_PASSED;
    }
    struct call_trade *waiting = memory_alloc(sizeof *waiting);
    waiting->call = call;
    waiting->next = next;
    waiting->wait = token_exchange_start(&request, on_token, waiting);
    if (waiting->wait) {
        call_part_add(call, &waiting->part, &trade_kind);
        return GATE_WAITS;
    }
    free(waiting);
    token_check_refuse(call, TOKEN_EXCHANGE_UNAVAILABLE);
    return GATE_ANSWERED;
}
