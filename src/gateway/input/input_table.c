/* Buckets of inputs, one for each client. */
#include "input_table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/elicitation.h"

struct bucket {
    struct list inputs; /* oldest first */
    size_t open, count, bytes;
};

struct input_table {
    pthread_mutex_t lock;
    struct map *buckets; /* key -> struct bucket */
    struct map *ids;     /* id -> struct input_request */
    size_t bytes;        /* of all texts */
    atomic_size_t count;
};

struct input_table *input_table_create(void)
{
    struct input_table *table = memory_alloc(sizeof *table);
    pthread_mutex_init(&table->lock, NULL);
    table->buckets = map_create();
    table->ids = map_create();
    return table;
}

void input_table_destroy(struct input_table *table)
{
    if (!table)
        return;
    map_destroy(table->buckets, NULL);
    map_destroy(table->ids, NULL);
    pthread_mutex_destroy(&table->lock);
    free(table);
}

size_t input_table_count(const struct input_table *table)
{
    return atomic_load_explicit(&table->count, memory_order_relaxed);
}

/* ---- what is meant ---- */

/* The server gives an id to a visit of a URL, and announces its end by that id. */
static bool has_elicitation_id(const struct input_request *input, struct str id)
{
    struct str params = json_member(str_from(input->message), "params");
    return input->kind == INPUT_ELICITATION && elicitation_is_url(params) &&
           json_string_equals(json_member(params, "elicitationId"), id);
}

static bool is_meant(const struct input_request *input, const struct input_match *match)
{
    if (!match)
        return true;
    if (match->has_kind && input->kind != match->kind)
        return false;
    if (match->id.length > 0 && !str_equal(match->id, str_from(input->id)) &&
        !has_elicitation_id(input, match->id))
        return false;
    if (match->upstream_id.length > 0 &&
        (!str_equal(match->upstream_id, str_from(input->upstream_id)) ||
         !str_equal(match->session, str_from(input->session))))
        return false;
    if (match->task.length > 0 && !str_equal(match->task, str_from(input->task)))
        return false;
    if (match->is_on_stream && !input->is_on_stream)
        return false;
    if (match->ends_with_session && !input->ends_with_session)
        return false;
    return match->call == 0 || match->call == input->call;
}

static struct input_request *find(struct bucket *bucket, const struct input_match *match,
                                  bool is_open)
{
    if (!bucket)
        return NULL;
    LIST_FOR_EACH_SAFE (node, next, &bucket->inputs) {
        struct input_request *input = LIST_ENTRY(node, struct input_request, node);
        if ((input->state == INPUT_OPEN) == is_open && is_meant(input, match))
            return input;
    }
    return NULL;
}

/* ---- coming and going ---- */

static bool has_room(const struct input_table *table, const struct bucket *bucket, size_t bytes)
{
    if (map_count(table->ids) >= INPUTS_MOST || table->bytes + bytes > INPUT_BYTES_MOST)
        return false;
    return !bucket ||
           (bucket->open < INPUTS_PER_KEY && bucket->count < (size_t)4 * INPUTS_PER_KEY &&
            bucket->bytes + bytes <= INPUT_BYTES_PER_KEY);
}

static enum input_added add(struct input_table *table, struct input_request *input)
{
    struct str key = str_from(input->key);
    struct bucket *bucket = map_get(table->buckets, key);
    const struct input_match same = {.upstream_id = str_from(input->upstream_id),
                                     .session = str_from(input->session)};
    if (find(bucket, &same, true))
        return INPUT_REPEATED;
    size_t bytes = strlen(input->message);
    if (!has_room(table, bucket, bytes))
        return INPUT_TOO_MANY;
    if (!bucket) {
        bucket = memory_alloc(sizeof *bucket);
        list_init(&bucket->inputs);
        map_put(table->buckets, key, bucket);
    }
    list_append(&bucket->inputs, &input->node);
    bucket->open++;
    bucket->count++;
    bucket->bytes += bytes;
    table->bytes += bytes;
    map_put(table->ids, str_from(input->id), input);
    atomic_fetch_add(&table->count, 1);
    return INPUT_ADDED;
}

enum input_added input_table_add(struct input_table *table, struct input_request *input)
{
    pthread_mutex_lock(&table->lock);
    enum input_added added = add(table, input);
    pthread_mutex_unlock(&table->lock);
    return added;
}

