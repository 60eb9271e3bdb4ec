/* Kinds in a map from what their line says to how often it would have been said. */
#include "log_aggregate.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"

struct kind {
    enum log_level level;
    const char *message;
    struct log_field fields[TALLY_FIELDS_MAX + 1]; /* and the number of calls */
    unsigned count;
    char *texts; /* what the fields point to */
    int64_t calls;
};

struct tally {
    pthread_mutex_t lock;
    struct map *kinds;
    int64_t others; /* beyond the limits */
};

struct tally *tally_create(void)
{
    struct tally *tally = memory_alloc(sizeof *tally);
    pthread_mutex_init(&tally->lock, NULL);
    tally->kinds = map_create();
    return tally;
}

static void destroy_kind(void *value)
{
    struct kind *kind = value;
    free(kind->texts);
    free(kind);
}

void tally_destroy(struct tally *tally)
{
    if (!tally)
        return;
    tally_flush(tally);
    map_destroy(tally->kinds, destroy_kind);
    pthread_mutex_destroy(&tally->lock);
    free(tally);
}

/* The texts with their lengths, so that no two kinds share a key. */
static void write_key(struct buffer *key, const char *message, const struct log_field *fields,
                      unsigned count)
{
    buffer_append(key, str_slice((const char *)&message, sizeof message));
    for (unsigned i = 0; i < count; i++) {
        bool is_number = fields[i].kind == LOG_FIELD_NUMBER || fields[i].kind == LOG_FIELD_BOOL;
        int64_t number = is_number ? fields[i].number : (int64_t)fields[i].text.length;
        buffer_append(key, str_slice((const char *)&number, sizeof number));
        if (!is_number)
            buffer_append(key, fields[i].text);
    }
}

static size_t text_length(const struct log_field *fields, unsigned count)
{
    size_t length = 0;
    for (unsigned i = 0; i < count; i++)
        length += fields[i].text.length;
    return length;
}

static struct kind *create_kind(enum log_level level, const char *message,
                                const struct log_field *fields, unsigned count)
{
    struct kind *kind = memory_alloc(sizeof *kind);
    *kind = (struct kind){.level = level, .message = message, .count = count};
    kind->texts = memory_alloc(text_length(fields, count) + 1);
    char *end = kind->texts;
    for (unsigned i = 0; i < count; i++) {
        kind->fields[i] = fields[i];
        if (fields[i].text.length)
            memcpy(end, fields[i].text.bytes, fields[i].text.length);
        kind->fields[i].text = str_slice(end, fields[i].text.length);
        end += fields[i].text.length;
    }
    return kind;
}

static void tell(struct kind *kind, int64_t calls)
{
    kind->fields[kind->count] = LOG_NUMBER("calls", calls);
    log_write(kind->level, kind->message, kind->fields, kind->count + 1);
}

/* Under the lock. */
static bool repeat(struct tally *tally, struct str key)
{
    struct kind *kind = map_get(tally->kinds, key);
    if (kind)
        kind->calls++;
    return kind != NULL;
}

bool tally_repeat(struct tally *tally, struct str key)
{
    pthread_mutex_lock(&tally->lock);
    bool is_known = repeat(tally, key);
    pthread_mutex_unlock(&tally->lock);
    return is_known;
}

/* Under the lock. False when the kind is beyond the limits, or another thread was faster. */
static bool begin(struct tally *tally, struct str key, enum log_level level, const char *message,
                  const struct log_field *fields, unsigned count)
{
    if (repeat(tally, key))
        return false;
    if (map_count(tally->kinds) >= TALLY_KINDS_MAX || text_length(fields, count) > TALLY_TEXT_MAX) {
        tally->others++;
        return false;
    }
    map_put(tally->kinds, key, create_kind(level, message, fields, count));
    return true;
}

void tally_begin(struct tally *tally, struct str key, enum log_level level, const char *message,
                 const struct log_field *fields, unsigned count)
{
    pthread_mutex_lock(&tally->lock);
    bool is_first = begin(tally, key, level, message, fields, count);
    pthread_mutex_unlock(&tally->lock);
    if (!is_first)
        return;
    struct kind *kind = create_kind(level, message, fields, count);
    tell(kind, 1);
    destroy_kind(kind);
}

void tally_count(struct tally *tally, enum log_level level, const char *message,
                 const struct log_field *fields, unsigned count)
{
    struct buffer key;
    buffer_init(&key);
    write_key(&key, message, fields, count);
    if (!tally_repeat(tally, buffer_str(&key)))
        tally_begin(tally, buffer_str(&key), level, message, fields, count);
    buffer_finish(&key);
}

bool tally_flush(struct tally *tally)
{
    struct map *fresh = map_create();
    pthread_mutex_lock(&tally->lock);
    struct map *kinds = tally->kinds;
    int64_t others = tally->others;
    tally->kinds = fresh;
    tally->others = 0;
    pthread_mutex_unlock(&tally->lock);
    size_t position = 0;
    struct str key;
    void *value;
    bool had_any = map_count(kinds) > 0 || others > 0;
    while (map_next(kinds, &position, &key, &value)) {
        struct kind *kind = value;
        if (kind->calls > 0)
            tell(kind, kind->calls);
    }
    if (others > 0)
        log_warn("Calls of too many kinds to be told one by one", LOG_NUMBER("calls", others));
    map_destroy(kinds, destroy_kind);
    return had_any;
}
