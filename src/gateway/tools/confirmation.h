/*
 * The user's confirmation of a held call (`approval.NAME.confirm`), for modern clients without
 * tasks. The client's side answers it, and an agent may control that side: it is recorded as a
 * confirmation and never counts as an approval. On the call's loop.
 */
#pragma once

#include "plain_call_internal.h"

/* Whether the user may be asked about a call that waits for this task. */
bool confirmation_may_ask(const struct call *call, const struct task *task);
/* With the task that the call waits for. True: the user is asked and the call answered, or what the
 * user has said is being recorded, and the call goes on with `hold` or ends. */
bool confirmation_takes(struct call *call, struct plain_call *plain, call_step hold);
