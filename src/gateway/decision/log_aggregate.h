/*
 * The tally: log lines that would come with every call, kept few. The first of a kind is written
 * at once, what follows is summed up: an agent that repeats itself, or makes up names, cannot
 * flood the log. Any thread.
 *
 *     tally_count(tally, LOG_LEVEL_INFO, "Calls decided", fields, count);
 *     {…,"msg":"Calls decided","tool":"get_time",…,"calls":1}        at once
 *     {…,"msg":"Calls decided","tool":"get_time",…,"calls":1733}     at the next flush
 */
#pragma once

#include "taskgate/core/log.h"

#define TALLY_FIELDS_MAX 12
/* Kinds between two flushes; what is beyond is only counted. */
#define TALLY_KINDS_MAX 500
/* Of all texts of one kind together; longer ones are only counted, too. */
#define TALLY_TEXT_MAX 4096
/* How often its owner should flush it. */
#define TALLY_FLUSH_MS 60000

struct tally;

struct tally *tally_create(void);
/* Flushes it. NULL is allowed. */
void tally_destroy(struct tally *tally);
/* One more of the kind that message and fields make; `message` is a literal. */
void tally_count(struct tally *tally, enum log_level level, const char *message,
                 const struct log_field *fields, unsigned count);
/* The same for whoever knows a shorter key of a kind than its whole line, on a hot path: counts one
 * more of a known kind, else false, and tally_begin() is told what the line says. Keys of one
 * tally are all of one making. */
bool tally_repeat(struct tally *tally, struct str key);
void tally_begin(struct tally *tally, struct str key, enum log_level level, const char *message,
                 const struct log_field *fields, unsigned count);
/* Writes what was summed up and forgets all kinds; false when there was nothing. */
bool tally_flush(struct tally *tally);
