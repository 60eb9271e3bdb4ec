/* The result of a task. */
#pragma once

#include "admin_client.h"

/* The endpoint holds an answer back for no longer than this. */
#define TASKS_WAIT_MAX_MS 300000
/* Reads a duration of an option; false after a word on stderr. NULL is 0. */
bool tasks_read_duration(const char *option, const char *text, int64_t *ms);
/* Prints the result of a task, and waits for it for so long. Returns an exit code: CLI_FAILURE for
 * a call that did not succeed, CLI_CONFLICT while it has no result. */
int tasks_result(struct admin_client *client, const char *id, int64_t wait_ms, bool json);
/* Adds the first text of a completed task's result, at most 1 KiB of it. Returns an exit code. */
int tasks_append_outcome(struct buffer *out, struct admin_client *client, const char *id,
                         struct str task);
