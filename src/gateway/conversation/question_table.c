/* Buckets of questions, one for each client. */
#include "question_table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/elicitation.h"

struct bucket {
    struct list questions; /* oldest first */
    size_t open, count, bytes;
};

struct question_table {
    pthread_mutex_t lock;
    struct map *buckets; /* key -> struct bucket */
    struct map *ids;     /* id -> struct question */
    size_t bytes;        /* of all texts */
    atomic_size_t count;
};

static void free_in_round(void *value);

struct question_table *question_table_create(void)
{
    struct question_table *table = memory_alloc(sizeof *table);
    pthread_mutex_init(&table->lock, NULL);
    table->buckets = map_create();
    table->ids = map_create();
    return table;
}

void question_table_destroy(struct question_table *table)
{
    if (!table)
        return;
    map_destroy(table->buckets, free);
    map_destroy(table->ids, free_in_round);
    pthread_mutex_destroy(&table->lock);
    free(table);
}

size_t question_table_count(const struct question_table *table)
{
    return atomic_load_explicit(&table->count, memory_order_relaxed);
}

/* ---- what is meant ---- */

/* The server gives an id to a visit of a URL, and announces its end by that id. */
static bool has_elicitation_id(const struct question *question, struct str id)
{
    struct str params = json_member(str_from(question->message), "params");
    return question->kind == QUESTION_ELICITATION && elicitation_is_url(params) &&
           json_string_equals(json_member(params, "elicitationId"), id);
}

static bool is_matched(const struct question *question, const struct question_match *match)
{
    if (!match)
        return true;
    if (match->has_kind && question->kind != match->kind)
        return false;
    if (match->id.length > 0 && !str_equal(match->id, str_from(question->id)) &&
        !has_elicitation_id(question, match->id))
        return false;
    if (match->upstream_id.length > 0 &&
        (!str_equal(match->upstream_id, str_from(question->upstream_id)) ||
         !str_equal(match->session, str_from(question->session))))
        return false;
    if (match->task.length > 0 && !str_equal(match->task, str_from(question->task)))
        return false;
    if (match->name.length > 0 &&
        !(question->name && json_string_equals(str_from(question->name), match->name)))
        return false;
    if (match->is_on_stream && !question->is_on_stream)
        return false;
    if (match->ends_with_session && !question->ends_with_session)
        return false;
    return match->call == 0 || match->call == question->call;
}

static struct question *find(struct bucket *bucket, const struct question_match *match,
                             bool is_open)
{
    if (!bucket)
        return NULL;
    LIST_FOR_EACH_SAFE (node, next, &bucket->questions) {
        struct question *question = LIST_ENTRY(node, struct question, node);
        if ((question->state == QUESTION_OPEN) == is_open && is_matched(question, match))
            return question;
    }
    return NULL;
}

/* ---- coming and going ---- */

static bool has_question_room(const struct question_table *table, const struct bucket *bucket,
                              size_t bytes, bool is_in_round)
{
    if (map_count(table->ids) >= QUESTIONS_MOST || table->bytes + bytes > QUESTION_BYTES_MOST)
        return false;
    return !bucket ||
           (bucket->open < QUESTIONS_PER_KEY && bucket->count < (size_t)4 * QUESTIONS_PER_KEY &&
            (is_in_round || bucket->bytes + bytes <= QUESTION_BYTES_PER_KEY));
}

static enum question_added add(struct question_table *table, struct question *question)
{
    struct str key = str_from(question->key);
    struct bucket *bucket = map_get(table->buckets, key);
    /* The ids of what a modern server asks are unique in their task alone. */
    const struct question_match same = {.upstream_id = str_from(question->upstream_id),
                                        .session = str_from(question->session),
                                        .task = str_from(question->task)};
    if (find(bucket, &same, true))
        return QUESTION_REPEATED;
    size_t bytes = strlen(question->message);
    ASSERT(question->id[0] && question->key[0]);
    if (!has_question_room(table, bucket, bytes, question->kind == QUESTION_IN_ROUND))
        return QUESTION_TOO_MANY;
    if (!bucket) {
        bucket = memory_alloc(sizeof *bucket);
        list_init(&bucket->questions);
        map_put(table->buckets, key, bucket);
    }
    list_append(&bucket->questions, &question->node);
    bucket->open += question->state == QUESTION_OPEN;
    bucket->count++;
    bucket->bytes += bytes;
    table->bytes += bytes;
    map_put(table->ids, str_from(question->id), question);
    atomic_fetch_add(&table->count, 1);
    return QUESTION_ADDED;
}

