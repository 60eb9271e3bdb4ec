/* One task of the API as text for people. */
#pragma once

#include "taskgate/core/buffer.h"

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
/* A member that is a string, decoded and made safe; "" for null. */
/* `unverified "NAME"`, of a task or grant (notify/shown.h). */
void tasks_append_asker(struct buffer *out, struct str task);
void tasks_append_member(struct buffer *out, struct str task, const char *name);

/* Tasks as a table. On a terminal the ids are cut to what distinguishes them. */
struct tasks_table {
    const struct str *tasks; /* JSON objects */
    size_t count;
    int64_t now_ms;
    bool for_terminal;
};
void tasks_append_table(struct buffer *out, const struct tasks_table *tasks);
