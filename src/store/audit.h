/* The audit trail: rows that are only added, each chained to the one before it. */
#pragma once

#include "operation.h"

struct audit_actor {
    const char *kind, *name;
    const char *via; /* the witness of an operator who votes; NULL: nothing to tell */
};

#define AUDIT_GATEWAY ((struct audit_actor){"gateway", "taskgate", NULL})

/* An approver has changed the arguments: the entry keeps the new ones, as that of the creation. */
#define AUDIT_EDIT "arguments_changed"

/* Adds an entry about `task`, which is already in its new state. `from` is "" at creation. */
bool audit_append(struct batch *batch, const struct task *task, const char *event, const char *from,
                  struct audit_actor actor, const char *reason);

/* The same about a task that stays as it is, with the time of now. */
bool audit_append_now(struct batch *batch, const struct task *task, const char *event,
                      struct audit_actor actor, const char *reason);

/* Whether the trail has an entry of this event about the task. false: the database has failed. */
bool audit_has(struct batch *batch, const struct task *task, const char *event, bool *has);
/* Adds an entry that is about no task: an operator came, went, or was refused. */
bool audit_append_note(struct batch *batch, const struct store_audit_note *note);

/* An entry about a grant, which names the call that it was given with. It has no state. */
struct store_grant;
bool audit_append_grant(struct batch *batch, const struct store_grant *grant, const char *event,
                        struct audit_actor actor, const char *reason);

/* An entry about a block, which names the call that it was made with. It has no state. */
struct store_block;
bool audit_append_block(struct batch *batch, const struct store_block *block, const char *event,
                        struct audit_actor actor, const char *reason);

/* A person has accepted a definition. */
struct store_definition;
bool audit_append_definition(struct batch *batch, const struct store_definition *definition,
                             const char *person);
