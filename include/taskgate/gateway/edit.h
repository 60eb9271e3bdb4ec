/*
 * Other arguments for a call that waits: whether an approver may put them in place of the client's,
 * and the request that then runs. Behaviour 9.9: the arguments fit the tool's inputSchema, differ
 * at the workflow's `allow_edit` alone, and the rules come to the same workflow or forward.
 *
 * If the rules ask for the caller, the worker that holds the caller's verified credentials judges.
 * On the loop of the worker that asks.
 */
#pragma once

#include "taskgate/core/error.h"
#include "taskgate/gateway/gateway.h"
#include "taskgate/gateway/snapshot.h"
#include "taskgate/store/store.h"

enum edit_status {
    EDIT_MADE,
    EDIT_NOTHING_CHANGED, /* they are the client's own, in other words perhaps */
    EDIT_NOT_ALLOWED,
    EDIT_CHANGES_ROUTE,
    EDIT_CALLER_UNKNOWN, /* the rules ask for the caller, whom no worker of this process knows */
    EDIT_LATE,           /* the worker that may know the caller has not answered in time */
};

struct edit_answer {
    enum edit_status status;
    struct store_edit edit; /* of EDIT_MADE */
    struct error why;       /* of a refusal */
};

/* The answer lives as long as the callback. */
typedef void (*edit_callback)(void *context, struct task *task, const struct edit_answer *answer);

/* Judges `arguments`, an object that json_check() has accepted. The callback comes once, perhaps
 * before this returns. The snapshot and the arguments are borrowed until then. */
void edit_ask(struct gateway_worker *worker, const struct snapshot *snapshot, struct task *task,
              struct str arguments, edit_callback callback, void *context);
