/* The signed text, and the header that carries its signature. */
#include "relay_signature.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

/* Two generations of nonces: the younger one takes, the elder one is forgotten as a whole. */

struct generation {
    struct map *nonces;
    int64_t newest_ms; /* when the last of them was signed */
};

struct nonce_cache {
    pthread_mutex_t lock;
    int64_t window_ms;
    size_t most;
    struct generation young, old;
    int64_t young_since_ms;
    int64_t forgotten_ms; /* the last that is forgotten was signed then */
};

static struct generation generation(void)
{
    return (struct generation){.nonces = map_create(), .newest_ms = INT64_MIN};
}

struct nonce_cache *nonce_cache_create(int64_t window_ms, size_t most)
{
    struct nonce_cache *cache = memory_alloc(sizeof *cache);
    pthread_mutex_init(&cache->lock, NULL);
    cache->window_ms = window_ms;
    cache->most = most;
    cache->young = generation();
    cache->old = generation();
    cache->forgotten_ms = INT64_MIN;
    return cache;
}

void nonce_cache_destroy(struct nonce_cache *cache)
{
    if (!cache)
        return;
    map_destroy(cache->young.nonces, NULL);
    map_destroy(cache->old.nonces, NULL);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

/* Nonces in `old` were taken before `young` began, so they are older than the window at the next
 * turn. */
static void turn(struct nonce_cache *cache, int64_t now_ms)
{
    if (now_ms - cache->young_since_ms < cache->window_ms)
        return;
    if (cache->old.newest_ms > cache->forgotten_ms)
        cache->forgotten_ms = cache->old.newest_ms;
    map_destroy(cache->old.nonces, NULL);
    cache->old = cache->young;
    cache->young = generation();
    cache->young_since_ms = now_ms;
}

bool nonce_cache_take(struct nonce_cache *cache, struct str nonce, int64_t signed_ms,
                      int64_t now_ms)
{
    pthread_mutex_lock(&cache->lock);
    turn(cache, now_ms);
    struct generation *young = &cache->young;
    bool is_new = signed_ms > cache->forgotten_ms && !map_get(young->nonces, nonce) &&
                  !map_get(cache->old.nonces, nonce) && map_count(young->nonces) < cache->most;
    if (is_new) {
        map_put(young->nonces, nonce, cache);
        if (signed_ms > young->newest_ms)
            young->newest_ms = signed_ms;
    }
    pthread_mutex_unlock(&cache->lock);
    return is_new;
}

#define VERSION "v1"
#define WORD_COUNT 7

void relay_target_write(struct str path, struct str query, struct buffer *out)
{
    buffer_append(out, path);
    if (query.length > 0) {
        buffer_append_char(out, '?');
        buffer_append(out, query);
    }
}

/* With its length before it, so that no two lists of parts make the same text. */
static void add(struct buffer *text, struct str part)
{
    buffer_append_format(text, "%zu:", part.length);
    buffer_append(text, part);
    buffer_append_char(text, '\n');
}

static void digest_headers(const struct relay_signed *request, char digest[DIGEST_HEX_BYTES])
{
    OWNED_BUFFER(text);
    for (size_t i = 0; i < request->header_count; i++) {
        add(&text, request->headers[i].name);
        add(&text, request->headers[i].value);
    }
    digest_sha256_hex(buffer_str(&text), digest);
}

static void sign(struct str key, const struct relay_signed *request,
                 char signature[DIGEST_HEX_BYTES])
{
    char body[DIGEST_HEX_BYTES], headers[DIGEST_HEX_BYTES];
    OWNED_BUFFER(text);
    digest_sha256_hex(request->body, body);
    digest_headers(request, headers);
    add(&text, STR("taskgate relay " VERSION));
    add(&text, request->method);
    add(&text, request->target);
    add(&text, str_from(body));
    add(&text, str_from(headers));
    add(&text, request->from);
    add(&text, request->to);
    buffer_append_format(&text, "%" PRId64 "\n%" PRId64 "\n", request->epoch, request->time_ms);
    add(&text, request->nonce);
    digest_hmac_sha256_hex(key, buffer_str(&text), signature);
}

void relay_signature_write(struct str key, const struct relay_signed *request, struct buffer *out)
{
    char signature[DIGEST_HEX_BYTES];
    sign(key, request, signature);
    buffer_append_format(out, VERSION " %.*s %.*s %" PRId64 " %" PRId64 " %.*s %s",
                         STR_ARGS(request->from), STR_ARGS(request->to), request->epoch,
                         request->time_ms, STR_ARGS(request->nonce), signature);
}

static bool relay_signature_read_number(struct str text, int64_t *number)
{
    uint64_t value;
    if (!str_to_u64(text, &value) || value > INT64_MAX)
        return false;
    *number = (int64_t)value;
    return true;
}

bool relay_signature_read(struct str value, struct relay_signed *request, struct str *signature)
{
    struct str words[WORD_COUNT];
    for (size_t i = 0; i < WORD_COUNT; i++) {
        bool is_last = i == WORD_COUNT - 1;
        if (str_cut(value, ' ', &words[i], &value) == is_last || words[i].length == 0)
            return false;
    }
    request->from = words[1];
    request->to = words[2];
    request->nonce = words[5];
    *signature = words[6];
    return str_equal(words[0], STR(VERSION)) &&
           relay_signature_read_number(words[3], &request->epoch) &&
           relay_signature_read_number(words[4], &request->time_ms) &&
           request->nonce.length == RELAY_NONCE_BYTES - 1;
}

bool relay_signature_is_good(struct str key, const struct relay_signed *request,
                             struct str signature)
{
    char expected[DIGEST_HEX_BYTES];
    sign(key, request, expected);
    return str_equal_constant_time(str_from(expected), signature);
}

bool relay_signature_is_in_time(const struct relay_signed *request, int64_t now_ms)
{
    /* Without a difference that could overflow: the sender chooses the number. */
    return request->time_ms >= now_ms - RELAY_SIGNATURE_WINDOW_MS &&
           request->time_ms <= now_ms + RELAY_SIGNATURE_WINDOW_MS;
}
