/*
 * Other arguments for a call that waits: whether an approver may put them in place of the client's,
 * and the request that then runs. Contract "Approvals by several": the arguments fit the tool's
 * inputSchema, differ at the workflow's `allow_edit` alone, and the rules come to the same workflow
 * or forward. On the loop of the gateway's first worker.
 */
#pragma once

#include "taskgate/core/error.h"
#include "taskgate/gateway/gateway.h"
#include "taskgate/gateway/snapshot.h"
#include "taskgate/store/store.h"

enum edit_status {
    EDIT_MADE,
    EDIT_NOTHING_CHANGED, /* they are the client's own, in other words perhaps */
    EDIT_NOT_ALLOWED,     /* `error` says why */
    EDIT_CHANGES_ROUTE,
};

/* `arguments`: an object that json_check() has accepted. After EDIT_MADE the caller frees the texts
 * of `edit`. */
enum edit_status edit_make(const struct gateway_worker *worker, const struct snapshot *snapshot,
                           const struct task *task, struct str arguments, struct store_edit *edit,
                           struct error *error);
