/*
 * The tokens that `taskgate login` keeps between commands: one file for each admin endpoint,
 * readable by its owner alone, in $XDG_STATE_HOME/taskgate (~/.local/state/taskgate).
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/error.h"

/* The token for the endpoint, which the caller frees; NULL when nobody has signed in there, or the
 * file is not theirs alone (said on stderr). */
char *saved_token_read(const char *url);
/* Replaces the earlier token as a whole. */
bool saved_token_write(const char *url, const char *token, struct error *error);
/* False when there was none. */
bool saved_token_forget(const char *url);