enum question_added question_table_add(struct question_table *table, struct question *question)
{
    pthread_mutex_lock(&table->lock);
    enum question_added added = add(table, question);
    pthread_mutex_unlock(&table->lock);
    return added;
}

static void remove_locked(struct question_table *table, struct question *question)
{
    struct str key = str_from(question->key);
    struct bucket *bucket = map_get(table->buckets, key);
    size_t bytes = strlen(question->message);
    ASSERT(bucket && map_get(table->ids, str_from(question->id)) == question);
    ASSERT_NUMBERS(bytes, <=, bucket->bytes);
    list_remove(&question->node);
    bucket->bytes -= bytes;
    table->bytes -= bytes;
    map_remove(table->ids, str_from(question->id));
    atomic_fetch_sub(&table->count, 1);
    if (question->state == QUESTION_OPEN)
        bucket->open--;
    ASSERT_NUMBERS(bucket->open, <, bucket->count);
    if (--bucket->count == 0) {
        map_remove(table->buckets, key);
        free(bucket);
    }
}

void question_table_remove(struct question_table *table, struct question *question)
{
    pthread_mutex_lock(&table->lock);
    remove_locked(table, question);
    pthread_mutex_unlock(&table->lock);
}

/* ---- rounds ---- */

void question_free_in_round(struct question *question)
{
    ASSERT_NUMBERS(question->kind, ==, QUESTION_IN_ROUND);
    free(question->name);
    free(question->upstream_id);
    free(question->asked_id);
    free(question->message);
    free(question->text);
    free(question);
}

static void free_in_round(void *value)
{
    question_free_in_round(value);
}

/* The server may ask the same again until it has read the answer. */
static void hand_answer_on(struct question *old, struct list *fresh)
{
    OWNED_BUFFER(name);
    ASSERT_NUMBERS(old->kind, ==, QUESTION_IN_ROUND);
    json_decode_string(str_from(old->name), &name);
    LIST_FOR_EACH_SAFE (node, next, fresh) {
        struct question *question = LIST_ENTRY(node, struct question, node);
        if (old->state == QUESTION_OPEN ||
            !json_string_equals(str_from(question->name), buffer_str(&name)))
            continue;
        question->state = old->state;
        question->closed_ms = old->closed_ms;
        question->is_taken = old->is_taken;
        question->text = old->text;
        old->text = NULL;
        return;
    }
}

bool question_table_replace(struct question_table *table, struct str key, struct list *fresh)
{
    struct list over;
    struct bucket *bucket;
    bool has_room = true;
    list_init(&over);
    pthread_mutex_lock(&table->lock);
    while ((bucket = map_get(table->buckets, key))) {
        struct question *old = LIST_ENTRY(bucket->questions.next, struct question, node);
        hand_answer_on(old, fresh);
        remove_locked(table, old);
        list_append(&over, &old->node);
    }
    LIST_FOR_EACH_SAFE (node, next, fresh) {
        struct question *question = LIST_ENTRY(node, struct question, node);
        list_remove(node);
        if (add(table, question) == QUESTION_ADDED)
            continue;
        list_append(&over, node);
        has_room = false;
    }
    pthread_mutex_unlock(&table->lock);
    LIST_FOR_EACH_SAFE (node, next, &over) {
        list_remove(node);
        list_append(fresh, node);
    }
    return has_room;
}

/* ---- closing ---- */

