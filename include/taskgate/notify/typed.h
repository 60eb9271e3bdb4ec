/*
 * The risk of a call, and the value that a person types to approve one of high risk, so that it was
 * read. Any thread. Behaviour 9.14.
 */
#pragma once

#include "taskgate/approval/ballot.h"
#include "taskgate/core/buffer.h"
#include "taskgate/task/task.h"

#define TYPED_MOST_CHARACTERS 64

/* The risk of a task, "high", and whose word that is, "rule". Never empty. */
struct typed_risk {
    struct str risk, by;
};
struct typed_risk typed_risk_of(const struct task *task);
/* Whether channels show the risk: "high" always, another only where the rule says it. */
bool typed_risk_is_shown(const struct typed_risk *risk);

/* Whether something is typed to approve the task. Rejections and a grant's uses need nothing. */
bool typed_is_asked(const struct task *task);
struct typed_value {
    struct buffer path;  /* a dot path, "$tool" or "$digest" */
    struct buffer value; /* of the digest: that of the keyed one, which reveals nothing hidden */
};
/* `arguments`: those that would run, as redact_write() writes them. */
void typed_find(struct typed_value *found, const struct task *task, struct str arguments);
void typed_finish(struct typed_value *found);
/* Whether `typed`, which may be NULL, is what is asked for. */
enum ballot_typed typed_judge(const struct task *task, struct str arguments, const char *typed);
