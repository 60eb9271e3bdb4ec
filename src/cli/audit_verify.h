/* taskgate audit verify. */
#pragma once

#include "audit_source.h"

/* Walks the chain of all rows. `anchors` names a file of anchor lines, `key` one with the public
 * key of their signatures; each may be NULL. Without `key` it is that of the source, if it has one.
 * Anchors without a key are a failure unless they may be unsigned. Returns an exit code:
 * CLI_FAILURE with the first bad row. */
int audit_verify(struct audit_source *source, const char *anchors, const char *key,
                 bool may_be_unsigned);