struct question *question_table_close(struct question_table *table, struct str key,
                                      const struct question_match *match,
                                      struct question_closing *closing)
{
    closing->was = QUESTION_OPEN;
    closing->was_answer[0] = '\0';
    pthread_mutex_lock(&table->lock);
    struct bucket *bucket = map_get(table->buckets, key);
    struct question *question = find(bucket, match, true);
    struct question *closed = question ? NULL : find(bucket, match, false);
    ASSERT_NUMBERS(closing->state, !=, QUESTION_OPEN);
    if (question) {
        ASSERT_NUMBERS(bucket->open, >, 0);
        question->state = closing->state;
        question->closed_ms = closing->now_ms;
        if (closing->answer)
            memcpy(question->answer, closing->answer, DIGEST_HEX_BYTES);
        if (closing->text.length > 0)
            question->text = memory_copy_str(closing->text);
        bucket->open--;
    } else if (closed) {
        closing->was = closed->state;
        memcpy(closing->was_answer, closed->answer, DIGEST_HEX_BYTES);
    }
    pthread_mutex_unlock(&table->lock);
    return question;
}

bool question_table_reopen(struct question_table *table, struct question *question)
{
    pthread_mutex_lock(&table->lock);
    ASSERT(question->state != QUESTION_OPEN);
    bool may_open = !question->has_ended;
    if (may_open) {
        struct bucket *bucket = map_get(table->buckets, str_from(question->key));
        ASSERT_NUMBERS(bucket->open, <, bucket->count);
        question->state = QUESTION_OPEN;
        question->answer[0] = '\0';
        question->call += question->kind == QUESTION_ROUND;
        bucket->open++;
    } else {
        question->state = QUESTION_REJECTED;
    }
    pthread_mutex_unlock(&table->lock);
    return may_open;
}

void question_table_end(struct question_table *table, struct str key,
                        const struct question_match *match)
{
    struct question_walk walk = question_walk(table, key, match);
    struct question *question;
    while ((question = question_walk_next(&walk)))
        question->has_ended = question->state != QUESTION_OPEN;
}

/* ---- walking ---- */

/* Takes the lock, unless there is nothing to walk over. */
static struct question_walk begin_walk(struct question_table *table)
{
    if (question_table_count(table) == 0)
        return (struct question_walk){.table = NULL};
    pthread_mutex_lock(&table->lock);
    return (struct question_walk){.table = table};
}

struct question_walk question_walk(struct question_table *table, struct str key,
                                   const struct question_match *match)
{
    struct question_walk walk = begin_walk(table);
    struct bucket *bucket = walk.table ? map_get(table->buckets, key) : NULL;
    walk.match = match;
    if (bucket) {
        walk.next = bucket->questions.next;
        walk.end = &bucket->questions;
    }
    return walk;
}

struct question_walk question_walk_id(struct question_table *table, struct str id)
{
    struct question_walk walk = begin_walk(table);
    struct question *question = walk.table ? map_get(table->ids, id) : NULL;
    if (question) {
        walk.next = &question->node;
        walk.end = question->node.next;
    }
    return walk;
}

struct question_walk question_walk_all(struct question_table *table)
{
    struct question_walk walk = begin_walk(table);
    walk.is_over_all = true;
    return walk;
}

static struct question *walk_step(struct question_walk *walk)
{
    void *value;
    if (walk->is_over_all)
        return map_next(walk->table->ids, &walk->position, NULL, &value) ? value : NULL;
    if (walk->next == walk->end)
        return NULL;
    struct question *question = LIST_ENTRY(walk->next, struct question, node);
    walk->next = walk->next->next;
    return question;
}

struct question *question_walk_next(struct question_walk *walk)
{
    if (!walk->table)
        return NULL;
    do {
        walk->question = walk_step(walk);
    } while (walk->question && !is_matched(walk->question, walk->match));
    if (!walk->question) {
        pthread_mutex_unlock(&walk->table->lock);
        walk->table = NULL;
    }
    return walk->question;
}

void question_walk_remove(struct question_walk *walk)
{
    ASSERT(walk->table && walk->question);
    remove_locked(walk->table, walk->question);
    walk->question = NULL;
    walk->position = 0; /* removal moves the entries of a map about */
}

uint64_t question_next_number(void)
{
    static atomic_uint_fast64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}
