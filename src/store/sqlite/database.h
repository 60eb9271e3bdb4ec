/*
 * One SQLite database: opened safely, migrated, with prepared statements that stay. Used by
 * one thread at a time: the opener's, then the store's.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "statement.h"
#include "taskgate/core/error.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/str.h"

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
extern const struct dialect sqlite_dialect;

/* The files that SQLite works on, as they were when it opened them. */
struct files_opened {
    int database; /* the descriptor of files_open(); borrowed */
    char *path;   /* without symbolic links */
    char *log_path;
    dev_t log_device;
    ino_t log_inode;
};

struct store_backend;

struct database {
    const struct store_backend *backend; /* the first, for row.c */
    uint32_t magic;                      /* DATABASE_MAGIC */
    char *path;                          /* as the caller named it, for messages */
    int locked;    /* the file itself, which holds the process lock; -1 without */
    int wal_pages; /* pages in the log since the last checkpoint */
    struct files_opened files;
    sqlite3 *handle;
    sqlite3_stmt *statements[STATEMENT_ALL];
};
#define DATABASE_MAGIC 0x53544403

static inline struct database *database_from(void *context)
{
    return MAGIC_CAST(struct database, DATABASE_MAGIC, context);
}

/* `database` is zeroed, but for its backend; `prepare` brings the schema up; then the files that it
 * wrote to are noted. */
typedef bool (*database_prepare)(struct database *database, struct error *error);
bool database_open(struct database *database, const char *path, database_prepare prepare,
                   struct error *error);
/* Checkpoints, so that a closed database is one file. */
void database_close(struct database *database);
/* Whether its files are still where SQLite opened them. If they are not, nobody may be told of
 * anything that it commits. */
bool database_is_in_place(const struct database *database, struct error *error);

/* "what: SQLite's message (code)". Returns false. */
bool database_error(const struct database *database, const char *what, struct error *error);

/* The number in the first row of the text's rows. false: it cannot be read. */
bool database_number(sqlite3 *handle, const char *sql, int64_t *number);
/* A statement ready for new values; prepared at its first use. NULL on failure. */
sqlite3_stmt *database_statement(struct database *database, unsigned which);
/* Lets go of the row and the values of a statement that was stepped. */
void database_release(sqlite3_stmt *statement);
/* Runs a bound statement that gives no rows, and releases it. */
bool database_run(sqlite3_stmt *statement);
/* As database_run, for a statement without values. */
bool database_simple(struct database *database, unsigned which);
/* The size of the pages in use, with those of an open transaction. Freed pages are used
 * again and do not count. -1: the database has failed. */
int64_t database_used_bytes(struct database *database);
/* Moves what is in the log to the database file, as far as no reader hinders. */
void database_checkpoint(struct database *database);

/* SQLite counts columns from 0 and values from 1; text is bound without a copy. */
void database_bind_str(sqlite3_stmt *statement, int index, struct str text);
void database_bind_text(sqlite3_stmt *statement, int index, const char *text);
/* Bytes that may hold anything. */
void database_bind_bytes(sqlite3_stmt *statement, int index, struct str bytes);
/* A view, valid until the next step. */
struct str database_column_bytes(sqlite3_stmt *statement, int column);
