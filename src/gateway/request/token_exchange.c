/* The exchange of tokens for each source, and the calls that wait for it. */
#include "token_exchange.h"

#include <stdlib.h>
#include <string.h>

#include "call_part.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/identity/identity.h"
#include "taskgate/identity/issuer.h"
#include "token_check.h"

/* Of one set of settings. It lives while the snapshot seen last has them, and while one waits. */
struct trader {
    struct list node;
    int references;
    struct config_exchange copy; /* the memory of `settings` */
    struct exchange_settings settings;
    struct exchange *exchange;
};

/* Of a worker: the traders of the snapshot that it saw last, beside its sources. */
struct token_exchanges {
    uint64_t snapshot_number;
    struct trader **traders; /* NULL in it: the source exchanges nothing */
    size_t count;
    struct list all;
};

struct token_trade {
    struct trader *trader;
    struct exchange_wait *wait;
    exchange_callback callback;
    void *context;
};

bool token_exchange_is_due(const struct config_source *source)
{
    return source->auth.issuer && source->auth.upstream == AUTH_UPSTREAM_EXCHANGE;
}

/* ---- traders ---- */

static void trader_unref(struct trader *trader)
{
    if (!trader || --trader->references > 0)
        return;
    list_remove(&trader->node);
    exchange_destroy(trader->exchange);
    if (trader->copy.client_secret)
        explicit_bzero(trader->copy.client_secret, strlen(trader->copy.client_secret));
    free(trader->copy.client_secret);
    free(trader->copy.token_url);
    free(trader->copy.client_id);
    free(trader->copy.audience);
    free(trader->copy.scope);
    free(trader);
}

static bool is_same(const char *one, const char *other)
{
    return one && other ? strcmp(one, other) == 0 : one == other;
}

static bool has_settings(const struct trader *trader, const struct config_exchange *wanted)
{
    const struct config_exchange *own = &trader->copy;
    return is_same(own->token_url, wanted->token_url) &&
           is_same(own->client_id, wanted->client_id) &&
           is_same(own->client_secret, wanted->client_secret) &&
           is_same(own->audience, wanted->audience) && is_same(own->scope, wanted->scope);
}

static struct trader *trader_create(struct gateway_worker *worker, struct fetcher *fetcher,
                                    const struct config_exchange *wanted)
{
    struct trader *trader = memory_alloc(sizeof *trader);
    trader->copy = (struct config_exchange){
        .token_url = memory_copy_text(wanted->token_url),
        .client_id = memory_copy_text(wanted->client_id),
        .client_secret = memory_copy_text(wanted->client_secret),
        .audience = memory_copy_text(wanted->audience),
        .scope = memory_copy_text(wanted->scope),
    };
    trader->settings = (struct exchange_settings){
        .token_url = trader->copy.token_url,
        .client_id = trader->copy.client_id,
        .client_secret = trader->copy.client_secret,
        .audience = trader->copy.audience,
        .scope = trader->copy.scope,
    };
    trader->exchange =
        exchange_create(fetcher, worker->loop, &trader->settings, TOKEN_EXCHANGE_REMEMBERED);
    list_append(&worker->exchanges->all, &trader->node);
    return trader;
}

static struct trader *trader_get(struct gateway_worker *worker,
                                 const struct config_exchange *wanted)
{
    struct fetcher *fetcher = token_check_fetcher(worker);
    struct trader *found = NULL;
    LIST_FOR_EACH_SAFE (node, next, &worker->exchanges->all) {
        struct trader *trader = LIST_ENTRY(node, struct trader, node);
        if (has_settings(trader, wanted))
            found = trader;
    }
    if (!found && fetcher)
        found = trader_create(worker, fetcher, wanted);
    if (found)
        found->references++;
    return found;
}

static void release(struct token_exchanges *exchanges)
{
    for (size_t i = 0; i < exchanges->count; i++)
        trader_unref(exchanges->traders[i]);
    free(exchanges->traders);
    exchanges->traders = NULL;
    exchanges->count = 0;
}

