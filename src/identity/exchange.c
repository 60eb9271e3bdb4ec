/* Trading tokens, each once for all loops. The lock is held for no callback. */
#include "taskgate/identity/exchange.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/list.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/identity/oauth.h"
#include "taskgate/json/text.h"

#define MAX_UNDER_WAY 100
#define UNSAID_MS 60000 /* how long a token without expires_in is kept */
#define REFUSED_MS 5000 /* how long a refusal is remembered */

struct exchange {
    uint32_t magic; /* EXCHANGE_MAGIC */
    struct fetcher *fetcher;
    char *token_url, *client_id, *client_secret, *audience, *scope; /* its own; see the settings */
    size_t capacity;
    atomic_size_t references; /* one of each wait and of each trade under way among them */
    pthread_mutex_t lock;
    /* Under the lock: */
    size_t under_way;
    struct map *trades; /* by digest */
};
#define EXCHANGE_MAGIC 0x7c3a15e9

/* A token that was traded, or is being traded. Under the lock. */
struct trade {
    uint32_t magic; /* TRADE_MAGIC */
    struct exchange *exchange;
    struct token_digest digest;
    bool is_under_way;
    struct list waits;
    int64_t until_ms; /* of the token that is traded; then of the one that it was traded for */
    char *token;      /* NULL: none yet, or it was refused: */
    enum exchange_result refusal; /* EXCHANGE_DONE: it was not */
};
#define TRADE_MAGIC 0x7c3a15ea

/* It belongs to its loop. `node`, and until it is posted `result` and `token`, are under the lock.
 * The delivery frees it, or the cancellation before. */
struct exchange_wait {
    uint32_t magic;            /* EXCHANGE_WAIT_MAGIC */
    struct exchange *exchange; /* it has a reference */
    struct list node;          /* in its trade; in no list: it is posted */
    struct loop *loop;
    exchange_callback callback; /* NULL: cancelled */
    void *context;
    enum exchange_result result; /* that it is told */
    char *token;                 /* NULL unless EXCHANGE_DONE */
};
#define EXCHANGE_WAIT_MAGIC 0x7c3a15eb

static struct str exchange_key_of(const struct token_digest *digest)
{
    return str_slice((const char *)digest->bytes, sizeof digest->bytes);
}

static struct trade *trade_from(void *context)
{
    return MAGIC_CAST(struct trade, TRADE_MAGIC, context);
}

static struct exchange_wait *exchange_wait_from(void *context)
{
    return MAGIC_CAST(struct exchange_wait, EXCHANGE_WAIT_MAGIC, context);
}

/* ---- life ---- */

struct exchange *exchange_create(struct fetcher *fetcher, const struct exchange_settings *settings,
                                 size_t capacity)
{
    struct exchange *exchange = memory_alloc(sizeof(*exchange));
    MAGIC_SET(exchange, EXCHANGE_MAGIC);
    exchange->fetcher = fetcher;
    exchange->token_url = memory_copy_text(settings->token_url);
    exchange->client_id = memory_copy_text(settings->client_id);
    exchange->client_secret = memory_copy_text(settings->client_secret);
    exchange->audience = memory_copy_text(settings->audience);
    exchange->scope = memory_copy_text(settings->scope);
    exchange->capacity = capacity;
    atomic_init(&exchange->references, 1);
    pthread_mutex_init(&exchange->lock, NULL);
    exchange->trades = map_create();
    return exchange;
}

static bool exchange_is_same(const char *one, const char *other)
{
    return one && other ? strcmp(one, other) == 0 : one == other;
}

bool exchange_has_settings(const struct exchange *exchange,
                           const struct exchange_settings *settings)
{
    return exchange_is_same(exchange->token_url, settings->token_url) &&
           exchange_is_same(exchange->client_id, settings->client_id) &&
           exchange_is_same(exchange->client_secret, settings->client_secret) &&
           exchange_is_same(exchange->audience, settings->audience) &&
           exchange_is_same(exchange->scope, settings->scope);
}

/* Nothing waits for it: a trade that is under way has a reference to its exchange. */
static void trade_free(void *value)
{
    struct trade *trade = trade_from(value);
    free(trade->token);
    MAGIC_CLEAR(trade);
    free(trade);
}

void exchange_unref(struct exchange *exchange)
{
    if (!exchange || atomic_fetch_sub(&exchange->references, 1) > 1)
        return;
    map_destroy(exchange->trades, trade_free);
    pthread_mutex_destroy(&exchange->lock);
    if (exchange->client_secret)
        explicit_bzero(exchange->client_secret, strlen(exchange->client_secret));
    free(exchange->token_url);
    free(exchange->client_id);
    free(exchange->client_secret);
    free(exchange->audience);
    free(exchange->scope);
    MAGIC_CLEAR(exchange);
    free(exchange);
}

/* ---- what is known ---- */

static void forget_trade(struct trade *trade)
{
    map_remove(trade->exchange->trades, exchange_key_of(&trade->digest));
    trade_free(trade);
}