static void remove_locked(struct input_table *table, struct input_request *input)
{
    struct str key = str_from(input->key);
    struct bucket *bucket = map_get(table->buckets, key);
    size_t bytes = strlen(input->message);
    list_remove(&input->node);
    bucket->bytes -= bytes;
    table->bytes -= bytes;
    map_remove(table->ids, str_from(input->id));
    atomic_fetch_sub(&table->count, 1);
    if (input->state == INPUT_OPEN)
        bucket->open--;
    if (--bucket->count == 0) {
        map_remove(table->buckets, key);
        free(bucket);
    }
}

void input_table_remove(struct input_table *table, struct input_request *input)
{
    pthread_mutex_lock(&table->lock);
    remove_locked(table, input);
    pthread_mutex_unlock(&table->lock);
}

struct input_request *input_table_take(struct input_table *table,
                                       bool (*is_own)(const void *context,
                                                      const struct input_request *),
                                       const void *context)
{
    size_t position = 0;
    void *value;
    struct input_request *own = NULL;
    pthread_mutex_lock(&table->lock);
    while (!own && map_next(table->ids, &position, NULL, &value)) {
        if (is_own(context, value))
            own = value;
    }
    if (own)
        remove_locked(table, own);
    pthread_mutex_unlock(&table->lock);
    return own;
}

/* ---- closing ---- */

struct input_request *input_table_close(struct input_table *table, struct str key,
                                        const struct input_match *match,
                                        struct input_closing *closing)
{
    closing->was = INPUT_OPEN;
    closing->was_answer[0] = '\0';
    pthread_mutex_lock(&table->lock);
    struct bucket *bucket = map_get(table->buckets, key);
    struct input_request *input = find(bucket, match, true);
    struct input_request *closed = input ? NULL : find(bucket, match, false);
    if (input) {
        input->state = closing->state;
        input->closed_ms = closing->now_ms;
        if (closing->answer)
            memcpy(input->answer, closing->answer, DIGEST_HEX_BYTES);
        bucket->open--;
    } else if (closed) {
        closing->was = closed->state;
        memcpy(closing->was_answer, closed->answer, DIGEST_HEX_BYTES);
    }
    pthread_mutex_unlock(&table->lock);
    return input;
}

bool input_table_reopen(struct input_table *table, struct input_request *input)
{
    pthread_mutex_lock(&table->lock);
    bool may_open = !input->has_ended;
    if (may_open) {
        struct bucket *bucket = map_get(table->buckets, str_from(input->key));
        input->state = INPUT_OPEN;
        input->answer[0] = '\0';
        bucket->open++;
    } else {
        input->state = INPUT_REJECTED;
    }
    pthread_mutex_unlock(&table->lock);
    return may_open;
}

static void end(void *context, struct input_request *input)
{
    input->has_ended = input->state != INPUT_OPEN;
}

void input_table_end(struct input_table *table, struct str key, const struct input_match *match)
{
    input_table_visit(table, key, match, end, NULL);
}

/* ---- looking ---- */

void input_table_visit(struct input_table *table, struct str key, const struct input_match *match,
                       input_visit visit, void *context)
{
    if (input_table_count(table) == 0)
        return;
    pthread_mutex_lock(&table->lock);
    struct bucket *bucket = map_get(table->buckets, key);
    if (bucket) {
        LIST_FOR_EACH_SAFE (node, next, &bucket->inputs) {
            struct input_request *input = LIST_ENTRY(node, struct input_request, node);
            if (is_meant(input, match))
                visit(context, input);
        }
    }
    pthread_mutex_unlock(&table->lock);
}

void input_table_visit_id(struct input_table *table, struct str id, input_visit visit,
                          void *context)
{
    if (input_table_count(table) == 0)
        return;
    pthread_mutex_lock(&table->lock);
    struct input_request *input = map_get(table->ids, id);
    if (input)
        visit(context, input);
    pthread_mutex_unlock(&table->lock);
}

void input_table_visit_all(struct input_table *table, input_visit visit, void *context)
{
    size_t position = 0;
    void *value;
    if (input_table_count(table) == 0)
        return;
    pthread_mutex_lock(&table->lock);
    while (map_next(table->ids, &position, NULL, &value))
        visit(context, value);
    pthread_mutex_unlock(&table->lock);
}

uint64_t input_next_number(void)
{
    static atomic_uint_fast64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}
