/* Trading tokens, each once for all loops. The lock is held for no callback. */
#include "taskgate/identity/exchanger.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/list.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/identity/oauth.h"
#include "taskgate/identity/token.h"
#include "taskgate/json/text.h"

#define MAX_UNDER_WAY 100
#define UNSAID_MS 60000 /* how long a token without expires_in is kept */
#define REFUSED_MS 5000 /* how long a refusal is remembered */

struct exchanger {
    uint32_t magic; /* EXCHANGER_MAGIC */
    struct fetcher *fetcher;
    char *token_url, *client_id, *client_secret, *audience, *scope; /* its own; see the settings */
    size_t capacity;
    atomic_size_t references; /* one of each wait and of each trade under way among them */
    pthread_mutex_t lock;
    /* Under the lock: */
    size_t under_way;
    struct map *trades; /* by digest */
};
#define EXCHANGER_MAGIC 0x7c3a15e9

/* A token that was traded, or is being traded. Under the lock. */
struct trade {
    uint32_t magic; /* TRADE_MAGIC */
    struct exchanger *exchanger;
    struct token_digest digest;
    bool is_under_way;
    struct list waits;
    int64_t until_ms; /* of the token that is traded; then of the one that it was traded for */
    char *token;      /* NULL: none yet, or it was refused: */
    enum exchanger_result refusal; /* EXCHANGER_DONE: it was not */
};
#define TRADE_MAGIC 0x7c3a15ea

/* It belongs to its loop. `node`, and until it is posted `result` and `token`, are under the lock.
 * The delivery frees it, or the cancellation before. */
struct exchanger_wait {
    uint32_t magic;              /* EXCHANGER_WAIT_MAGIC */
    struct exchanger *exchanger; /* it has a reference */
    struct list node;            /* in its trade; in no list: it is posted */
    struct loop *loop;
    exchanger_callback callback; /* NULL: cancelled */
    void *context;
    enum exchanger_result result; /* for its callback */
    char *token;                  /* NULL unless EXCHANGER_DONE */
};
#define EXCHANGER_WAIT_MAGIC 0x7c3a15eb

static struct str exchange_key_of(const struct token_digest *digest)
{
    return str_slice((const char *)digest->bytes, sizeof digest->bytes);
}

static struct trade *trade_from(void *context)
{
    return MAGIC_CAST(struct trade, TRADE_MAGIC, context);
}

static struct exchanger_wait *exchanger_wait_from(void *context)
{
    return MAGIC_CAST(struct exchanger_wait, EXCHANGER_WAIT_MAGIC, context);
}

/* ---- life ---- */

struct exchanger *exchanger_create(struct fetcher *fetcher,
                                   const struct exchanger_settings *settings, size_t capacity)
{
    struct exchanger *exchanger = memory_alloc(sizeof(*exchanger));
    MAGIC_SET(exchanger, EXCHANGER_MAGIC);
    exchanger->fetcher = fetcher;
    exchanger->token_url = memory_copy_text(settings->token_url);
    exchanger->client_id = memory_copy_text(settings->client_id);
    exchanger->client_secret = memory_copy_text(settings->client_secret);
    exchanger->audience = memory_copy_text(settings->audience);
    exchanger->scope = memory_copy_text(settings->scope);
    exchanger->capacity = capacity;
    atomic_init(&exchanger->references, 1);
    pthread_mutex_init(&exchanger->lock, NULL);
    exchanger->trades = map_create();
    return exchanger;
}

bool exchanger_has_settings(const struct exchanger *exchanger,
                            const struct exchanger_settings *settings)
{
    return str_same(exchanger->token_url, settings->token_url) &&
           str_same(exchanger->client_id, settings->client_id) &&
           str_same(exchanger->client_secret, settings->client_secret) &&
           str_same(exchanger->audience, settings->audience) &&
           str_same(exchanger->scope, settings->scope);
}

/* Nothing waits for it: a trade that is under way has a reference to its exchanger. */
static void trade_free(void *value)
{
    OWNED struct trade *trade = trade_from(value);
    free(trade->token);
    MAGIC_CLEAR(trade);
}

void exchanger_unref(struct exchanger *exchanger)
{
    if (!exchanger)
        return;
    size_t before = atomic_fetch_sub(&exchanger->references, 1);
    ASSERT_NUMBERS(before, >, 0);
    if (before > 1)
        return;
    ASSERT_NUMBERS(exchanger->under_way, ==, 0); /* a trade under way has a reference */
    map_destroy(exchanger->trades, trade_free);
    pthread_mutex_destroy(&exchanger->lock);
    free(exchanger->token_url);
    free(exchanger->client_id);
    memory_forget_text(exchanger->client_secret);
    free(exchanger->audience);
    free(exchanger->scope);
    MAGIC_CLEAR(exchanger);
    free(exchanger);
}

/* ---- what is known ---- */