/* The new ones are taken before the old ones go: one that stays keeps its tokens. */
static void follow(struct gateway_worker *worker, const struct snapshot *snapshot)
{
    struct token_exchanges *exchanges = worker->exchanges;
    const struct config *config = snapshot->config;
    if (!exchanges) {
        exchanges = worker->exchanges = memory_alloc(sizeof *exchanges);
        list_init(&exchanges->all);
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
    release(&old);
}

/* NULL: nothing can be asked. */
static struct trader *trader_of(const struct token_request *request)
{
    follow(request->worker, request->snapshot);
    return request->worker->exchanges
        ->traders[request->source - request->snapshot->config->sources];
}

void token_exchange_worker_close(struct gateway_worker *worker)
{
    if (!worker->exchanges)
        return;
    release(worker->exchanges);
    free(worker->exchanges);
    worker->exchanges = NULL;
}

/* ---- one token ---- */

struct str token_exchange_find(const struct token_request *request)
{
    struct trader *trader = trader_of(request);
    struct str token;
    if (!trader || token_from_value(request->authorization, &token) != TOKEN_OK)
        return STR_EMPTY;
    struct token_digest digest = token_digest(token);
    return exchange_find(trader->exchange, &digest, clock_now_ms());
}

void token_exchange_drop(const struct token_request *request)
{
    struct trader *trader = trader_of(request);
    struct str token;
    if (!trader || token_from_value(request->authorization, &token) != TOKEN_OK)
        return;
    struct token_digest digest = token_digest(token);
    exchange_forget(trader->exchange, &digest);
}

static void on_traded(void *context, enum exchange_result result, struct str token)
{
    struct token_trade *trade = context;
    struct token_trade told = *trade;
    free(trade);
    told.callback(told.context, result, token);
    trader_unref(told.trader);
}

/* As the issuer's metadata has it, where that is known (contract "small print", Tokens). */
static void choose_authentication(struct trader *trader, const struct token_request *request)
{
    struct issuer_metadata *metadata =
        token_check_metadata(request->worker, request->snapshot, request->source);
    if (metadata && is_same(metadata->token_endpoint, trader->settings.token_url))
        trader->settings.secret_in_body = metadata->secret_in_body;
    issuer_metadata_unref(metadata);
}

struct token_trade *token_exchange_start(const struct token_request *request,
                                         exchange_callback callback, void *context)
{
    struct trader *trader = trader_of(request);
    struct str token;
    if (!trader || token_from_value(request->authorization, &token) != TOKEN_OK)
        return NULL;
    struct token_digest digest = token_digest(token);
    struct token_trade *trade = memory_alloc(sizeof *trade);
    choose_authentication(trader, request);
    *trade = (struct token_trade){.trader = trader, .callback = callback, .context = context};
    trade->wait =
        exchange_request(trader->exchange, &digest, token, request->until_ms, on_traded, trade);
    if (!trade->wait) {
        free(trade);
        return NULL;
    }
    trader->references++;
    return trade;
}

void token_exchange_cancel(struct token_trade *trade)
{
    if (!trade)
        return;
    exchange_wait_cancel(trade->wait);
    trader_unref(trade->trader);
    free(trade);
}

/* ---- a call ---- */

struct call_trade {
    struct call_part part;
    struct call *call;
    struct token_trade *trade;
    call_step next;
};

static void drop_trade(struct call *call, void *object)
{
    struct call_trade *waiting = object;
    token_exchange_cancel(waiting->trade);
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

void token_exchange_forget(const struct call *call)
{
    const struct token_request request = request_of(call);
    token_exchange_drop(&request);
}

static void go_on(struct call *call, struct str token, call_step next)
{
    call->upstream_authorization = memory_format("Bearer %.*s", STR_ARGS(token));
    next(call);
}

static void on_token(void *context, enum exchange_result result, struct str token)
{
    static const enum token_error errors[] = {
        [EXCHANGE_REFUSED] = TOKEN_EXCHANGE_REFUSED,
        [EXCHANGE_FORBIDDEN] = TOKEN_EXCHANGE_FORBIDDEN,
        [EXCHANGE_UNAVAILABLE] = TOKEN_EXCHANGE_UNAVAILABLE,
    };
    struct call_trade *waiting = context;
    struct call *call = waiting->call;
    call_step next = waiting->next;
    call_part_remove(&waiting->part);
    free(waiting);
    if (result == EXCHANGE_DONE)
        go_on(call, token, next);
    else
        token_check_refuse(call, errors[result]);
}

void token_exchange_then(struct call *call, call_step next)
{
    const struct token_request request = request_of(call);
    struct str token = token_exchange_find(&request);
    if (token.length > 0) {
        go_on(call, token, next);
        return;
    }
    struct call_trade *waiting = memory_alloc(sizeof *waiting);
    waiting->call = call;
    waiting->next = next;
    waiting->trade = token_exchange_start(&request, on_token, waiting);
    if (waiting->trade) {
        call_part_add(call, &waiting->part, &trade_kind);
        return;
    }
    free(waiting);
    token_check_refuse(call, TOKEN_EXCHANGE_UNAVAILABLE);
}
