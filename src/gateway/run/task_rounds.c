/* Open requests by task. */
#include "task_rounds.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

struct request {
    char *key; /* the server's, JSON text with its quotes */
    char *own; /* ours, JSON text with its quotes */
    char *asked, *answer;
    bool is_taken;
};

struct round {
    int64_t number, changed_ms;
    struct request *requests; /* in the server's order */
    size_t count;
    struct map *by_key; /* the server's key, decoded -> its place, from 1 */
};

struct task_rounds {
    pthread_mutex_t lock;
    struct map *by_task; /* task id -> struct round */
};

static void request_finish(struct request *request)
{
    free(request->key);
    free(request->own);
    free(request->asked);
    free(request->answer);
}

static void round_destroy(void *object)
{
    struct round *round = object;
    for (size_t i = 0; i < round->count; i++)
        request_finish(&round->requests[i]);
    free(round->requests);
    map_destroy(round->by_key, NULL);
    free(round);
}

/* The request of a key (JSON text with its quotes), or NULL. */
static struct request *find(const struct round *round, struct str key)
{
    struct buffer decoded;
    buffer_init(&decoded);
    json_decode_string(key, &decoded);
    size_t place = (size_t)(uintptr_t)map_get(round->by_key, buffer_str(&decoded));
    buffer_finish(&decoded);
    return place > 0 ? &round->requests[place - 1] : NULL;
}

struct task_rounds *task_rounds_create(void)
{
    struct task_rounds *rounds = memory_alloc(sizeof *rounds);
    pthread_mutex_init(&rounds->lock, NULL);
    rounds->by_task = map_create();
    return rounds;
}

void task_rounds_destroy(struct task_rounds *rounds)
{
    if (!rounds)
        return;
    map_destroy(rounds->by_task, round_destroy);
    pthread_mutex_destroy(&rounds->lock);
    free(rounds);
}

/* ---- asking ---- */

/* Its answer, if the same was asked in this round before. The server may ask the same again until
 * it has read the answer. */
static void take_over(struct request *request, const struct round *earlier)
{
    struct request *old = earlier ? find(earlier, str_from(request->key)) : NULL;
    if (!old)
        return;
    request->answer = old->answer;
    request->is_taken = old->is_taken;
    old->answer = NULL;
}

static void add(struct round *round, struct str raw_key, struct str asked,
                const struct round *earlier)
{
    struct request *request = &round->requests[round->count++];
    struct buffer decoded;
    *request = (struct request){
        .key = memory_format("\"%.*s\"", STR_ARGS(raw_key)),
        .own = memory_format("\"r%" PRId64 ":%.*s\"", round->number, STR_ARGS(raw_key)),
        .asked = memory_copy_str(asked),
    };
    buffer_init(&decoded);
    json_decode_string(str_from(request->key), &decoded);
    map_put(round->by_key, buffer_str(&decoded), (void *)(uintptr_t)round->count);
    buffer_finish(&decoded);
    take_over(request, earlier);
}

/* In the server's order, which it has no reason to change. */
static bool are_same(const struct round *one, const struct round *other)
{
    bool is_same = one && one->number == other->number && one->count == other->count;
    for (size_t i = 0; is_same && i < other->count; i++)
        is_same = strcmp(one->requests[i].key, other->requests[i].key) == 0 &&
                  strcmp(one->requests[i].asked, other->requests[i].asked) == 0;
    return is_same;
}

bool task_rounds_put(struct task_rounds *rounds, struct str task, int64_t number,
                     struct str requests, int64_t now_ms)
{
    struct round *round = memory_alloc(sizeof *round);
    struct str key, asked;
    size_t position = 0;
    bool is_new;
    round->number = number;
    round->changed_ms = now_ms;
    round->by_key = map_create();
    round->requests = memory_alloc((json_count(requests) + 1) * sizeof *round->requests);
    pthread_mutex_lock(&rounds->lock);
    struct round *earlier = map_get(rounds->by_task, task);
    while (json_next_member(requests, &position, &key, &asked))
        add(round, key, asked, earlier && earlier->number == number ? earlier : NULL);
    is_new = !are_same(earlier, round);
    if (!is_new)
        round->changed_ms = earlier->changed_ms;
    earlier = map_put(rounds->by_task, task, round);
    pthread_mutex_unlock(&rounds->lock);
    if (earlier)
        round_destroy(earlier);
    return is_new;
}

