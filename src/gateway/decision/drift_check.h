/*
 * Compares an approved call with what was approved, and asks whether it would still be allowed
 * (behaviour 7.15). Asked right before it runs, on its worker's loop.
 */
#pragma once

#include "call/call.h"

/* All is borrowed. */
struct drift_check {
    struct catalog *catalog;
    const struct snapshot *snapshot;
    const struct config_source *source; /* of the snapshot; NULL: it has gone */
    const struct task *task;
    const struct identity *identity; /* the verified holder of the credentials; or NULL */
    bool was_compared; /* a moment ago, with a current list: one that is out of date is no change */
};

/* By whose list the call is judged: a person's is by that of the gateway's own session. */
struct str drift_check_owner(const struct task *task);
/* Whether the server must be asked for the tool first. */
bool drift_check_must_look(const struct drift_check *drift);
/* Whether the tool of now can be compared with the approved one. */
bool drift_check_can_compare(const struct drift_check *drift);
/* false, with -32011 in `error`: the policy in force neither forwards nor asks for the same
 * workflow; with -32012: the tool is not the one that was approved. */
bool drift_check_passes(const struct drift_check *drift, enum jsonrpc_error *error);
/* Whether the policy in force forwards the call, which nobody had to approve. */
bool drift_check_forwards(const struct drift_check *drift);
