/* Open questions by the ids of their requests. */
#include "bridge_questions.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/random.h"

#define MOST_QUESTIONS 10000

struct entry {
    struct bridge_question question; /* its texts are in the members below */
    char *source, *session, *key;
};

struct bridge_questions {
    pthread_mutex_t lock;
    struct map *entries; /* id -> struct entry */
};

struct bridge_questions *bridge_questions_create(void)
{
    struct bridge_questions *questions = memory_alloc(sizeof *questions);
    pthread_mutex_init(&questions->lock, NULL);
    questions->entries = map_create();
    return questions;
}

static void entry_destroy(void *value)
{
    struct entry *entry = value;
    free(entry->source);
    free(entry->session);
    free(entry->key);
    free(entry);
}

void bridge_questions_destroy(struct bridge_questions *questions)
{
    if (!questions)
        return;
    map_destroy(questions->entries, entry_destroy);
    pthread_mutex_destroy(&questions->lock);
    free(questions);
}

uint64_t bridge_questions_next_number(void)
{
    static atomic_uint_fast64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}

static struct entry *entry_create(const struct bridge_question *question)
{
    struct entry *entry = memory_alloc(sizeof *entry);
    entry->question = *question;
    entry->source = memory_copy_str(question->source);
    entry->session = memory_copy_str(question->session);
    entry->key = memory_copy_str(question->key);
    return entry;
}

bool bridge_questions_add(struct bridge_questions *questions,
                          const struct bridge_question *question, struct buffer *id)
{
    char uuid[RANDOM_UUID_BYTES];
    size_t before = id->length;
    random_uuid(uuid);
    buffer_append_format(id, "tg:%s", uuid);
    struct str own = str_slice(id->bytes + before, id->length - before);
    pthread_mutex_lock(&questions->lock);
    bool has_room = map_count(questions->entries) < MOST_QUESTIONS;
    if (has_room)
        map_put(questions->entries, own, entry_create(question));
    pthread_mutex_unlock(&questions->lock);
    return has_room;
}

static bool may_answer(const struct entry *entry, const struct bridge_question *by)
{
    return str_equal(str_from(entry->source), by->source) &&
           str_equal(str_from(entry->session), by->session);
}

bool bridge_questions_take(struct bridge_questions *questions, struct str id,
                           const struct bridge_question *by, struct bridge_question *taken,
                           struct buffer *key)
{
    pthread_mutex_lock(&questions->lock);
    struct entry *entry = map_get(questions->entries, id);
    if (entry && !may_answer(entry, by))
        entry = NULL;
    if (entry)
        map_remove(questions->entries, id);
    pthread_mutex_unlock(&questions->lock);
    if (!entry)
        return false;
    buffer_append_text(key, entry->key);
    *taken = (struct bridge_question){.worker = entry->question.worker,
                                      .call = entry->question.call,
                                      .kind = entry->question.kind,
                                      .key = buffer_str(key)};
    entry_destroy(entry);
    return true;
}

void bridge_questions_forget(struct bridge_questions *questions, uint64_t call)
{
    size_t position = 0;
    struct str id;
    void *value;
    pthread_mutex_lock(&questions->lock);
    while (map_next(questions->entries, &position, &id, &value)) {
        struct entry *entry = value;
        if (entry->question.call != call)
            continue;
        map_remove(questions->entries, id);
        entry_destroy(entry);
        position = 0; /* removal moves entries about */
    }
    pthread_mutex_unlock(&questions->lock);
}