char *exchange_find(struct exchange *exchange, const struct token_digest *digest, int64_t now_ms)
{
    char *token = NULL;
    pthread_mutex_lock(&exchange->lock);
    struct trade *trade = map_get(exchange->trades, exchange_key_of(digest));
    if (trade && trade->token && now_ms < trade->until_ms)
        token = memory_copy_text(trade->token);
    else if (trade && trade->token)
        forget_trade(trade);
    pthread_mutex_unlock(&exchange->lock);
    return token;
}

void exchange_forget(struct exchange *exchange, struct str traded)
{
    struct trade *refused = NULL;
    struct str key;
    void *value;
    pthread_mutex_lock(&exchange->lock);
    for (size_t at = 0; !refused && map_next(exchange->trades, &at, &key, &value);) {
        struct trade *trade = value;
        if (trade->token && str_equal(str_from(trade->token), traded))
            refused = trade;
    }
    if (refused)
        forget_trade(refused);
    pthread_mutex_unlock(&exchange->lock);
}

/* Room for one more: those that have ended go, and if none has, the one that ends first. */
static void exchange_make_room(struct exchange *exchange, int64_t now_ms)
{
    struct trade *first = NULL;
    struct str key;
    void *value;
    if (map_count(exchange->trades) - exchange->under_way < exchange->capacity)
        return;
    for (size_t at = 0; map_next(exchange->trades, &at, &key, &value);) {
        struct trade *trade = value;
        if (!trade->is_under_way && (!first || trade->until_ms < first->until_ms))
            first = trade;
        if (first && first->until_ms <= now_ms)
            break;
    }
    if (first)
        forget_trade(first);
}

/* ---- the answer ---- */

/* RFC 8693 §2.2.1: a bearer token, and when it ends. */
static bool exchange_read_token(struct trade *trade, struct str body)
{
    static const char *const names[] = {"access_token", "token_type", "expires_in"};
    struct str members[3], token;
    if (!json_check(body, NULL))
        return false;
    json_members(body, names, 3, members);
    char *type = claim_text(members[1]), *text = claim_text(members[0]);
    char *header = memory_format("Bearer %s", text ? text : "");
    bool is_good = type && str_equal_ignore_case(str_from(type), STR("bearer")) &&
                   token_from_value(str_from(header), &token) == TOKEN_OK;
    int64_t lasts_ms = UNSAID_MS;
    if (is_good)
        claim_time(members[2], &lasts_ms);
    int64_t until_ms = clock_now_ms() + lasts_ms;
    if (until_ms < trade->until_ms)
        trade->until_ms = until_ms;
    if (is_good)
        trade->token = text;
    else
        free(text);
    free(type);
    free(header);
    return is_good;
}

/* RFC 8693 §2.2.2 and RFC 6749 §5.2: whether the token is at fault, what is asked for it, or the
 * gateway's own client. */
static const struct {
    const char *code;
    enum exchange_result result;
} refusals[] = {
    {"access_denied", EXCHANGE_FORBIDDEN},         {"invalid_target", EXCHANGE_FORBIDDEN},
    {"invalid_scope", EXCHANGE_FORBIDDEN},         {"invalid_client", EXCHANGE_UNAVAILABLE},
    {"unauthorized_client", EXCHANGE_UNAVAILABLE}, {"unsupported_grant_type", EXCHANGE_UNAVAILABLE},
};

static enum exchange_result refusal_of(int status, const char *code)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        if (strcmp(code, refusals[i].code) == 0)
            return refusals[i].result;
    }
    return status == 403 ? EXCHANGE_FORBIDDEN : EXCHANGE_REFUSED;
}

/* Nobody asks any more, as at the end of the process: then the log says nothing. */
static bool is_abandoned(const struct exchange *exchange)
{
    return atomic_load(&exchange->references) == exchange->under_way;
}

static enum exchange_result exchange_judge(struct trade *trade, const struct fetch_answer *answer)
{
    char code[OAUTH_ERROR_BYTES] = "";
    if (answer->status == 200 && exchange_read_token(trade, answer->body))
        return EXCHANGE_DONE;
    bool is_refused = answer->status == 400 || answer->status == 403;
    if (is_refused)
        oauth_error_code(answer->body, code);
    if (!is_abandoned(trade->exchange))
        log_warn("A token could not be exchanged", LOG_TEXT("url", trade->exchange->token_url),
                 LOG_NUMBER("status", answer->status), LOG_TEXT("error", code),
                 LOG_TEXT("problem", answer->problem));
    return is_refused ? refusal_of(answer->status, code) : EXCHANGE_UNAVAILABLE;
}

static void wait_free(struct exchange_wait *wait)
{
    exchange_unref(wait->exchange);
    free(wait->token);
    MAGIC_CLEAR(wait);
    free(wait);
}

