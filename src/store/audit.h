/* The audit trail's rows. */
#pragma once

#include "operation.h"

struct audit_actor {
    const char *kind, *name;
};

#define AUDIT_GATEWAY ((struct audit_actor){"gateway", "taskgate"})

/* Adds an entry about `task`, which is already in its new state. `from` is "" at creation. */
bool audit_append(struct batch *batch, const struct task *task, const char *event, const char *from,
                  struct audit_actor actor, const char *reason);
