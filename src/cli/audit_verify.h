/* taskgate audit verify. */
#pragma once

#include "audit_source.h"

/* Walks the chain of all rows. `anchors` names a file of anchor lines, `key` one with the public
 * key of their signatures; each may be NULL. Returns an exit code: CLI_FAILURE with the first bad
 * row. */
int audit_verify(struct audit_source *source, const char *anchors, const char *key);
