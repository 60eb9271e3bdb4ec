/* Kinds of lines in a map, each with the number of its calls. */
#include "log_aggregate.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/task/recorded_name.h"

struct kind {
    enum log_level level;
    const char *message;
    struct log_field fields[LOG_AGGREGATE_FIELDS_MAX + 1]; /* and the number of calls */
    unsigned count;
    char *texts; /* the memory behind the fields */
    int64_t calls;
};

struct log_aggregate {
    struct map *kinds;
    struct kind *last; /* the last kind that was counted, which is mostly the next one, too; NULL
                          after a flush */
    struct buffer last_key;
    int64_t others; /* beyond the limits */
};

struct log_aggregate *log_aggregate_create(void)
{
    struct log_aggregate *aggregate = memory_alloc(sizeof *aggregate);
    aggregate->kinds = map_create();
    return aggregate;
}

static void destroy_kind(void *value)
{
    struct kind *kind = value;
    free(kind->texts);
    free(kind);
}

void log_aggregate_destroy(struct log_aggregate *aggregate)
{
    if (!aggregate)
        return;
    log_aggregate_flush(aggregate);
    map_destroy(aggregate->kinds, destroy_kind);
    buffer_finish(&aggregate->last_key);
    free(aggregate);
}

/* The texts with their lengths, so that no two kinds share a key. */
static void log_aggregate_write_key(struct buffer *key, const char *message,
                                    const struct log_field *fields, unsigned count)
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

static void log_aggregate_write_line(struct kind *kind, int64_t calls)
{
    ASSERT_NUMBERS(kind->count, <=, LOG_AGGREGATE_FIELDS_MAX);
    kind->fields[kind->count] = LOG_NUMBER("calls", calls);
    log_write(kind->level, kind->message, kind->fields, kind->count + 1);
}

bool log_aggregate_repeat(struct log_aggregate *aggregate, struct str key)
{
    bool is_last = aggregate->last && str_equal(buffer_str(&aggregate->last_key), key);
    struct kind *kind = is_last ? aggregate->last : map_get(aggregate->kinds, key);
    if (!kind)
        return false;
    kind->calls++;
    if (!is_last) {
        aggregate->last = kind;
        buffer_clear(&aggregate->last_key);
        buffer_append(&aggregate->last_key, key);
    }
    return true;
}

void log_aggregate_begin(struct log_aggregate *aggregate, struct str key, enum log_level level,
                         const char *message, const struct log_field *fields, unsigned count)
{
    if (map_count(aggregate->kinds) >= LOG_AGGREGATE_KINDS_MAX ||
        text_length(fields, count) > LOG_AGGREGATE_TEXT_MAX) {
        aggregate->others++;
        return;
    }
    struct kind *kind = create_kind(level, message, fields, count);
    map_put(aggregate->kinds, key, kind);
    log_aggregate_write_line(kind, 1);
}

void log_aggregate_count(struct log_aggregate *aggregate, enum log_level level, const char *message,
                         const struct log_field *fields, unsigned count)
{
    OWNED_BUFFER(key);
    log_aggregate_write_key(&key, message, fields, count);
    if (!log_aggregate_repeat(aggregate, buffer_str(&key)))
        log_aggregate_begin(aggregate, buffer_str(&key), level, message, fields, count);
}

bool log_aggregate_flush(struct log_aggregate *aggregate)
{
    struct map *kinds = aggregate->kinds;
    int64_t others = aggregate->others;
    aggregate->kinds = map_create();
    aggregate->last = NULL;
    aggregate->others = 0;
    size_t position = 0;
    struct str key;
    void *value;
    bool had_any = map_count(kinds) > 0 || others > 0;
    while (map_next(kinds, &position, &key, &value)) {
        struct kind *kind = value;
        if (kind->calls > 0)
            log_aggregate_write_line(kind, kind->calls);
    }
    if (others > 0)
        log_warn(RECORDED_OTHERS, LOG_NUMBER("calls", others));
    map_destroy(kinds, destroy_kind);
    return had_any;
}