static void forget_trade(struct trade *trade)
{
    ASSERT(!trade->is_under_way && list_is_empty(&trade->waits));
    void *removed = map_remove(trade->exchanger->trades, exchange_key_of(&trade->digest));
    ASSERT(removed == trade);
    trade_free(trade);
}

char *exchanger_find(struct exchanger *exchanger, const struct token_digest *digest, int64_t now_ms)
{
    char *token = NULL;
    pthread_mutex_lock(&exchanger->lock);
    struct trade *trade = map_get(exchanger->trades, exchange_key_of(digest));
    if (trade && trade->token && now_ms < trade->until_ms)
        token = memory_copy_text(trade->token);
    else if (trade && trade->token)
        forget_trade(trade);
    pthread_mutex_unlock(&exchanger->lock);
    return token;
}

void exchanger_forget(struct exchanger *exchanger, struct str traded)
{
    struct trade *refused = NULL;
    struct str key;
    void *value;
    pthread_mutex_lock(&exchanger->lock);
    for (size_t at = 0; !refused && map_next(exchanger->trades, &at, &key, &value);) {
        struct trade *trade = value;
        if (trade->token && str_equal(str_from(trade->token), traded))
            refused = trade;
    }
    if (refused)
        forget_trade(refused);
    pthread_mutex_unlock(&exchanger->lock);
}

/* Room for one more: those that have ended go, and if none has, the one that ends first. */
static void exchanger_make_room(struct exchanger *exchanger, int64_t now_ms)
{
    struct trade *first = NULL;
    struct str key;
    void *value;
    ASSERT_NUMBERS(exchanger->under_way, <=, map_count(exchanger->trades));
    if (map_count(exchanger->trades) - exchanger->under_way < exchanger->capacity)
        return;
    for (size_t at = 0; map_next(exchanger->trades, &at, &key, &value);) {
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
static bool exchanger_read_token(struct trade *trade, struct str body)
{
    static const char *const names[] = {"access_token", "token_type", "expires_in"};
    struct str members[3], token;
    if (!json_check(body, NULL))
        return false;
    json_members(body, names, 3, members);
    char *type = json_plain_text(members[1]), *text = json_plain_text(members[0]);
    OWNED char *header = memory_format("Bearer %s", text ? text : "");
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
    return is_good;
}

/* RFC 8693 §2.2.2 and RFC 6749 §5.2: whether the token is at fault, what is asked for it, or the
 * gateway's own client. */
static const struct {
    const char *code;
    enum exchanger_result result;
} refusals[] = {
    {"access_denied", EXCHANGER_FORBIDDEN},
    {"invalid_target", EXCHANGER_FORBIDDEN},
    {"invalid_scope", EXCHANGER_FORBIDDEN},
    {"invalid_client", EXCHANGER_UNAVAILABLE},
    {"unauthorized_client", EXCHANGER_UNAVAILABLE},
    {"unsupported_grant_type", EXCHANGER_UNAVAILABLE},
};

static enum exchanger_result refusal_of(int status, const char *code)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        if (strcmp(code, refusals[i].code) == 0)
            return refusals[i].result;
    }
    return status == 403 ? EXCHANGER_FORBIDDEN : EXCHANGER_REFUSED;
}

/* Nobody asks any more, as at the end of the process: then the log says nothing. */
static bool is_abandoned(const struct exchanger *exchanger)
{
    return atomic_load(&exchanger->references) == exchanger->under_way;
}

static enum exchanger_result exchanger_judge(struct trade *trade, const struct fetch_answer *answer)
{
    char code[OAUTH_ERROR_BYTES] = "";
    if (answer->status == 200 && exchanger_read_token(trade, answer->body))
        return EXCHANGER_DONE;
    bool is_refused = answer->status == 400 || answer->status == 403;
    if (is_refused)
        oauth_error_code(answer->body, code);
    if (!is_abandoned(trade->exchanger))
        log_warn("A token could not be exchanged", LOG_TEXT("url", trade->exchanger->token_url),
                 LOG_NUMBER("status", answer->status), LOG_TEXT("error", code),
                 LOG_TEXT("problem", answer->problem));
    return is_refused ? refusal_of(answer->status, code) : EXCHANGER_UNAVAILABLE;
}

static void wait_free(struct exchanger_wait *wait)
{
    ASSERT(list_is_empty(&wait->node)); /* no trade has it */
    exchanger_unref(wait->exchanger);
    free(wait->token);
    MAGIC_CLEAR(wait);
    free(wait);
}

/* On the wait's loop. The callback may ask anew. */
static void exchanger_deliver(void *context)
{
    struct exchanger_wait *wait = exchanger_wait_from(context);
    if (wait->callback)
        wait->callback(wait->context, wait->result, str_from(wait->token));
    wait_free(wait);
}

/* `wait` is in no list; from here on its loop alone has it. */
static void exchanger_tell(struct exchanger_wait *wait, enum exchanger_result result,
                           const char *token)
{
    ASSERT(list_is_empty(&wait->node)); /* no trade answers it again */
    wait->result = result;
    wait->token = memory_copy_text(token);
    loop_post(wait->loop, exchanger_deliver, wait);
}

