/*
 * Lists that are kept: those that owners have fetched, for when upstream fails, and replies of
 * tools/list that were rewritten. Each table is shared by all workers behind one short lock. Any
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "state/seen_table.h"
#include "state/tool_catalog.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

/* A text that several hold: immutable and counted. */
struct list_text {
    size_t references; /* atomic */
    size_t length;
    char bytes[];
};
/* The two parts one behind the other; gets one reference. */
struct list_text *list_text_create(struct str first, struct str second);
void list_text_unref(struct list_text *text); /* NULL is allowed */

/* ---- the last lists of each owner, who is given its own again (behaviour 5.7) ---- */

struct seen_table *list_cache_create(void);
/* `key` tells method, owner and cursor apart, and may be of any length. `text`, which has the
 * result, is held; NULL: the result is copied. Bounded: the oldest go, and a very long list is not
 * kept at all. */
void list_cache_put(struct seen_table *lists, struct str key, struct list_text *text,
                    struct str result);
/* Appends what is kept under `key` to `result`; false when nothing is. */
bool list_cache_get(struct seen_table *lists, struct str key, struct buffer *result);

/*
 * Replies of tools/list that were read and rewritten before: the same bytes for the same kind of
 * client under the same configuration are not parsed again. The catalogue still learns with each
 * reply, from the page beside the text, which tools owners were told. Nothing in an entry is of one
 * owner: it is made of the server's bytes alone, and found by these bytes alone, all of which are
 * compared.
 */

/* A reply without the value of its `id`, which changes with each request. */
struct reply_parts {
    struct str before, behind;
};
/* Finds `id`, as the request spelled it, near one end of the message, without reading it. False
 * when it is not there. If the value of the message's own `id` was that once, it is so again in
 * each message of the same parts. */
bool reply_parts_find(struct reply_parts *parts, struct str message, struct str id);

/* All that the rewritten text depends on, but for the names of our tools. */
struct rewritten_key {
    struct reply_parts reply;
    struct str source;
    uint64_t snapshot;   /* its number */
    unsigned client;     /* bits: the kind of client */
    uint64_t principals; /* policy_principal_bits() of the caller */
    uint64_t pins;       /* pins_version(), where it matters; else 0 */
};

#define REWRITTEN_HASHES 6
/* One of them, immutable. Spans point into `reply`. */
struct rewritten_list {
    size_t references; /* atomic */
    uint64_t hashes[REWRITTEN_HASHES];
    char *source;
    size_t id_at;            /* in `reply` */
    struct list_text *reply; /* its parts, one behind the other */
    struct str result, next_cursor;
    struct catalog_page *page;  /* the page for the catalogue */
    unsigned offered, prefixed; /* of our tools: pseudo_tools_names() when it was written */
    struct buffer written;      /* the rewritten reply, without its id, too */
    size_t written_id_at;
};

/* It ends before the catalogue, whose pages it holds. */
struct seen_table *rewritten_lists_create(void);

/* With a reference for the caller; NULL when there is none. */
struct rewritten_list *rewritten_lists_find(struct seen_table *lists,
                                            const struct rewritten_key *key);
void rewritten_list_unref(struct rewritten_list *list); /* NULL is allowed */

/* A new one, for its maker to fill in; not yet among the others. Takes `page` over. */
struct rewritten_list *rewritten_list_create(const struct rewritten_key *key,
                                             struct catalog_page *page);
/* `text`, which is taken over, is the rewritten reply without its id, which stood at `id_at`. */
void rewritten_list_set_written(struct rewritten_list *list, struct buffer *text, size_t id_at);
/* Appends the rewritten reply with this id. */
void rewritten_list_write(const struct rewritten_list *list, struct str id, struct buffer *out);
/* Takes the reference over. Bounded in number and bytes: the longest unused go, and a very long one
 * is not kept at all. */
void rewritten_lists_put(struct seen_table *lists, struct rewritten_list *list);
