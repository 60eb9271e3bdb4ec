/* The query of a task list: filters, page size, cursor. */
#pragma once

#include "taskgate/core/buffer.h"
#include "taskgate/core/error.h"
#include "taskgate/store/store.h"

/* Of a page of tasks; a longer task is alone on its page. */
#define QUERY_PAGE_BYTES_MAX ((size_t)4 * 1024 * 1024)

struct task_list_query {
    uint32_t magic;                 /* TASK_LIST_QUERY_MAGIC, once it is being read */
    struct store_task_query filter; /* its texts point into `decoded`, as those below */
    struct str text;                /* q: part of what operators see of the task; empty: any */
    struct str digest;              /* of the group of equal calls; empty: any */
    enum store_task_order cursor_order;
    bool is_mine; /* those alone that wait for a vote of the asker */
    struct buffer decoded;
};
#define TASK_LIST_QUERY_MAGIC 0x7a5c11e0

/* Takes the next parameter of a query off `text`, its value as it is written; false: none. */
bool query_next(struct str *text, struct str *key, struct str *raw);
/* Hands each parameter of a query to `read`, its value as it stands there, until that returns
 * false. */
bool query_each(struct str text,
                bool (*read)(void *context, struct str key, struct str raw, struct error *error),
                void *context, struct error *error);

/* Reads a query that may have one parameter: its decoded value goes to `value`, nothing when it
 * is not there. false with `error` for any other parameter. */
bool query_parse_single(struct buffer *value, struct str text, const char *name,
                        struct error *error);

/* A parameter of a query whose values are kept decoded. */
struct query_parameter {
    const char *name;
    size_t text; /* the place of a value that is taken as it is, without `parse` */
    bool (*parse)(void *query, struct str value, struct error *error);
};
struct query_parameters {
    const char *what, *known; /* "this list", "state, source and tool": for an unknown one */
    const struct query_parameter *rows;
    size_t count;
};
/* Reads them into `query`; the values point into `decoded`, which is empty. false with `error` for
 * what is unknown or ill-formed. */
bool query_parse_parameters(const struct query_parameters *parameters, void *query,
                            struct buffer *decoded, struct str text, struct error *error);

/* The decoded value of a parameter among others; nothing when it is not there. False when it is
 * there twice, or not well encoded. */
bool query_read(struct buffer *value, struct str text, const char *name);
/* The number of a cursor, above 0, in hexadecimal digits. */
bool query_read_hex(struct str digits, int64_t *number);
/* Reads "state=pending&limit=20". false with `error` for what is unknown or ill-formed. Always
 * call query_finish() afterwards. */
bool query_parse(struct task_list_query *query, struct str text, struct error *error);
void query_finish(struct task_list_query *query);

/* A row of a list, and the list's order. `decide_by_ms` is the row's key in a list by deadline. */
struct query_place {
    enum store_task_order order;
    int64_t sequence, decide_by_ms;
};
/* The cursor of the page behind that row: opaque to clients. */
#define QUERY_CURSOR_BYTES 40
void query_cursor(const struct query_place *place, char cursor[QUERY_CURSOR_BYTES]);

/* "limit=20", at most `most`. */
bool query_read_limit(struct str value, uint64_t most, uint64_t *limit, struct error *error);
/* The sequence of a cursor of a list in the order of creation; `what` are its rows. */
bool query_read_creation_cursor(struct str value, const char *what, int64_t *sequence,
                                struct error *error);

/* The query of a list of what lasts for a while: grants, blocks. */
struct query_lasting {
    const char *what; /* "grants" */
    bool in_force_only;
    int64_t before_sequence; /* 0: from the newest on */
    uint64_t limit;
};
/* Reads "state=active&limit=20&cursor=…" over the defaults. false with `error` for anything else.
 */
bool query_parse_lasting(struct query_lasting *query, struct str text, struct error *error);
