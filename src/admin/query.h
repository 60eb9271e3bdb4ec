/* The query of a task list: filters, page size, cursor. */
#pragma once

#include "taskgate/core/buffer.h"
#include "taskgate/core/error.h"
#include "taskgate/store/store.h"

struct task_list_query {
    struct store_task_query filter; /* its texts point into `decoded`, as those below */
    struct str text;                /* q: part of what operators see of the task; empty: any */
    struct str digest;              /* of the group of equal calls; empty: any */
    bool is_mine;                   /* those alone that wait for a vote of the asker */
    struct buffer decoded;
};

/* Reads a query that may have one parameter: its decoded value goes to `value`, nothing when it
 * is not there. false with `error` for any other parameter. */
bool query_parse_single(struct buffer *value, struct str text, const char *name,
                        struct error *error);

/* The decoded value of a parameter among others; nothing when it is not there. False when it is
 * there twice, or not well encoded. */
bool query_read(struct buffer *value, struct str text, const char *name);
/* Percent-encodes all but unreserved characters. */
void query_encode(struct buffer *out, struct str text);

/* Reads "state=pending&limit=20". false with `error` for what is unknown or ill-formed. Always
 * call query_finish() afterwards. */
bool query_parse(struct task_list_query *query, struct str text, struct error *error);
void query_finish(struct task_list_query *query);

/* The cursor of the page behind the row `sequence`: opaque to clients. */
#define QUERY_CURSOR_BYTES 24
void query_cursor(int64_t sequence, char cursor[QUERY_CURSOR_BYTES]);
/* The row that such a cursor stands for. */
bool query_read_cursor(struct str value, int64_t *sequence, struct error *error);
