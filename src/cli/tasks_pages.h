/* Tasks from the admin endpoint, page after page; and one by the beginning of its id. */
#pragma once

#include "taskgate/core/buffer.h"

#include "admin_client.h"

struct tasks_pages {
    struct buffer *bodies; /* that the tasks lie in */
    size_t body_count;
    struct str *tasks; /* JSON objects */
    size_t count;
    char *cursor; /* the beginning of the next page; NULL: there is none */
};

/* `query` filters, as "state=pending&tool=pay"; may be "". Reads at most `limit` tasks, newest
 * first, behind those that are there already. Returns an exit code. `pages` begins as {0}. */
int tasks_pages_read(struct tasks_pages *pages, struct admin_client *client, const char *query,
                     size_t limit);
/* Those that wait stand first, the most urgent one before the others; the rest keeps its order. */
void tasks_pages_sort(struct tasks_pages *pages);
void tasks_pages_finish(struct tasks_pages *pages);

/* Milliseconds since 1970 of a member that holds a time; 0 without one. */
int64_t tasks_time(struct str task, const char *member);

/* The whole id of the task whose id begins with `text`, which the caller frees; `text` itself where
 * it is whole, or no task has it. Returns an exit code: CLI_USAGE when several tasks fit. */
int tasks_find(struct admin_client *client, const char *text, char **id);
