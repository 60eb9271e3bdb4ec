/*
 * Tasks: calls that the gateway owns while a human decides, or that went on when their client could
 * wait no longer (promoted ones, behaviour 11.11).
 *
 * A task is a value; its life is the table in src/task/transitions.c. Nothing here touches
 * SQL or the wire. A task that has been published (task_ref'd by more than one holder) is
 * not changed any more: a change makes a copy. Any thread; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskgate/core/error.h"
#include "taskgate/core/str.h"

#define TASK_ID_BYTES 40 /* "tg_" + UUID + NUL; a promoted one's ULID is shorter */
/* The execute-by clock of a move to approved that brings none (behaviour 8.3). */
#define TASK_EXECUTE_WITHIN_MS INT64_C(300000)
/* How often an execution is begun in all when upstream refuses the credentials. */
#define TASK_MOST_TRIES 3

/* Behaviour 7.1. The order is stored: append only. */
enum task_state {
    TASK_PENDING,
    TASK_APPROVED,
    TASK_EXECUTING,
    TASK_COMPLETED,
    TASK_FAILED,
    TASK_CANCELLED,
    TASK_REJECTED,
    TASK_EXPIRED,
};
#define TASK_STATE_COUNT 8

/* The cause of a failed task: it decides what tasks/result answers (behaviour 7.14). */
enum task_failure {
    TASK_FAILURE_NONE,
    TASK_FAILURE_UPSTREAM,        /* an error or isError result is stored */
    TASK_FAILURE_GATEWAY,         /* the gateway's own JSON-RPC error is stored */
    TASK_FAILURE_OUTCOME_UNKNOWN, /* the process died while executing */
};
enum task_outcome { TASK_OUTCOME_NONE, TASK_OUTCOME_RESULT, TASK_OUTCOME_ERROR };

