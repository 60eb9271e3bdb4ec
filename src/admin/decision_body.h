/* The body of a decision: {"reason", "emergency"}, each of which may be missing. */
#pragma once

#include "internal.h"

struct decision_body {
    char *reason; /* owned by the caller; NULL without one */
    bool is_emergency;
};

/* Answers the request with an error and returns false when the body is not good; then nothing is
 * owned. `takes_emergency`: an approval may be one. */
bool decision_body_read(const struct request *request, bool takes_emergency,
                        struct decision_body *body);
/* Reads the JSON value of a reason, null included, into a text that the caller frees. */
bool decision_body_read_reason(struct str value, char **reason, struct error *error);
