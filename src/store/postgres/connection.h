/*
 * One connection to PostgreSQL in pipeline mode. A write is queued, and its result is looked at
 * with the next read or with the commit; so a transaction of many rows waits for few answers. A
 * write that fails makes all that follows fail, up to the rollback. Used by one thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "backend.h"
#include "known.h"
#include "statement.h"
#include "task_rows.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/error.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/str.h"
#include "taskgate/store/postgres_library.h"

/* The statements of this database only: STATEMENT_ROW(symbol, SQL) in own_statements.h, behind
 * those of all. */
enum own_statement {
    STATEMENT_BEFORE_OWN = STATEMENT_COUNT - 1,
#define STATEMENT_ROW(symbol, sql) STATEMENT_##symbol,
#define OVERRIDE_ROW(symbol, sql)
#include "own_statements.h"
#undef STATEMENT_ROW
#undef OVERRIDE_ROW
    STATEMENT_ALL
};
extern const struct dialect postgres_dialect;

/* A command that was sent and is not answered yet. */
struct sent {
    enum sent_kind kind;
    unsigned which;
    unsigned operation;
};

/*
 * The rows that a transaction writes once, right before its commit, so that many operations cost
 * few statements: the tasks counted of each owner, and the changes added to the feed. An operation
 * that is undone takes back its counts; it has added nothing to the feed.
 */
struct owed {
    struct owed_owner {
        char *owner;
        struct limited_change change, at_mark; /* of what limits count of him */
    } * owners;
    size_t owner_count, owner_capacity;
    struct buffer feed_ids, feed_created; /* lists with commas */
    size_t feed_count;
    char *feed_replica; /* of all of them */
    int64_t feed_at_ms;
};

struct database {
    const struct store_backend *backend; /* the first, for row.c */
    uint32_t magic;                      /* DATABASE_MAGIC */
    struct place *place;
    PGconn *handle;        /* NULL: there is no connection */
    bool is_reader;        /* changes nothing, and sees one moment in each transaction */
    bool is_before_schema; /* a reader for which any schema will do, also none */
    bool prepared[STATEMENT_ALL];
    struct sent *sent; /* a queue: from `sent_first`, `sent_count` of them */
    size_t sent_first, sent_count, sent_capacity;
    bool is_open_transaction;
    bool has_failed; /* the transaction: since then nothing was done */
    bool tells;      /* the transaction has added to the feed */
    /* The operations of a transaction are counted, to know whose statement has failed. */
    unsigned operation, failed_operation;
    struct error error;
    char role[64];              /* has the rights of the connection; "" before it is known */
    char code[6];               /* SQLSTATE of the error; "" where the server has not said one */
    int64_t timeout_ms;         /* how long an answer is waited for */
    bool is_silent;             /* nothing has come since the transaction began */
    int64_t ahead_ms, asked_ms; /* the server's clock before ours; when it was asked for */
    int64_t written, written_before; /* in all; when the transaction began */
    int64_t beside_bytes;            /* of the tables that nobody counts, as it was measured */
    int64_t measured_ms;             /* monotonic; 0: not yet */
    struct known known;
    struct totals counted, counted_at_mark; /* by this transaction */
    struct owed owed;
    /* Of the connection that is tried for next. */
    int64_t retry_at_ms; /* monotonic */
    int64_t delay_ms;
    /* Commits are marked, so that one whose answer is lost can be looked up. */
    char marker[33];
    int64_t mark;
    bool is_unsure;       /* whether `mark` was committed */
    int64_t durable_mark; /* the last of which it is known */
    bool has_lost;        /* the database does not have that one any more */
    bool is_late;         /* a commit that was said to have failed was done after all */
    int backend_id;       /* of the server's process */
    bool is_told;         /* another replica has committed something */
};
#define DATABASE_MAGIC 0x53544405

/* How connecting has ended. */
enum opened {
    OPENED,
    OPENED_LATER,   /* the database cannot be reached now; it is worth trying again */
    OPENED_REFUSED, /* nobody can use it so: the password, the database, its version … */
};

/* ---- statements ---- */

/* Queues the beginning of a transaction, and asks for its answer at once: a server that gives none
 * within a few seconds is not waited for any longer. */
bool connection_begin(struct database *database, unsigned which);
/* Queues a statement whose rows nobody reads. */
bool connection_queue(struct database *database, unsigned which, enum sent_kind kind);
/* The same with values; what comes is known then. */
bool connection_ask(struct database *database, unsigned which, const struct value *values,
                    size_t count, enum sent_kind kind);
/* Queues a write. false also when a value is no text that PostgreSQL stores; then nothing was
 * queued, and the transaction can go on. */
bool connection_write(struct database *database, unsigned which, const struct value *values,
                      size_t count);
/* Waits for the rows; the caller clears them with PQclear(). NULL: it has failed. */
PGresult *connection_read(struct database *database, unsigned which, const struct value *values,
                          size_t count);
/* The same for text that varies. */
PGresult *connection_read_text(struct database *database, const char *sql,
                               const struct value *values, size_t count);
/* Waits for a write: ROW_ABSENT when it has changed no row. The numbers that it gives are bytes
 * that have gone. */
enum row_result connection_change(struct database *database, unsigned which,
                                  const struct value *values, size_t count, int64_t *changed);
/* Waits for all that was sent. */
bool connection_settle(struct database *database);
/* Runs scripts of several statements, outside of the pipeline. */
bool connection_script(struct database *database, const char *sql);

/* ---- the connection itself ---- */

/* Whether the last failure is that the role may not do this. */
bool connection_lacks_right(const struct database *database);
/* The connection cannot be used any more. Returns false. */
bool connection_lost(struct database *database, const char *what);
void connection_drop(struct database *database);
/* Takes notifications that have come. false: the connection has ended meanwhile. */
bool connection_listen(struct database *database);
