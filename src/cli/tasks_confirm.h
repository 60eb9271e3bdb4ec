/* The look at a call before a decision on it, and what goes with the decision. */
#pragma once

#include "taskgate/core/buffer.h"

#include "admin_client.h"

struct tasks_confirmation {
    const char *digest; /* of the request that the person has seen; NULL: not told */
    const char *typed;  /* the value that an approval of high risk needs, or NULL */
    bool yes;           /* nothing is asked */
};

/* On a terminal, prints the call and asks whether to `verb` it. A value that must be typed
 * is asked for instead. Adds it and requestDigest to the body of the decision: the one that
 * was told, or on a terminal that of the call. Returns an exit code: CLI_DONE to go on, CLI_FAILURE
 * when the person does not want to. */
int tasks_confirm(struct admin_client *client, const char *id, const char *verb,
                  const struct tasks_confirmation *confirmation, struct buffer *decision);
/* Adds the requestDigest of the task that was shown, if it has one. */
void tasks_add_digest(struct buffer *decision, struct str task);
/* If an approval of the task needs a typed value, asks for it and adds it. False when nothing was
 * typed. */
bool tasks_add_typed(struct buffer *decision, struct str task);
/* The rest of a line of standard input, without its end. */
void tasks_read_line(struct buffer *line);
