/* Trading tokens, each once. */
#include "taskgate/identity/exchange.h"

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
    struct loop *loop;
    const struct exchange_settings *settings;
    size_t capacity, under_way;
    struct map *trades; /* by digest */
    struct list again;  /* waits that are told a remembered refusal in the next round */
    struct loop_timer tell_again;
};
#define EXCHANGE_MAGIC 0x7c3a15e9

/* A token that was traded, or is being traded. */
struct trade {
    uint32_t magic; /* TRADE_MAGIC */
    struct exchange *exchange;
    struct token_digest digest;
    struct fetch *fetch; /* NULL when it is over */
    struct list waits;
    int64_t until_ms; /* of the token that is traded; then of the one that it was traded for */
    char *token;      /* NULL: none yet, or it was refused: */
    enum exchange_result refusal; /* EXCHANGE_DONE: it was not */
};
#define TRADE_MAGIC 0x7c3a15ea

struct exchange_wait {
    struct list node;
    exchange_callback callback;
    void *context;
    enum exchange_result result; /* that it is told */
};

static struct str key_of(const struct token_digest *digest)
{
    return str_slice((const char *)digest->bytes, sizeof digest->bytes);
}

static struct exchange *exchange_from(void *context)
{
    return MAGIC_CAST(struct exchange, EXCHANGE_MAGIC, context);
}

static struct trade *trade_from(void *context)
{
    return MAGIC_CAST(struct trade, TRADE_MAGIC, context);
}

static void on_tell_again(void *context);

static void free_waits(struct list *waits)
{
    LIST_FOR_EACH_SAFE (node, next, waits)
        free(LIST_ENTRY(node, struct exchange_wait, node));
}

struct exchange *exchange_create(struct fetcher *fetcher, struct loop *loop,
                                 const struct exchange_settings *settings, size_t capacity)
{
    struct exchange *exchange = memory_alloc(sizeof(*exchange));
    MAGIC_SET(exchange, EXCHANGE_MAGIC);
    exchange->fetcher = fetcher;
    exchange->loop = loop;
    exchange->settings = settings;
    exchange->capacity = capacity;
    exchange->trades = map_create();
    list_init(&exchange->again);
    loop_timer_init(&exchange->tell_again, loop, on_tell_again, exchange);
    return exchange;
}

static void trade_free(void *value)
{
    struct trade *trade = trade_from(value);
    fetch_cancel(trade->fetch);
    free_waits(&trade->waits);
    free(trade->token);
    MAGIC_CLEAR(trade);
    free(trade);
}

void exchange_destroy(struct exchange *exchange)
{
    if (!exchange)
        return;
    map_destroy(exchange->trades, trade_free);
    loop_timer_stop(&exchange->tell_again);
    free_waits(&exchange->again);
    MAGIC_CLEAR(exchange);
    free(exchange);
}

static void forget(struct trade *trade)
{
    map_remove(trade->exchange->trades, key_of(&trade->digest));
    trade_free(trade);
}

struct str exchange_find(struct exchange *exchange, const struct token_digest *digest,
                         int64_t now_ms)
{
    struct trade *trade = map_get(exchange->trades, key_of(digest));
    if (!trade || !trade->token)
        return STR_EMPTY;
    if (now_ms < trade->until_ms)
        return str_from(trade->token);
    forget(trade);
    return STR_EMPTY;
}

void exchange_forget(struct exchange *exchange, const struct token_digest *digest)
{
    struct trade *trade = map_get(exchange->trades, key_of(digest));
    if (trade && trade->token)
        forget(trade);
}

/* Room for one more: those that have ended go, and if none has, the one that ends first. */
static void make_room(struct exchange *exchange, int64_t now_ms)
{
    struct trade *first = NULL;
    struct str key;
    void *value;
    if (map_count(exchange->trades) - exchange->under_way < exchange->capacity)
        return;
    for (size_t at = 0; map_next(exchange->trades, &at, &key, &value);) {
        struct trade *trade = value;
        if (!trade->fetch && (!first || trade->until_ms < first->until_ms))
            first = trade;
        if (first && first->until_ms <= now_ms)
            break;
    }
    if (first)
        forget(first);
}

/* ---- the answer ---- */

/* RFC 8693 §2.2.1: a bearer token, and when it ends. */
static bool read_token(struct trade *trade, struct str body)
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

static enum exchange_result judge(struct trade *trade, const struct fetch_answer *answer)
{
    char code[OAUTH_ERROR_BYTES] = "";
    if (answer->status == 200 && read_token(trade, answer->body))
        return EXCHANGE_DONE;
    bool is_refused = answer->status == 400 || answer->status == 403;
    if (is_refused)
        oauth_error_code(answer->body, code);
    log_warn("A token could not be exchanged",
             LOG_TEXT("url", trade->exchange->settings->token_url),
             LOG_NUMBER("status", answer->status), LOG_TEXT("error", code),
             LOG_TEXT("problem", answer->problem));
    return is_refused ? refusal_of(answer->status, code) : EXCHANGE_UNAVAILABLE;
}

