/*
 * Rows of the audit trail for commands: from the store, from a running gateway, or from a
 * file that was exported.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/str.h"
#include "taskgate/store/chain.h"

/* The source of the rows; at most one is set. Without any: a running gateway when TASKGATE_TOKEN
 * is set, else the store that the usual configuration names. */
struct audit_place {
    const char *config, *store, *file;
};

/* A row's JSON, valid during the call only. False ends the reading. */
typedef bool (*audit_visitor)(void *context, struct str row);

struct audit_source {
    enum { AUDIT_SOURCE_STORE, AUDIT_SOURCE_ENDPOINT, AUDIT_SOURCE_FILE } kind;
    char *path;                /* of the store or the file; of a store it may be a URL */
    struct signature_key *key; /* of the configuration that was read, or NULL */
    bool has_start;            /* of an endpoint, after reading: older rows were removed */
    struct store_anchor start;
    bool with_arguments; /* set before reading: also an endpoint is asked for kept arguments */
    struct str kept;     /* of an endpoint: the object of those of the present page */
};

/* false after a word on stderr (exit CLI_USAGE). Finish it either way. */
bool audit_source_find(struct audit_source *source, const struct audit_place *place);
/* The same for what only the store itself has; a running gateway is not asked. */
bool audit_source_find_store(struct audit_source *source, const struct audit_place *place);
void audit_source_finish(struct audit_source *source);
/* Every row from `since_ms` on, oldest first. An exit code; what went wrong is said on stderr. */
int audit_source_read(struct audit_source *source, int64_t since_ms, audit_visitor visitor,
                      void *context);

/* {"sequence", "hash", "time", "signature"?}, also as the log has it. */
bool audit_read_anchor(struct str object, struct store_anchor *anchor);
