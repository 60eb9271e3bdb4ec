/*
 * The lists that owners have fetched, for when upstream fails: then each is given its own again
 * (behaviour 5.7). Shared by all workers behind one short lock. Any thread.
 */
#pragma once

#include <stdbool.h>

#include "conversation/relay.h"
#include "state/seen_table.h"
#include "taskgate/config/definitions.h"
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

struct seen_table *list_cache_create(void);

/* `key` tells method, owner and cursor apart, and may be of any length. Copies both. Bounded:
 * the oldest go, and a very long list is not kept at all. */
void list_cache_put(struct seen_table *lists, struct str key, struct str result);
/* The same of a `result` inside a text, which is held and not copied. */
void list_cache_put_shared(struct seen_table *lists, struct str key, struct list_text *text,
                           struct str result);
/* Appends what is kept under `key` to `result`; false when nothing is. */
bool list_cache_get(struct seen_table *lists, struct str key, struct buffer *result);

/* ---- shared by the lists of tools, resources and prompts, and by `server/discover` ---- */
/* The key of the list in the cache: who may be answered from what was fetched before is the one who
 * fetched it. */
void lists_write_key(const struct call *call, struct buffer *key);
/* Sends for a list. */
void lists_fetch(struct call *call, const struct looks *looks);
/* Writes a result of the server's for the client, who may keep it for `most_ms`. */
typedef void (*list_writer)(struct call *call, struct str result, int64_t most_ms,
                            struct buffer *out);
/* Answers with what the owner fetched before, as `write` writes it for the client. false: nothing
 * is kept, or the failure is no reason. */
bool lists_answer_kept(struct call *call, enum lost_reason reason, list_writer write);

/* Keeps a list's result, or that of `server/discover`, for its owner. `text`, which holds it, may
 * be NULL. */
void lists_keep(const struct call *call, struct list_text *text, struct str result);
/* How long a client may keep a list that is made now: not at all for a minute after a reload. */
int64_t lists_most_ttl_ms(const struct call *call);

/* Whether a client may see the prompt or skill, by its last definition and by that of `entry`,
 * which may be empty: two answers at once may define it differently. */
bool lists_may_show(const struct call *call, enum definition_kind kind, struct str name,
                    struct str entry);
