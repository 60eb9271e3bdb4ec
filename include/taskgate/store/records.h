/*
 * What the store keeps, as values: rows that its answers hold, and what is known of replicas. The
 * texts of an answer are the answer's. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/str.h"
#include "taskgate/task/task.h"

/* A client's session at a source. */
struct store_session {
    char *source;
    char *id_digest; /* SHA-256 hex of the session id: the id itself is never stored */
    char *version;   /* negotiated protocol version */
    char *client_name, *client_version;
    char *client_capabilities;         /* JSON text */
    char *owner;                       /* the client that opened it */
    bool upstream_tasks, upstream_sse; /* as detected at its initialize */
    int64_t seen_ms;
};

/* An operator who has signed in. */
struct store_sign_in {
    char *digest; /* SHA-256 hex of the cookie: the cookie itself is never stored */
    char *person; /* as whom they have signed in */
    char *issuer;
    char *claims; /* JSON object: the issuer's word of them */
    int64_t created_ms;
    int64_t until_ms; /* from then on there is none; it goes with the next sweep */
};

/* An entry of the audit trail. */
struct store_audit_entry {
    int64_t sequence, at_ms;
    char *task_id, *event, *from_state, *to_state, *actor_kind, *actor_name, *reason;
};

/* A message that an endpoint keeps of a pending task. */
struct store_message {
    char *target, *task_id;
    char *reference; /* as store_outbox_posted() has kept it */
    char *seen;      /* as store_outbox_see() has kept it of this reference; "" at first */
};

#define STORE_GRANT_ID_BYTES 40 /* "gr_" + UUID + NUL */
#define STORE_GRANT_ID_PREFIX "gr_"

/* A grant (grants.h). */
struct store_grant {
    int64_t sequence;
    char *id;
    char *task_id; /* of the call that was approved with it, which does not count */
    char *owner, *principal, *source, *tool, *workflow, *rule;
    char *rule_digest, *definition_digest, *bound_digest;
    char *terms;     /* of the workflow, as ballot_terms_write() has them */
    char *arguments; /* of the approved call, without what operators must not see; "": too long */
    char *votes;     /* of those who gave it, as ballot_votes_write() has them */
    char *reason;    /* of the vote that completed the quorum, or "" */
    int64_t calls, used, for_ms;
    int64_t created_ms, until_ms;
    int64_t ended_ms; /* 0 while it is in force */
    char *end_cause;  /* "time", "calls", "revoked", "tool_changed", "rule_changed", "giver_left",
                         "blocked" */
    char *ended_by;   /* the person who has revoked it, or "" */
    char *end_reason; /* of that person, or "" */
};

#define STORE_BLOCK_ID_BYTES 40 /* "bl_" + UUID + NUL */
#define STORE_BLOCK_ID_PREFIX "bl_"

/* The callers that a block is about. */
enum store_block_scope {
    STORE_BLOCK_OWNER,  /* the owner of the task */
    STORE_BLOCK_CLIENT, /* clients of the same name at its source */
    STORE_BLOCK_SOURCE, /* everybody at its source */
    STORE_BLOCK_SCOPES
};
const char *store_block_scope_name(enum store_block_scope scope);
/* STORE_BLOCK_SCOPES: it is none. */
enum store_block_scope store_block_scope_of(struct str name);

struct store_block {
    int64_t sequence;
    char *id;
    char *task_id; /* of the call that it was made with */
    char *scope;   /* by its name */
    char *owner, *source, *client, *principal;
    char *reason, *person;
    char *ended_by; /* the person who has lifted it, or "" */
    int64_t created_ms, until_ms;
    int64_t ended_ms; /* 0 while it is in force */
};

struct store_block_caller {
    struct str owner, source, client;
};
/* Whether the block is about this caller, whatever the time. Any thread. */
bool store_block_fits(const struct store_block *block, const struct store_block_caller *caller);

#define STORE_DEFINITION_ID_BYTES 40
#define STORE_DEFINITION_ID_PREFIX "df_"

/* A definition as a server gave it (definitions.h). */
struct store_definition {
    int64_t sequence;
    char *id; /* of source, kind and name */
    char *source, *kind, *name;
    char *digest;        /* the present one */
    char *accepted;      /* digests with blanks between them, the newest last */
    char *counted;       /* digests that were changes, in the same way */
    char *text;          /* of the present one; NULL in a list */
    char *accepted_text; /* of the last one that was accepted; NULL in a list */
    char *difference;    /* from that one to the present one, for people; "" when accepted */
    unsigned flags;      /* of the present one: FLAGGED() bits */
    bool is_changed;     /* the present one is not accepted */
    int64_t at_ms;       /* when this was written last; set by the store */
};

/* The home replica of a session or a task (homes.h). */
struct store_home {
    const char *replica;
    int64_t epoch;
    const char *address; /* it takes calls of others there, as it says now; "": it takes none */
    bool is_here;        /* at this process, in its epoch */
    bool is_adopted;     /* just now, from one that is gone; the reply's `tasks` are those of the
                            session that failed with it: they are told once, here */
};

/* A replica in one of its epochs, where a task is to live whose home is gone. */
struct store_heir {
    const char *replica;
    int64_t epoch;
};

/* STORE_PEER_ROW(symbol, name): what is known of another replica. */
#define STORE_PEER_TABLE(STORE_PEER_ROW)                                                           \
    STORE_PEER_ROW(ALIVE, "alive")   /* heard within 10 s, which is two heartbeats */              \
    STORE_PEER_ROW(SILENT, "silent") /* not heard for longer; not yet taken for dead */            \
    STORE_PEER_ROW(GONE, "gone")     /* has said goodbye, or was silent for 20 s; for an hour */

enum store_peer_state {
#define STORE_PEER_ROW(symbol, name) STORE_PEER_##symbol,
    STORE_PEER_TABLE(STORE_PEER_ROW)
#undef STORE_PEER_ROW
        STORE_PEER_COUNT
};
/* "alive" … */
const char *store_peer_state_name(enum store_peer_state state);

struct store_peer {
    const char *id;
    int64_t epoch;       /* of a replica that is gone: the next one, which it does not have yet */
    const char *address; /* http://HOST:PORT where it takes calls of others; "": it takes none */
    enum store_peer_state state;
};

/* Approvals (also by a grant), rejections, expiries, and failed calls. */
struct store_tally_counts {
    int64_t approved, rejected, expired, failed;
};

struct store_tally {
    struct store_tally_counts all, owner; /* of all callers; of the task's owner */
    /* The last decision by a person; `state` is TASK_APPROVED or TASK_REJECTED. */
    bool has_last;
    enum task_state state;
    char *person, *reason;
    int64_t decided_ms;
    /* Approvals of calls with the same arguments, and when the last one was. */
    int64_t same_approved, same_ms;
};