struct task {
    char id[TASK_ID_BYTES];
    enum task_state state;
    /* Bound at creation, never changed. */
    char *source;         /* source id */
    char *owner;          /* "auth:<hex>", "session:<hex>", "sub:<hex>", "admin:<person>",
                             "anonymous" or "anonymous:shared" */
    char owner_email[65]; /* digest of the owner's verified address (identity.h), or "" */
    char *maker;     /* of a call of an operator: the person's keys (person.h), a JSON array; or
                        "" */
    char *session;   /* hex digest of the session id, or "" */
    char *principal; /* for operators: client name and a short owner digest */
    char *client_name, *client_version; /* as the client called itself, or "" */
    char *tool;                         /* without NUL: a name with one was refused */
    char *workflow;                     /* or "" for an accelerated task */
    char *action;   /* the policy outcome it was created under: "approve", "forward"; or "answer" */
    char *decision; /* the decision on the call, as JSON for the log and the audit trail; "" once
                       the task is stored: only that trail keeps it */
    char *rule;     /* the glob of the rule that matched, or "" for the default action */
    char policy_digest[65]; /* of the configuration that decided; "" when unknown */
    char *shown;   /* for those who decide (task_binding.c); "" of a task of an older version */
    char *brief;   /* for its row in a list while it is pending (taskgate/notify/brief.h); "" of a
                      task of an older version */
    char *terms;   /* of its workflow, as ballot_terms_write() has them; "" for plain ones */
    char *request; /* the client's body, byte for byte */
    size_t request_length;
    char *arguments;    /* JSON text of params.arguments, "{}" when absent */
    char *meta;         /* JSON text of params._meta without progressToken, "{}" when absent */
    char *other_params; /* JSON object: the members of params beside name, arguments and task */
    char *original_arguments; /* JSON text of those of before an approver's edit; "" without */
    char original_digest[65]; /* of these, as below; "" without */
    char original_request_digest[65]; /* and of the request of before; "" without */
    char arguments_digest[65];        /* canonical SHA-256 */
    char request_digest[65];    /* of name, arguments, meta and other_params, all that an approval
                                   covers; "" of a task that an older version has stored */
    char definition_digest[65]; /* of the tool's cached definition; "" when unknown */
    char rule_digest[65];  /* of the rule as it is written; "" where the workflow has no grants, */
    char bound_digest[65]; /* as is this: of what a grant binds of the request */
    char headers_digest[65]; /* of the create's headers (request_headers.h); "" when unknown */
    char *mirrored_headers;  /* of the modern era: its headers that repeat the body, as "name:value"
                                lines; "" of a legacy task, and of one that has ended */
    char *progress_token;    /* JSON text of the create's token, or "" */
    char *trace;             /* of the create, as task_trace_write() has it; "" without */
    bool on_result;          /* executes at the owner's tasks/result only */
    bool promised;           /* a pending answer has named it to its client */
    bool accelerated;        /* started approved */
    bool keep_task;          /* upstream's own annotation is required: execute with `task` */
    bool promoted;           /* was a plain call; began executing, and ends when its ttl is over */
    int64_t retention_ms;    /* of a promoted one: how long it is kept after its end, */
    int64_t expired_retention_ms; /* and after its expiry */
    int64_t ttl_ms;
    int64_t poll_interval_ms;
    int64_t created_ms;   /* wall clock, as all below */
    int64_t decide_by_ms; /* 0 for an accelerated task */
    /* How long after its creation people are told again, while it is pending; 0: never. Gone once
       it is stored: the store has the times. */
    int64_t remind_after_ms, escalate_after_ms;
    /* Changed by transitions. */
    int64_t updated_ms;
    int64_t execute_by_ms;     /* 0 until approved */
    int64_t decided_ms;        /* 0 until decided */
    int64_t started_ms;        /* of the execution; 0 until then, and once it is given back */
    int64_t ended_ms;          /* 0 until terminal */
    char *decided_by;          /* or "" */
    char *reason;              /* or "" */
    char *votes;               /* as ballot_votes_write() has them; "" without */
    char *grant;               /* JSON object: the grant that decided it, or that its approval gave;
                                  "" without */
    char *status_message;      /* or "" */
    char *refused_credentials; /* digests of those that upstream has refused, blanks between */
    char *upstream_task;       /* upstream's task id while keep_task executes, or "" */
    enum task_failure failure;
    enum task_outcome outcome;
    char *outcome_text; /* JSON text of `result` or `error`, verbatim; NULL without */
    size_t outcome_length;
};

/* A new task with a fresh random id, state as given, all strings "" and one reference. The
 * clocks are the caller's to set: created, updated, ttl, and decide-by of a pending one or
 * execute-by of an approved one. */
struct task *task_create(enum task_state state);
/* The same, for a call that is at upstream already: executing, promoted, with a ULID. */
struct task *task_create_promoted(void);
struct task *task_ref(struct task *task); /* any thread */
void task_unref(struct task *task);       /* NULL is allowed */
/* A deep copy with one reference. */
struct task *task_copy(const struct task *task);

/* Replaces a text of a task that only its maker holds by a copy of `text`. A text is set by no
 * other means: one that is empty is not on the heap. */
void task_set_text(char **field, struct str text);
void task_set_request(struct task *task, struct str body);

const char *task_state_name(enum task_state state); /* "pending" … */
/* `action` of an answer: what the client of a call answers to a question that the server asks
 * inside that call, once it was approved. Such a task is for people and for the audit trail, and no
 * client sees it. */
#define TASK_ACTION_ANSWER "answer"
/* The member of an answer's other_params that has the id of the call. */
#define TASK_ANSWER_OF "answerOf"
bool task_is_answer(const struct task *task);
/* Why it is one: "approval", "accelerated", "promoted" or "answer". */
const char *task_kind_name(const struct task *task);
bool task_state_parse(struct str name, enum task_state *state);
bool task_state_is_terminal(enum task_state state);
/* Whether an id is one of ours by its form: begins with "tg_". Behaviour 7.2. */
bool task_id_is_ours(struct str id);
/* Whether it has the form of a promoted task's id. Upstream's own may have it, too. */
bool task_id_is_ulid(struct str id);