bool task_rounds_show(struct task_rounds *rounds, struct str task, struct buffer *requests,
                      int64_t *changed_ms)
{
    bool is_asking = false;
    pthread_mutex_lock(&rounds->lock);
    const struct round *round = map_get(rounds->by_task, task);
    for (size_t i = 0; round && i < round->count; i++) {
        const struct request *request = &round->requests[i];
        if (request->answer)
            continue;
        buffer_append_text(requests, is_asking ? "," : "{");
        buffer_append_format(requests, "%s:%s", request->own, request->asked);
        is_asking = true;
    }
    if (is_asking)
        buffer_append_char(requests, '}');
    if (round)
        *changed_ms = round->changed_ms;
    pthread_mutex_unlock(&rounds->lock);
    return is_asking;
}

/* ---- answering ---- */

/* "rN:KEY", as the client knows it; `key` has its quotes. */
static bool take_answer(struct round *round, struct str key, struct str answer)
{
    char prefix[32];
    struct buffer named;
    bool taken = false;
    buffer_init(&named);
    snprintf(prefix, sizeof prefix, "r%" PRId64 ":", round->number);
    json_decode_string(key, &named);
    if (str_starts_with(buffer_str(&named), str_from(prefix))) {
        size_t place = (size_t)(uintptr_t)map_get(
            round->by_key, str_slice(named.bytes + strlen(prefix), named.length - strlen(prefix)));
        struct request *request = place > 0 ? &round->requests[place - 1] : NULL;
        taken = request && !request->answer;
        if (taken)
            request->answer = memory_copy_str(answer);
    }
    buffer_finish(&named);
    return taken;
}

bool task_rounds_answer(struct task_rounds *rounds, struct str task, struct str answers,
                        int64_t now_ms)
{
    struct str key, answer;
    size_t position = 0;
    bool taken = false;
    pthread_mutex_lock(&rounds->lock);
    struct round *round = map_get(rounds->by_task, task);
    while (round && json_next_member(answers, &position, &key, &answer))
        taken |= take_answer(round, str_slice(key.bytes - 1, key.length + 2), answer);
    if (taken)
        round->changed_ms = now_ms;
    pthread_mutex_unlock(&rounds->lock);
    return taken;
}

static void append_member(struct buffer *object, const char *key, const char *value)
{
    buffer_append_format(object, "%c%s:", object->length > 0 ? ',' : '{', key);
    buffer_append_text(object, value);
}

/* Those with an answer that nobody has taken. */
static bool write_answers(struct round *round, struct task_rounds_taken *taken)
{
    for (size_t i = 0; i < round->count; i++) {
        struct request *request = &round->requests[i];
        if (!request->answer || request->is_taken)
            continue;
        append_member(&taken->answers, request->key, request->answer);
        append_member(&taken->questions, request->key, request->asked);
        request->is_taken = true;
    }
    if (taken->answers.length == 0)
        return false;
    buffer_append_char(&taken->answers, '}');
    buffer_append_char(&taken->questions, '}');
    return true;
}

bool task_rounds_take_some(struct task_rounds *rounds, struct str task,
                           struct task_rounds_taken *taken)
{
    pthread_mutex_lock(&rounds->lock);
    struct round *round = map_get(rounds->by_task, task);
    bool any = round && write_answers(round, taken);
    pthread_mutex_unlock(&rounds->lock);
    return any;
}

bool task_rounds_take(struct task_rounds *rounds, struct str task, struct task_rounds_taken *taken)
{
    pthread_mutex_lock(&rounds->lock);
    struct round *round = map_get(rounds->by_task, task);
    bool is_whole = round != NULL;
    for (size_t i = 0; round && i < round->count; i++)
        is_whole &= round->requests[i].answer != NULL;
    is_whole = is_whole && write_answers(round, taken);
    pthread_mutex_unlock(&rounds->lock);
    return is_whole;
}

void task_rounds_taken_finish(struct task_rounds_taken *taken)
{
    buffer_finish(&taken->answers);
    buffer_finish(&taken->questions);
}

bool task_rounds_forget(struct task_rounds *rounds, struct str task)
{
    pthread_mutex_lock(&rounds->lock);
    struct round *round = map_remove(rounds->by_task, task);
    pthread_mutex_unlock(&rounds->lock);
    if (round)
        round_destroy(round);
    return round != NULL;
}
