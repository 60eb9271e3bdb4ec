/*
 * The definition of a tool, prompt or skill as it is pinned: the members that tell a model what it
 * is (config/definitions.h says what becomes of it). Linear; any thread.
 */
#pragma once

#include "taskgate/config/definitions.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/digest.h"

struct mcp_definition {
    char digest[DIGEST_HEX_BYTES]; /* of the canonical form of these members */
    unsigned flags;                /* FLAGGED() bits that one definition alone can have */
    struct buffer text;            /* that form, with line breaks for people */
};

/* `raw` is the entry of a list, JSON text that json_check() has accepted. Finish it. */
void mcp_definition_read(struct mcp_definition *definition, enum definition_kind kind,
                         struct str raw);
void mcp_definition_finish(struct mcp_definition *definition);

/* Appends what two names have in common if they look the same. */
void mcp_definition_fold_name(struct buffer *out, struct str name);