/* Whether the table allows the move. */
bool task_can_move(enum task_state from, enum task_state to);
/* The move's name in the audit trail: "approve", "expire" …; NULL when there is no such move. */
const char *task_move_name(enum task_state from, enum task_state to);
/* Some are for promoted tasks alone, or for all but these: task_can_change() tells. */
struct task_move {
    enum task_state from, to;
    const char *name;
};
/* Walks the table, by state of origin: start with *position 0; false at its end. */
bool task_next_move(size_t *position, struct task_move *move);
/* Checks the invariant of the task's state; it holds after creation and after each move. false:
 * `error` has the broken rule. */
bool task_check(const struct task *task, struct error *error);

/* The facts of a change. Fields left zero or NULL keep their values, except the status message,
 * because it describes the state: NULL gives the new state's own ("Rejected by NAME: REASON",
 * "Approval timed out after 600 s", "Approved, but not run within 300 s", "Cancelled", else "").
 * A move to failed must have a failure, one to completed a result. */
struct task_change {
    enum task_state to;
    const char *by;     /* the actor who approved, rejected or cancelled; kept from the move of a
                           pending task */
    const char *reason; /* kept unless somebody else has decided before */
    const char *status_message;
    int64_t execute_by_ms; /* 0 on approval: TASK_EXECUTE_WITHIN_MS from now */
    enum task_failure failure;
    enum task_outcome outcome;
    struct str outcome_text;
    const char *upstream_task;
    /* Digest of the credentials: of those that the execution begins with, which must not be among
     * the refused ones; of those that were refused, when it is given back. NULL: not known. */
    const char *credentials;
    /* The request is still that of this digest. NULL: whichever it is. */
    const char *request_digest;
    bool unless_begun; /* not of a task that is executing: somebody else has begun it */
    bool unless_promised;
    size_t claim; /* of an outcome: task_claim() of the execution that it is of */
};

/* Whether `change` may be applied: the table allows the move for a task of this kind, and the move
 * from executing back to approved has no actor (`by` is NULL). Otherwise an operator who approves a
 * running task would make it run a second time (behaviour 1.4). */
bool task_can_change(const struct task *task, const struct task_change *change);

/* Whether upstream has refused the credentials of this digest, and how many it has refused. */
bool task_has_refused(const struct task *task, const char *credentials);
size_t task_refusal_count(const struct task *task);
/* The number of the claim of an executing task, and of the next one before. An execution is given
 * back only when upstream has refused its credentials, so no two claims of a task have the same. */
size_t task_claim(const struct task *task);

/* Moves `task` (held by the caller alone) if the table allows it from where it is, and sets the
 * clocks. false: `task` is untouched and `error` names both states, or the missing fact. executing
 * goes back to approved if the server refused the credentials before it looked at the call;
 * execute-by then runs on. Source: behaviour 7.1, SEP-1686 "Task Status Lifecycle". */
bool task_transition(struct task *task, const struct task_change *change, int64_t now_ms,
                     struct error *error);

/* The clocks. Behaviour 8.1: deadlines hold on every read. If `task` is past a deadline at
 * `now_ms`, fills `change` with the move that is due (to TASK_EXPIRED) and returns true. */
bool task_due(const struct task *task, int64_t now_ms, struct task_change *change);
/* When task_due() will be true if nothing happens; INT64_MAX when never. */
int64_t task_next_deadline_ms(const struct task *task);
/* When the row may be deleted; INT64_MAX before the end. */
int64_t task_purge_ms(const struct task *task);
/* From its creation on, how long a task can be read at least, as far as is known now: it grows when
 * the task ends late. Never 0. */
int64_t task_retention_horizon_ms(const struct task *task);
/* Suggested pollInterval by the time that is left (behaviour 8.8). */
int64_t task_poll_interval_ms(int64_t remaining_ms);