/* On the wait's loop. The callback may ask anew. */
static void exchange_deliver(void *context)
{
    struct exchange_wait *wait = exchange_wait_from(context);
    if (wait->callback)
        wait->callback(wait->context, wait->result, str_from(wait->token));
    wait_free(wait);
}

/* `wait` is in no list; from here on its loop alone has it. */
static void exchange_tell(struct exchange_wait *wait, enum exchange_result result,
                          const char *token)
{
    wait->result = result;
    wait->token = memory_copy_text(token);
    loop_post(wait->loop, exchange_deliver, wait);
}

/* A client that repeats its request does not make the gateway repeat its own. */
static void remember_refusal(struct trade *trade, enum exchange_result result)
{
    int64_t until_ms = clock_now_ms() + REFUSED_MS;
    trade->refusal = result;
    if (until_ms < trade->until_ms)
        trade->until_ms = until_ms;
}

static void exchange_on_answer(void *context, const struct fetch_answer *answer)
{
    struct trade *trade = trade_from(context);
    struct exchange *exchange = trade->exchange;
    pthread_mutex_lock(&exchange->lock);
    enum exchange_result result = exchange_judge(trade, answer);
    trade->is_under_way = false;
    exchange->under_way--;
    LIST_FOR_EACH_SAFE (node, next, &trade->waits) {
        list_remove(node);
        exchange_tell(LIST_ENTRY(node, struct exchange_wait, node), result, trade->token);
    }
    if (result == EXCHANGE_REFUSED || result == EXCHANGE_FORBIDDEN)
        remember_refusal(trade, result);
    else if (result != EXCHANGE_DONE)
        forget_trade(trade);
    pthread_mutex_unlock(&exchange->lock);
    exchange_unref(exchange);
}

/* ---- the request ---- */

static void exchange_start(struct trade *trade, const struct exchange_order *order)
{
    struct exchange *exchange = trade->exchange;
    const struct oauth_client client = {exchange->client_id, exchange->client_secret,
                                        order->secret_in_body};
    const struct oauth_parameter parameters[] = {
        {"grant_type", STR("urn:ietf:params:oauth:grant-type:token-exchange")},
        {"subject_token", order->token},
        {"subject_token_type", STR("urn:ietf:params:oauth:token-type:access_token")},
        {"requested_token_type", STR("urn:ietf:params:oauth:token-type:access_token")},
        {"audience", str_from(exchange->audience)},
        {"scope", str_from(exchange->scope)},
    };
    exchange->under_way++;
    atomic_fetch_add(&exchange->references, 1);
    trade->is_under_way = true;
    oauth_post(exchange->fetcher, exchange->token_url, &client, parameters,
               sizeof parameters / sizeof *parameters, order->loop, exchange_on_answer, trade);
}

/* A trade that is under way, or whose outcome holds; NULL: none can be begun. */
static struct trade *find_trade(struct exchange *exchange, const struct exchange_order *order)
{
    struct trade *trade = map_get(exchange->trades, exchange_key_of(&order->digest));
    int64_t now_ms = clock_now_ms();
    if (trade && (trade->is_under_way || now_ms < trade->until_ms))
        return trade;
    if (trade)
        forget_trade(trade);
    if (exchange->under_way >= MAX_UNDER_WAY)
        return NULL;
    exchange_make_room(exchange, now_ms);
    trade = memory_alloc(sizeof(*trade));
    MAGIC_SET(trade, TRADE_MAGIC);
    trade->exchange = exchange;
    trade->digest = order->digest;
    trade->until_ms = order->until_ms;
    list_init(&trade->waits);
    map_put(exchange->trades, exchange_key_of(&order->digest), trade);
    exchange_start(trade, order);
    return trade;
}

struct exchange_wait *exchange_request(struct exchange *exchange,
                                       const struct exchange_order *order,
                                       exchange_callback callback, void *context)
{
    struct exchange_wait *wait = NULL;
    pthread_mutex_lock(&exchange->lock);
    struct trade *trade = find_trade(exchange, order);
    if (trade) {
        wait = memory_alloc(sizeof(*wait));
        MAGIC_SET(wait, EXCHANGE_WAIT_MAGIC);
        wait->exchange = exchange;
        wait->loop = order->loop;
        wait->callback = callback;
        wait->context = context;
        atomic_fetch_add(&exchange->references, 1);
        list_init(&wait->node);
        if (trade->is_under_way)
            list_append(&trade->waits, &wait->node);
        else
            exchange_tell(wait, trade->refusal, trade->token);
    }
    pthread_mutex_unlock(&exchange->lock);
    return wait;
}

void exchange_wait_cancel(struct exchange_wait *wait)
{
    if (!wait)
        return;
    pthread_mutex_lock(&wait->exchange->lock);
    bool is_posted = list_is_empty(&wait->node);
    list_remove(&wait->node);
    pthread_mutex_unlock(&wait->exchange->lock);
    wait->callback = NULL;
    if (!is_posted)
        wait_free(wait);
}
