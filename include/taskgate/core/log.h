/*
 * The log: one JSON object a line on stderr, with `time`, `level`, `msg`, then the fields
 * (behaviour 2.11). Lines of one process never mix. Values are escaped, and texts cut at 16 KiB;
 * secrets are the caller's duty to leave out. Any thread.
 *
 *     log_info("Task created", LOG_TEXT("task", id), LOG_NUMBER("ttl_ms", ttl_ms));
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/str.h"

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR };

struct log_field {
    const char *name;
    enum { LOG_FIELD_STR, LOG_FIELD_NUMBER, LOG_FIELD_BOOL, LOG_FIELD_JSON } kind;
    struct str text;
    int64_t number;
};

#define LOG_STR(field_name, value)                                                                 \
    ((struct log_field){.name = (field_name), .kind = LOG_FIELD_STR, .text = (value)})
#define LOG_TEXT(field_name, value) LOG_STR(field_name, str_from(value))
#define LOG_NUMBER(field_name, value)                                                              \
    ((struct log_field){.name = (field_name), .kind = LOG_FIELD_NUMBER, .number = (value)})
#define LOG_BOOL(field_name, value)                                                                \
    ((struct log_field){.name = (field_name), .kind = LOG_FIELD_BOOL, .number = (value)})

/* JSON text of our own making, on one line, written as it is. */
#define LOG_JSON(field_name, value)                                                                \
    ((struct log_field){.name = (field_name), .kind = LOG_FIELD_JSON, .text = (value)})

/* The level below which lines are dropped; LOG_LEVEL_INFO at first. Set before threads. */
void log_set_level(enum log_level level);
/* "debug", "info", "warn", "error"; false for anything else. */
bool log_level_parse(struct str name, enum log_level *level);
void log_write(enum log_level level, const char *message, const struct log_field *fields,
               unsigned count);

/* The same with the time that the line is about. */
void log_write_at(int64_t wall_ms, enum log_level level, const char *message,
                  const struct log_field *fields, unsigned count);

/* The array starts with an unused entry so that a line without fields is legal C11. */
#define LOG_FIELDS(...)                                                                            \
    (const struct log_field[]){{.name = NULL}, ##__VA_ARGS__} + 1,                                 \
        (unsigned)(sizeof((const struct log_field[]){{.name = NULL}, ##__VA_ARGS__}) /             \
                   sizeof(struct log_field)) -                                                     \
            1
#define LOG_AT(level, message, ...) log_write(level, message, LOG_FIELDS(__VA_ARGS__))
#define log_info_at(wall_ms, message, ...)                                                         \
    log_write_at(wall_ms, LOG_LEVEL_INFO, message, LOG_FIELDS(__VA_ARGS__))
#define log_debug(message, ...) LOG_AT(LOG_LEVEL_DEBUG, message, ##__VA_ARGS__)
#define log_info(message, ...) LOG_AT(LOG_LEVEL_INFO, message, ##__VA_ARGS__)
#define log_warn(message, ...) LOG_AT(LOG_LEVEL_WARN, message, ##__VA_ARGS__)
#define log_error(message, ...) LOG_AT(LOG_LEVEL_ERROR, message, ##__VA_ARGS__)
