/* The subcommands of `taskgate tasks`, and how they show a task. */
#pragma once

#include "taskgate/core/buffer.h"

#include "admin_client.h"

/* ---- tasks_table.c: from the API's JSON to text for people ---- */
/* Tasks as a table. On a terminal the ids are cut to what tells them apart. */
struct tasks_table {
    const struct str *tasks; /* JSON objects */
    size_t count;
    int64_t now_ms;
    bool for_terminal;
};
void tasks_append_table(struct buffer *out, const struct tasks_table *tasks);

/* ---- tasks_show.c ---- */
/* A name may be as long as a body: a member that is a string, decoded and cut where others stand
 * beside it. `show` has it whole. */
void tasks_read_short(struct buffer *text, struct str task, const char *name);
/* "4m 10s": the two largest units; "0s" from there on down. */
void tasks_append_span(struct buffer *out, int64_t ms);
/* One change as it is watched: time, task, state, tool, caller, and what the state comes of. */
void tasks_append_event(struct buffer *out, struct str task, int64_t now_ms);
/* One task, every member, with its arguments whole. */
void tasks_append_details(struct buffer *out, struct str task);
/* One change in one line. */
void tasks_append_change(struct buffer *out, struct str task);
/* The votes that are missing for an approval: "1", or "1 of dba, 2 of security". */
void tasks_append_missing(struct buffer *out, struct str task);
/* A member that is a string, decoded and made safe; "" for null. */
/* `unverified "NAME"`, of a task or grant (notify/shown.h). */
void tasks_append_asker(struct buffer *out, struct str task);
void tasks_append_member(struct buffer *out, struct str task, const char *name);

/* ---- tasks_result.c ---- */
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
