/*
 * A new task, bound to the client, its request and the rule (behaviour 1.5), with its clocks set.
 * It is not stored yet.
 */
#pragma once

#include "call/call.h"
#include "state/tool_catalog.h"
#include "taskgate/approval/person.h"
#include "taskgate/core/buffer.h"
#include "taskgate/task/task.h"

/* The client and its message; all borrowed. */
struct task_origin {
    const struct snapshot *snapshot;
    const struct config_source *source;
    const struct envelope *envelope; /* of a tools/call */
    const char *owner;               /* behaviour 4.2, or PERSON_OWNER and a name: then
                                        the gateway itself executes the call */
    struct catalog *catalog;         /* the server's words about its tools, and */
    const char *told_owner;          /* the owner of the caller's list of them */
    const char *session;             /* digest, or "" */
    const char *principal;           /* the name that operators see */
    struct identity *identity;       /* of a verified client; or NULL */
    const char *owner_email;         /* digest of the owner's verified address; "" or NULL: none */
    const char *maker;               /* keys of an operator; NULL: none */
    const char *client_name, *client_version; /* as the client calls itself; may be NULL */
    const char *agent_reason;                 /* NULL: none */
    struct str headers;                       /* request_headers_show(); empty: none */
    char headers_digest[DIGEST_HEX_BYTES];
    struct span *span; /* of the request, which gets the task's id */
};

/* Accelerated: approved from the start. The task's ttl has been checked before. */
struct task *task_binding_create(const struct task_origin *origin,
                                 const struct policy_decision *decision,
                                 const struct catalog_tool *tool, bool accelerated);
/* The same, of the client that calls. */
struct task *task_binding_create_of_call(const struct call *call,
                                         const struct policy_decision *decision,
                                         const struct catalog_tool *tool, bool accelerated);
/* For a call that the server already works on. The client's bytes are not kept, because nobody
 * sends them again. */
struct task *task_binding_create_promoted(const struct call *call);
/* Counts and logs a task that is now stored. */
void task_binding_announce(const struct task *task);

/*
 * The marks (core/marks.h) of a call: of its tool, its caller, and all keys and texts of its
 * request, with the place of each. Linear in the request.
 */
/* Appends the JSON array [{"where":…,"what":…}]: each pair once, at most 20. `where` is "tool",
 * "principal" or a dot path: of an argument, or below "_meta" or "params" (the parameters beside
 * the arguments); of the agent's reason ("" or NULL: none) the name of its property. Of a longer
 * path its first 200 characters and "…". */
void task_marks_write(struct buffer *out, const struct task *task, const char *agent_reason);