/* A client that repeats its request does not make the gateway repeat its own. */
static void remember_refusal(struct trade *trade, enum exchanger_result result)
{
    int64_t until_ms = clock_now_ms() + REFUSED_MS;
    ASSERT(!trade->token);
    trade->refusal = result;
    if (until_ms < trade->until_ms)
        trade->until_ms = until_ms;
}

static void exchanger_on_answer(void *context, const struct fetch_answer *answer)
{
    struct trade *trade = trade_from(context);
    struct exchanger *exchanger = trade->exchanger;
    pthread_mutex_lock(&exchanger->lock);
    enum exchanger_result result = exchanger_judge(trade, answer);
    ASSERT(trade->is_under_way);
    ASSERT_NUMBERS(exchanger->under_way, >, 0);
    trade->is_under_way = false;
    exchanger->under_way--;
    LIST_FOR_EACH_SAFE (node, next, &trade->waits) {
        list_remove(node);
        exchanger_tell(LIST_ENTRY(node, struct exchanger_wait, node), result, trade->token);
    }
    if (result == EXCHANGER_REFUSED || result == EXCHANGER_FORBIDDEN)
        remember_refusal(trade, result);
    else if (result != EXCHANGER_DONE)
        forget_trade(trade);
    pthread_mutex_unlock(&exchanger->lock);
    exchanger_unref(exchanger);
}

/* ---- the request ---- */

static void exchanger_start(struct trade *trade, const struct exchanger_order *order)
{
    struct exchanger *exchanger = trade->exchanger;
    const struct oauth_client client = {exchanger->client_id, exchanger->client_secret,
                                        order->secret_in_body};
    const struct oauth_parameter parameters[] = {
        {"grant_type", STR("urn:ietf:params:oauth:grant-type:token-exchange")},
        {"subject_token", order->token},
        {"subject_token_type", STR("urn:ietf:params:oauth:token-type:access_token")},
        {"requested_token_type", STR("urn:ietf:params:oauth:token-type:access_token")},
        {"audience", str_from(exchanger->audience)},
        {"scope", str_from(exchanger->scope)},
    };
    ASSERT(!trade->is_under_way);
    ASSERT_NUMBERS(exchanger->under_way, <, MAX_UNDER_WAY);
    exchanger->under_way++;
    atomic_fetch_add(&exchanger->references, 1);
    trade->is_under_way = true;
    oauth_post(exchanger->fetcher, exchanger->token_url, &client, parameters,
               sizeof parameters / sizeof *parameters, order->loop, exchanger_on_answer, trade);
}

/* A trade that is under way, or whose outcome holds; NULL: none can be begun. */
static struct trade *find_trade(struct exchanger *exchanger, const struct exchanger_order *order)
{
    struct trade *trade = map_get(exchanger->trades, exchange_key_of(&order->digest));
    int64_t now_ms = clock_now_ms();
    if (trade && (trade->is_under_way || now_ms < trade->until_ms))
        return trade;
    if (trade)
        forget_trade(trade);
    if (exchanger->under_way >= MAX_UNDER_WAY)
        return NULL;
    exchanger_make_room(exchanger, now_ms);
    trade = memory_alloc(sizeof(*trade));
    MAGIC_SET(trade, TRADE_MAGIC);
    trade->exchanger = exchanger;
    trade->digest = order->digest;
    trade->until_ms = order->until_ms;
    list_init(&trade->waits);
    void *earlier = map_put(exchanger->trades, exchange_key_of(&order->digest), trade);
    ASSERT(!earlier);
    exchanger_start(trade, order);
    return trade;
}

struct exchanger_wait *exchanger_request(struct exchanger *exchanger,
                                         const struct exchanger_order *order,
                                         exchanger_callback callback, void *context)
{
    struct exchanger_wait *wait = NULL;
    pthread_mutex_lock(&exchanger->lock);
    struct trade *trade = find_trade(exchanger, order);
    if (trade) {
        wait = memory_alloc(sizeof(*wait));
        MAGIC_SET(wait, EXCHANGER_WAIT_MAGIC);
        wait->exchanger = exchanger;
        wait->loop = order->loop;
        wait->callback = callback;
        wait->context = context;
        atomic_fetch_add(&exchanger->references, 1);
        list_init(&wait->node);
        if (trade->is_under_way)
            list_append(&trade->waits, &wait->node);
        else
            exchanger_tell(wait, trade->refusal, trade->token);
    }
    pthread_mutex_unlock(&exchanger->lock);
    return wait;
}

void exchanger_wait_cancel(struct exchanger_wait *wait)
{
    if (!wait)
        return;
    pthread_mutex_lock(&wait->exchanger->lock);
    bool is_posted = list_is_empty(&wait->node);
    list_remove(&wait->node);
    pthread_mutex_unlock(&wait->exchanger->lock);
    wait->callback = NULL;
    if (!is_posted)
        wait_free(wait);
}
