/* Shared by the lists of tools, resources and prompts, and by `server/discover`. */
#pragma once

#include "relay/relay.h"
#include "taskgate/config/definitions.h"

/* ---- list_cache.c ---- */
/* The key of the list in the cache: who may be answered from what was fetched before is the one who
 * fetched it. */
void lists_write_key(const struct call *call, struct buffer *key);
/* Those of a list, which is answered by `failed` when the server fails. */
struct relay_options lists_relay_options(const struct call *call,
                                         bool (*failed)(struct call *, enum relay_failure));
/* Answers with what the owner fetched before, as `write` writes it for the client. false: nothing
 * is kept, or the failure is no reason. */
bool lists_answer_kept(struct call *call, enum relay_failure failure,
                       void (*write)(struct call *call, struct str result, struct buffer *out));

/* Keeps a list's result, or that of `server/discover`, for its owner. */
void lists_keep(const struct call *call, struct str result);
/* How long a client may keep a list that is made now: not at all for a minute after a reload. */
int64_t lists_most_ttl_ms(const struct call *call);

/* Whether a client may see the prompt or skill, by its last definition and by that of `entry`,
 * which may be empty: two answers at once may define it differently. */
bool lists_may_show(const struct call *call, enum definition_kind kind, struct str name,
                    struct str entry);

/* ---- tools_list.c ---- */
/* Writes a reply's result for the client. It comes late, and its owner's catalogue learns from it.
 */
void tools_list_write_late(struct call *call, struct str result, struct buffer *out);

/* ---- extension.c ---- */
/* Writes a result with skills, or with one, for a client that gets it late. */
void extension_write_late(struct call *call, struct str result, struct buffer *out);
