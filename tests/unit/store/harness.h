/* Shared by the store's tests: a scratch folder, a loop to wait on, tasks, replies. */
#pragma once

#include <check.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "taskgate/store/site.h"
#include "taskgate/store/store.h"

/* One scratch folder per test, removed by scratch_finish(). With TASKGATE_TEST_POSTGRES, the URL of
 * a server, the database is a schema of its own there; else it is a file of SQLite's. */
/* The database, which runs its statements by the functions of `backend` from now on: by a copy of
 * those of its own backend, with some of a test's. NULL is allowed. */
struct database *with_backend(struct database *database, const struct store_backend *backend);

struct scratch {
    char folder[64];
    char path[96];   /* of the database in it */
    char place[256]; /* the path, or the URL */
    char schema[64]; /* "" in SQLite */
    const struct store_backend *backend;
    const struct store_redaction *redaction; /* NULL after scratch_init() */
};
void scratch_init(struct scratch *scratch);
void scratch_finish(struct scratch *scratch);
bool scratch_is_postgres(void);
/* Its database, as a command reads it. */
struct store_site scratch_site(const struct scratch *scratch);
/* The number in the first column of the first row, by a connection of the test's own. In PostgreSQL
 * the tables have the names that SQLite's have. */
int64_t scratch_query(const struct scratch *scratch, const char *sql);
/* Runs SQL that changes something; returns SQLite's result code, or SQLITE_ERROR. */
int scratch_execute(const struct scratch *scratch, const char *sql);
/* From now on an insert into outbox_delivery fails; no more. */
void scratch_refuse_deliveries(const struct scratch *scratch);
void scratch_accept_deliveries(const struct scratch *scratch);

/* Behind the two above, where the database is PostgreSQL's. */
void scratch_postgres_init(struct scratch *scratch);
void scratch_postgres_finish(struct scratch *scratch);
int64_t scratch_postgres_query(const struct scratch *scratch, const char *sql);
int scratch_postgres_execute(const struct scratch *scratch, const char *sql);

/* Takes the tables of the processes that share a database out of it. */
#define SCRATCH_WITHOUT_REPLICAS                                                                   \
    "DROP TABLE replica; DROP TABLE task_claim; DROP TABLE lease; DROP TABLE feed;"                \
    "DROP TABLE limited; DROP TABLE hold; DROP TABLE session_home;"
/* Takes back what the versions of the schema after 18 have added. */
#define SCRATCH_BACK_TO_27                                                                         \
    "DROP TRIGGER outbox_thread_is_over; DROP TRIGGER outbox_next_is_due;"                         \
    "DROP INDEX outbox_notice_by_age; DROP INDEX approval_grant_active;"                           \
    "DROP INDEX approval_grant_ended; DROP INDEX audit_anchor_start;"                              \
    "DROP TABLE tally; DROP INDEX audit_decided; DROP INDEX audit_approved;"                       \
    "DROP INDEX session_by_owner; ALTER TABLE session DROP COLUMN owner;"
#define SCRATCH_BACK_TO_18                                                                         \
    SCRATCH_BACK_TO_27                                                                             \
    "DROP TABLE sign_in_attempt; DROP TABLE approval_grant; ALTER TABLE task DROP COLUMN "         \
    "rule_digest;"                                                                                 \
    "ALTER TABLE task DROP COLUMN bound_digest; ALTER TABLE task DROP COLUMN grant_facts;"         \
    "ALTER TABLE task DROP COLUMN original_digest;"                                                \
    "ALTER TABLE task DROP COLUMN original_request_digest;"                                        \
    "ALTER TABLE task_request DROP COLUMN original_arguments;"                                     \
    "ALTER TABLE task_request DROP COLUMN shown; DROP INDEX task_by_decide_by;"                    \
    "DROP INDEX outbox_thread_by_task; ALTER TABLE outbox_thread DROP COLUMN seen;"                \
    "DROP TABLE reminder; DROP TABLE definition; DROP TABLE block; ALTER TABLE outbox_notice "     \
    "DROP COLUMN "                                                                                 \
    "is_emergency;"                                                                                \
    "ALTER TABLE outbox_notice DROP COLUMN anchor; ALTER TABLE task DROP COLUMN trace;"

/* A copy of a reply that outlives the callback. */
struct answer {
    bool arrived;
    enum store_status status;
    bool is_unsure;
    enum ballot_refusal refusal;
    struct task *task;
    struct task *tasks[64];
    int64_t sequences[64];
    size_t task_count;
    bool has_more, has_promised;
    int64_t waiting;
    int64_t last_sequence, last_decide_by_ms;
    char *session_text; /* the session's fields, joined by '|' */
    char *audit_text;   /* one line per entry: event from>to kind name reason */
};
void answer_finish(struct answer *answer);

/* A store, and a loop of the calling thread. */
struct bench {
    struct scratch *scratch;
    struct store *store;
    struct loop *loop;
};
void bench_open(struct bench *bench, struct scratch *scratch);
void bench_close(struct bench *bench);
struct store_call bench_call(struct loop *loop, struct answer *answer);
/* Runs the loop until the answer is there. */
void bench_wait(struct loop *loop, const struct answer *answer);
/* Runs the loop until `*count` is at least `wanted`. */
void bench_wait_count(struct loop *loop, const size_t *count, size_t wanted);

extern const struct store_limits no_limits;
extern const struct store_actor alice;

/* A pending task of `owner` that is far from its deadline. */
struct task *new_task(const char *owner);
struct task *new_accelerated(const char *owner);
/* Calls that must succeed; the caller unrefs the task. */
struct task *create_task(struct bench *bench, struct task *task);
struct task *get_task(struct bench *bench, const char *id);
struct task *move_task(struct bench *bench, const char *id, const struct task_change *change);
enum store_status create_status(struct bench *bench, struct task *task,
                                const struct store_limits *limits);
enum store_status change_status(struct bench *bench, const char *id,
                                const struct task_change *change);
/* A vote by the person of this name, with the answer. */
void cast_vote(struct bench *bench, const char *id, const char *person, struct store_vote vote,
               struct answer *answer);
void list_tasks(struct bench *bench, const struct store_task_query *query, struct answer *answer);
/* How many tasks a query lists (at most 50), newest first. */
size_t count_listed(struct bench *bench, struct store_task_query query);
void audit_of(struct bench *bench, const char *id, struct answer *answer);

/* The notices of an observer. */
struct heard {
    size_t count;
    struct task *tasks[64];
    bool created[64];
};
void hear(void *context, struct task *task, bool created);
void heard_finish(struct heard *heard);
