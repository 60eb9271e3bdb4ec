/*
 * The gateway's words to clients about the tokens that a source wants: challenges (RFC 6750 §3) and
 * metadata (RFC 9728). On the call's loop.
 */
#pragma once

#include "call/call.h"
#include "taskgate/identity/token.h"

#define METADATA_PATH "/.well-known/oauth-protected-resource"

/* Ends the call: 401 or 403 with a challenge, 503 without. */
void token_answer_refusal(struct call *call, enum token_error error);
/* Ends the call with the metadata of its source. */
void token_answer_metadata(struct call *call);
