/* The parts of `initialize` that a bridged one shares. */
#pragma once

#include "call/call.h"

/* Reads what the client says of itself. */
void initialize_read_declarations(struct call *call);
/* Notes what the result shows of the server, keeps the session (a digest, or ""), and writes the
 * result for the client. */
void initialize_take_result(struct call *call, struct str result, const char *session,
                            struct buffer *out);
