/*
 * The record of a decided call: in the log (`governance.record`), with the task if the call becomes
 * one, and beside the decision of the shadow. It never holds arguments. A call that is only told
 * how to come again (-32009, -32010, -32602) has no record.
 */
#pragma once

#include "call/call.h"

struct decision_log_entry {
    struct snapshot *snapshot; /* under which the call was decided */
    const struct policy_request *request;
    const struct policy_decision *decision; /* NULL: the name is hidden */
    const struct policy_facts *facts;       /* NULL: nobody has asked who calls */
    struct identity *identity;              /* of a verified caller; else NULL */
    bool becomes_task;                      /* its line comes with the task */
    struct span *span;                      /* of the request, which is told; or NULL */
};

/* On the worker's loop. */
void decision_log_write(struct gateway_worker *worker, const struct decision_log_entry *entry);
/* Without `facts` the caller is identified only if the shadow needs it. */
void decision_log_write_unidentified(struct call *call, const struct decision_log_entry *entry);
/* The same as a JSON object, for task.decision; names that are too long to keep are "". */
void decision_log_write_json(struct buffer *out, const struct decision_log_entry *entry);
/* Writes the sums; at the end of a worker. */
void decision_log_finish(struct gateway_worker *worker);

/* Gate 3: Cedar policies decide if a rule leaves the decision to them. Replaces ACTION_POLICY by
 * their decision, counts and logs it; does nothing for any other action. */
void policy_check(const struct snapshot *snapshot, const struct policy_request *request,
                  const struct policy_facts *facts, struct policy_decision *decision);
