/* The extensions of the protocol that a client may see of a source's server. On the worker's loop.
 */
#pragma once

#include "call.h"

/* Writes a result of `initialize` or `server/discover` without the extensions that the client may
 * not see: those that neither the table nor `extensions.allow` names, those that `extensions.deny`
 * names, and those that are not bridged. The first two are logged, once each, and counted. */
void extensions_write_shown(struct call *call, struct str result, struct buffer *out);
