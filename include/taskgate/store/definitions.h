/*
 * Definitions of tools, prompts and skills as servers gave them, and which of them were accepted.
 * The first one of a name is accepted; another one is a change until a person accepts it. There is
 * one row for each source, kind and name.
 *
 * The calls here only queue, as those of store.h.
 */
#pragma once

#include "taskgate/config/definitions.h"
#include "taskgate/store/store.h"

/* Accepted digests of one name; the oldest goes. */
#define STORE_DEFINITION_DIGESTS 16
/* A longer text is cut before it is kept. */
#define STORE_DEFINITION_TEXT_BYTES ((size_t)16 * 1024)
#define STORE_DEFINITION_DIFFERENCE_BYTES 1024

void store_definition_id(struct str source, struct str kind, struct str name,
                         char id[STORE_DEFINITION_ID_BYTES]);

/* Takes note of the definitions that a server gives now: all of one source; of each item source,
 * kind, name, digest, text and flags count (taken over, with the array, which malloc() made).
 * Writes what is new, and counts and logs each change and each flag once. The reply has the rows as
 * they are now, without texts; a name beyond DEFINITIONS_MOST is not written, and accepted is
 * nothing of it. */
void store_definitions_see(struct store *store, struct store_definition *items, size_t count,
                           struct store_call call);

struct store_definition_query {
    struct str source, kind, name; /* empty: any */
    bool changed_only, flagged_only;
    int64_t after_sequence; /* 0: from the first */
    size_t limit;
};
/* In the order of their first sight, without texts. */
void store_definition_list(struct store *store, const struct store_definition_query *query,
                           struct store_call call);
/* One row with its texts. */
void store_definition_get(struct store *store, struct str id, struct store_call call);
/* Accepts the present definition. STORE_CONFLICT when it has another digest than this; the reply
 * has the row as it is. One that was accepted before stays so, and is not recorded again. */
void store_definition_accept(struct store *store, struct str id, struct str digest,
                             const char *person, struct store_call call);
