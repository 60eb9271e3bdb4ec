/* The query of the inbox: which calls, in what order, and the page. */
#pragma once

#include "taskgate/core/buffer.h"
#include "taskgate/core/error.h"
#include "taskgate/task/task.h"

enum inbox_order { INBOX_BY_EXPIRY, INBOX_BY_AGE, INBOX_BY_RISK, INBOX_ORDER_COUNT };

/* A row in an order: its key there, and the id of its call. */
struct inbox_place {
    enum inbox_order order;
    int64_t key;
    char id[TASK_ID_BYTES]; /* "": in front of all */
};

/* The texts point into `decoded`; an empty one asks for nothing. */
struct inbox_query {
    struct str source, tool, workflow, principal, risk, text, stack;
    bool is_mine;
    enum inbox_order order;
    uint64_t limit;
    struct inbox_place behind;
    struct buffer decoded;
};

/* Reads "tool=delete&sort=age". false with `error` for what is unknown or ill-formed. Always call
 * inbox_query_finish() afterwards. */
bool inbox_query_parse(struct inbox_query *query, struct str text, struct error *error);
void inbox_query_finish(struct inbox_query *query);

/* The cursor of the page behind that row: opaque to clients. */
#define INBOX_CURSOR_BYTES (TASK_ID_BYTES + 20)
void inbox_cursor(const struct inbox_place *place, char cursor[INBOX_CURSOR_BYTES]);
