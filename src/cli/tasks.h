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

/* ---- tasks_watch.c ---- */
/* Prints changes as they come, until it is interrupted or refused. Returns an exit code. */
int tasks_watch(struct admin_client *client, bool json);