/* The waits, one by one. A callback may ask anew, or end the exchange. */
static void tell(struct list *waits, struct str token)
{
    LIST_FOR_EACH_SAFE (node, next, waits) {
        struct exchange_wait *wait = LIST_ENTRY(node, struct exchange_wait, node);
        list_remove(node);
        if (wait->callback)
            wait->callback(wait->context, wait->result, token);
        free(wait);
    }
}

/* A client that repeats its request does not make the gateway repeat its own. */
static void remember_refusal(struct trade *trade, enum exchange_result result)
{
    int64_t until_ms = clock_now_ms() + REFUSED_MS;
    trade->refusal = result;
    if (until_ms < trade->until_ms)
        trade->until_ms = until_ms;
}

static void on_answer(void *context, const struct fetch_answer *answer)
{
    struct trade *trade = trade_from(context);
    struct list waits;
    trade->fetch = NULL;
    trade->exchange->under_way--;
    enum exchange_result result = judge(trade, answer);
    char *token = memory_copy_text(trade->token);
    list_init(&waits);
    LIST_FOR_EACH_SAFE (node, next, &trade->waits) {
        LIST_ENTRY(node, struct exchange_wait, node)->result = result;
        list_remove(node);
        list_append(&waits, node);
    }
    if (result == EXCHANGE_REFUSED || result == EXCHANGE_FORBIDDEN)
        remember_refusal(trade, result);
    else if (result != EXCHANGE_DONE)
        forget(trade);
    tell(&waits, str_from(token));
    free(token);
}

/* ---- a refusal that is remembered ---- */

static void on_tell_again(void *context)
{
    struct exchange *exchange = exchange_from(context);
    struct list waits;
    list_init(&waits);
    LIST_FOR_EACH_SAFE (node, next, &exchange->again) {
        list_remove(node);
        list_append(&waits, node);
    }
    tell(&waits, STR_EMPTY);
}

/* ---- the request ---- */

static void start(struct trade *trade, struct str token)
{
    const struct exchange_settings *settings = trade->exchange->settings;
    const struct oauth_client client = {settings->client_id, settings->client_secret,
                                        settings->secret_in_body};
    const struct oauth_parameter parameters[] = {
        {"grant_type", STR("urn:ietf:params:oauth:grant-type:token-exchange")},
        {"subject_token", token},
        {"subject_token_type", STR("urn:ietf:params:oauth:token-type:access_token")},
        {"requested_token_type", STR("urn:ietf:params:oauth:token-type:access_token")},
        {"audience", str_from(settings->audience)},
        {"scope", str_from(settings->scope)},
    };
    trade->exchange->under_way++;
    trade->fetch =
        oauth_post(trade->exchange->fetcher, settings->token_url, &client, parameters,
                   sizeof parameters / sizeof *parameters, trade->exchange->loop, on_answer, trade);
}

static struct exchange_wait *add_wait(struct list *waits, enum exchange_result result,
                                      exchange_callback callback, void *context)
{
    struct exchange_wait *wait = memory_alloc(sizeof(*wait));
    wait->callback = callback;
    wait->context = context;
    wait->result = result;
    list_append(waits, &wait->node);
    return wait;
}

struct exchange_wait *exchange_request(struct exchange *exchange, const struct token_digest *digest,
                                       struct str token, int64_t until_ms,
                                       exchange_callback callback, void *context)
{
    struct trade *trade = map_get(exchange->trades, key_of(digest));
    int64_t now_ms = clock_now_ms();
    if (trade && !trade->fetch && trade->refusal != EXCHANGE_DONE && now_ms < trade->until_ms) {
        loop_timer_start(&exchange->tell_again, 0);
        return add_wait(&exchange->again, trade->refusal, callback, context);
    }
    if (trade && !trade->fetch) {
        forget(trade);
        trade = NULL;
    }
    if (!trade) {
        if (exchange->under_way >= MAX_UNDER_WAY)
            return NULL;
        make_room(exchange, now_ms);
        trade = memory_alloc(sizeof(*trade));
        MAGIC_SET(trade, TRADE_MAGIC);
        trade->exchange = exchange;
        trade->digest = *digest;
        trade->until_ms = until_ms;
        list_init(&trade->waits);
        map_put(exchange->trades, key_of(digest), trade);
        start(trade, token);
    }
    return add_wait(&trade->waits, EXCHANGE_UNAVAILABLE, callback, context);
}

void exchange_wait_cancel(struct exchange_wait *wait)
{
    if (wait)
        wait->callback = NULL;
}
