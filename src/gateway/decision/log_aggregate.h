/*
 * The tally: log lines that would come with every call, kept few. The first of a kind is written
 * at once, what follows is summed up: an agent that repeats itself, or makes up names, cannot
 * flood the log. One thread at a time.
 *
 *     log_aggregate_count(tally, LOG_LEVEL_INFO, "Calls decided", fields, count);
 *     {…,"msg":"Calls decided","tool":"get_time",…,"calls":1}        at once
 *     {…,"msg":"Calls decided","tool":"get_time",…,"calls":1733}     at the next flush
 */
#pragma once

#include "taskgate/core/log.h"

#define LOG_AGGREGATE_FIELDS_MAX 12
/* Kinds between two flushes; further kinds are only counted. */
#define LOG_AGGREGATE_KINDS_MAX 500
/* Of all texts of one kind together; longer ones are only counted, too. */
#define LOG_AGGREGATE_TEXT_MAX 4096
/* How often its owner should flush it. */
#define LOG_AGGREGATE_FLUSH_MS 60000

struct log_aggregate;

struct log_aggregate *log_aggregate_create(void);
/* Flushes it. NULL is allowed. */
void log_aggregate_destroy(struct log_aggregate *aggregate);
/* Counts one call of the kind that message and fields make; `message` is a literal. */
void log_aggregate_count(struct log_aggregate *aggregate, enum log_level level, const char *message,
                         const struct log_field *fields, unsigned count);
/* The same for a caller that knows a shorter key than the whole line of a kind, on a hot path.
 * Counts one more of a known kind. If the kind is unknown it returns false, and
 * log_aggregate_begin() is told the line. All keys of one tally are made in the same way. */
bool log_aggregate_repeat(struct log_aggregate *aggregate, struct str key);
void log_aggregate_begin(struct log_aggregate *aggregate, struct str key, enum log_level level,
                         const char *message, const struct log_field *fields, unsigned count);
/* Writes the sums and forgets all kinds; false when there was nothing. */
bool log_aggregate_flush(struct log_aggregate *aggregate);
