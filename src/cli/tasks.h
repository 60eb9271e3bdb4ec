/* The subcommands of `taskgate tasks`, and how they show a task. */
#pragma once

#include "taskgate/core/buffer.h"

#include "admin_client.h"

/* ---- tasks_show.c: from the API's JSON to text for people ---- */
/* A page of tasks as a table. */
void tasks_append_table(struct buffer *out, struct str list);
/* One task, every member, with its arguments whole. */
void tasks_append_details(struct buffer *out, struct str task);
/* One change in one line. */
void tasks_append_change(struct buffer *out, struct str task);
/* A member that is a string, decoded and made safe; "" for null. */
void tasks_append_member(struct buffer *out, struct str task, const char *name);

/* ---- tasks_result.c ---- */
/* The endpoint holds an answer back for no longer than this. */
#define TASKS_WAIT_MAX_MS 300000
/* Reads a duration of an option; false after a word on stderr. NULL is 0. */
bool tasks_read_duration(const char *option, const char *text, int64_t *ms);
/* Prints the result of a task, and waits for it for so long. Returns an exit code: CLI_FAILURE for
 * a call that did not succeed, CLI_CONFLICT while it has no result. */
int tasks_result(struct admin_client *client, const char *id, int64_t wait_ms, bool json);

/* ---- tasks_watch.c ---- */
/* Prints changes as they come, until it is interrupted or refused. Returns an exit code. */
int tasks_watch(struct admin_client *client, bool json);
