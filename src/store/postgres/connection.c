/* Sending, waiting, results. */
#include "connection.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "place.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

/* Expressions that several statements have. */
#define CLOCK_MS "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
/* Whether a grant is in force. */
#define GRANT_ANY "EXISTS (SELECT 1 FROM taskgate_grant WHERE ended_ms = 0)"

static const char *const own[STATEMENT_ALL] = {
#define STATEMENT_ROW(symbol, sql) [STATEMENT_##symbol] = (sql),
#define OVERRIDE_ROW(symbol, sql) [STATEMENT_##symbol] = (sql),
#include "own_statements.h"
#undef STATEMENT_ROW
#undef OVERRIDE_ROW
};

/* An array of places is read first, whatever the planner thinks of the limit. */
static const struct dialect_word dialect_words[] = {
    {"rows", "ctid = ANY (ARRAY (SELECT ctid"},
    {"end", "))"},
    {"greatest", "greatest"},
    {"keeping numbers", " OVERRIDING SYSTEM VALUE"},
    {"with homes", "WITH gone AS ("},
    {"their homes", " RETURNING source, id_digest) DELETE FROM {session_home} AS home USING gone"
                    " WHERE home.source = gone.source AND home.session_digest = gone.id_digest"},
    {"is start", "is_start <> 0"},
    {"random id", "replace(gen_random_uuid()::text, '-', '')"},
    {"told", "{task} AS told"},
    {"then join", "JOIN"},
    {"less bytes", ", bytes = bytes - ?7"},
    {"no bytes", "''"},
    {"redacted", "is_redacted"},
    {"body", "body"},
    {"outcome body", "outcome_body"},
    {"task_request", "{task}"}, /* PostgreSQL keeps long values beside it */
    {"of task", "id = ?1"},
    {"task and request", "{task} AS task"},
    {"whole task", "{task} AS task"},
    {"shown", "shown"},
    {"octets of", "octet_length("},
    {"octets end", ")"},
    /* As the index taskgate_task_by_decide_by has it: a task without a deadline is the last. */
    {"decide by", "(CASE WHEN decide_by_ms = 0 THEN 9223372036854775807 ELSE decide_by_ms END)"},
    {"and bytes", " RETURNING bytes"},
    {"and argument bytes", " RETURNING octet_length(arguments)"},
    {NULL, NULL},
};

const struct dialect postgres_dialect = {"taskgate_", '$', own, dialect_words};

/* The first and the longest wait before a connection is tried again. */
/* A server that lives answers BEGIN at once, whatever it waits for behind it. One that is gone
 * without a word, or stands still, would hold up what waits for as long as a statement may take. */
#define SILENCE_MS 5000
#define RETRY_FIRST_MS 50
#define RETRY_MOST_MS 2000

/* ---- failures ---- */

/* Keeps what the server or libpq has said. Returns false. */
static bool connection_fail(struct database *database, const PGresult *result, const char *what)
{
    const char *message = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    const char *code = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    if (database->has_failed)
        return false; /* the first failure is the cause of the others */
    if (!message)
        message = database->handle ? PQerrorMessage(database->handle) : "there is no connection";
    snprintf(database->code, sizeof database->code, "%s", code ? code : "");
    struct str words = str_trim(str_from(message));
    if (code)
        error_set(&database->error, "%s: %.*s (SQLSTATE %s)", what, STR_ARGS(words), code);
    else
        error_set(&database->error, "%s: %.*s", what, STR_ARGS(words));
    place_hide_password(database->place, database->error.message);
    for (char *c = database->error.message; *c; c++)
        *c = (char)(*c == '\n' || *c == '\t' ? ' ' : *c); /* libpq gives hints on further lines */
    database->has_failed = true;
    database->failed_operation = database->operation;
    return false;
}

bool connection_lacks_right(const struct database *database)
{
    return strcmp(database->code, "42501") == 0;
}

void connection_drop(struct database *database)
{
    PQfinish(database->handle);
    database->handle = NULL;
    memset(database->prepared, 0, sizeof database->prepared);
    database->sent_first = database->sent_count = 0;
    database->is_open_transaction = false;
}

bool connection_lost(struct database *database, const char *what)
{
    connection_fail(database, NULL, what);
    connection_drop(database);
    database->has_failed = true;
    database->code[0] = '\0';
    database->delay_ms = database->delay_ms == 0 ? RETRY_FIRST_MS : 2 * database->delay_ms;
    if (database->delay_ms > RETRY_MOST_MS)
        database->delay_ms = RETRY_MOST_MS;
    database->retry_at_ms = clock_monotonic_ms() + database->delay_ms;
    return false;
}

/* ---- waiting ---- */

/* Until libpq has a whole answer. false: the connection is lost. */
static bool wait_for_answer(struct database *database)
{
    int64_t began_ms = clock_monotonic_ms();
    while (PQisBusy(database->handle)) {
        int64_t timeout_ms = database->is_silent ? SILENCE_MS : database->timeout_ms;
        int64_t until_ms = began_ms + timeout_ms;
        int unsent = PQflush(database->handle);
        struct pollfd look = {.fd = PQsocket(database->handle), .events = POLLIN};
        int64_t left_ms = until_ms - clock_monotonic_ms();
        if (unsent > 0)
            look.events |= POLLOUT;
        if (left_ms < 0 && !database->has_failed) {
            database->has_failed = true;
            error_set(&database->error, "the database has not answered for %" PRId64 " ms",
                      timeout_ms);
        }
        if (unsent < 0 || left_ms < 0)
            return connection_lost(database, "the connection to the database has failed");
        if (poll(&look, 1, (int)left_ms + 1) < 0 && errno != EINTR)
            return connection_lost(database, "the connection to the database has failed");
        if ((look.revents & (POLLIN | POLLHUP | POLLERR)) && !PQconsumeInput(database->handle))
            return connection_lost(database, "the connection to the database has failed");
        if (look.revents & POLLIN)
            database->is_silent = false;
    }
    database->is_silent = false;
    return true;
}

/* The next result of libpq; waits for it, with a limit of time. NULL: no connection any more, or
 * the end of a result. */
static PGresult *connection_next(struct database *database)
{
    if (!database->handle || !wait_for_answer(database))
        return NULL;
    return PQgetResult(database->handle);
}

/* ---- what was sent, and its results ---- */

static void expect(struct database *database, enum sent_kind kind, unsigned which)
{
    if (database->sent_first > 0 &&
        database->sent_first + database->sent_count == database->sent_capacity) {
        memmove(database->sent, database->sent + database->sent_first,
                database->sent_count * sizeof *database->sent);
        database->sent_first = 0;
    }
    if (database->sent_count == database->sent_capacity) {
        database->sent_capacity = database->sent_capacity ? 2 * database->sent_capacity : 64;
        database->sent =
            memory_grow_array(database->sent, database->sent_capacity, sizeof *database->sent);
    }
    ASSERT_NUMBERS(database->sent_first + database->sent_count, <, database->sent_capacity);
    database->sent[database->sent_first + database->sent_count++] =
        (struct sent){kind, which, database->operation};
}

/* The server read its clock after it was asked and before its answer was here. The known difference
 * stays as long as it fits that, so that times do not shake with the load. */
static void compare_clocks(struct database *database, int64_t server_ms)
{
    int64_t least_ms = server_ms - clock_now_ms() - 1, most_ms = server_ms - database->asked_ms + 1;
    if (database->ahead_ms < least_ms)
        database->ahead_ms = least_ms;
    else if (database->ahead_ms > most_ms)
        database->ahead_ms = most_ms;
}

/* The server's message names the table. */
static void name_missing_right(struct database *database)
{
    char hint[256];
    if (!connection_lacks_right(database))
        return;
    snprintf(hint, sizeof hint,
             "the role %.63s lacks the right; run taskgate store migrate --grant-to %.63s with the "
             "role that owns the tables",
             database->role, database->role);
    error_suffix(&database->error, hint);
}

static void connection_check(struct database *database, const struct sent *sent,
                             const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    bool is_good = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
    if (sent->kind == SENT_PREPARE)
        database->prepared[sent->which] = is_good;
    if (is_good && sent->kind == SENT_LOOK && PQntuples(result) > 0)
        compare_clocks(database, row_number(result, 0, 0));
    if (is_good && sent->kind >= SENT_LOOK && sent->kind <= SENT_TARGETS)
        known_take(&database->known, sent->kind, result);
    /* The commit of a transaction that has failed is a rollback. */
    bool is_undone = is_good && sent->kind == SENT_COMMIT &&
                     strcmp(PQcmdStatus((PGresult *)result), "COMMIT") != 0;
    if ((is_good && !is_undone) || status == PGRES_PIPELINE_ABORTED)
        return;
    if (!database->has_failed) {
        char what[64];
        OWNED_BUFFER(sql);
        if (sent->which < STATEMENT_ALL)
            statement_write(&postgres_dialect, sent->which, &sql);
        snprintf(what, sizeof what, "%.50s", sql.length > 0 ? sql.bytes : "a list");
        connection_fail(database, is_undone ? NULL : result, what);
        name_missing_right(database);
    }
    database->failed_operation = sent->operation;
}

/* The result of the oldest that was sent. NULL: it has none, or the connection is lost. */
static PGresult *connection_take_result(struct database *database)
{
    ASSERT_NUMBERS(database->sent_count, >, 0);
    const struct sent sent = database->sent[database->sent_first];
    PGresult *result = connection_next(database);
    if (!result) {
        if (database->handle)
            connection_lost(database, "the connection to the database has failed");
        return NULL;
    }
    database->sent_first++;
    database->sent_count--;
    if (PQresultStatus(result) == PGRES_PIPELINE_SYNC)
        return result;
    connection_check(database, &sent, result);
    /* Each result ends with a NULL. */
    PQclear(connection_next(database));
    if (database->handle && PQstatus(database->handle) == CONNECTION_BAD)
        connection_lost(database, "the connection to the database has failed");
    return result;
}

/* All results up to now; the rows of the last read, if somebody wants them. */
static bool settle(struct database *database, PGresult **rows)
{
    if (!database->handle)
        return false;
    if (!PQpipelineSync(database->handle))
        return connection_lost(database, "cannot ask the database");
    expect(database, SENT_SYNC, STATEMENT_ALL);
    while (database->handle && database->sent_count > 0) {
        bool is_read = database->sent[database->sent_first].kind == SENT_READ;
        PGresult *result = connection_take_result(database);
        if (is_read && rows) {
            PQclear(*rows);
            *rows = result;
        } else {
            PQclear(result);
        }
    }
    return database->handle && !database->has_failed;
}

bool connection_settle(struct database *database)
{
    return database->sent_count == 0 ? database->handle && !database->has_failed
                                     : settle(database, NULL);
}

/* ---- sending ---- */

struct arguments {
    const char *values[VALUES_MAX];
    int lengths[VALUES_MAX], formats[VALUES_MAX];
    char numbers[VALUES_MAX][24];
};

/* PostgreSQL keeps texts in UTF-8, without NUL. Here it is one operation's fault; there it would be
 * that of the whole transaction. */
static bool is_storable(struct str text)
{
    return (text.length == 0 || memchr(text.bytes, '\0', text.length) == NULL) && str_is_utf8(text);
}

static bool connection_fill(struct database *database, struct arguments *arguments,
                            const struct value *values, size_t count)
{
    ASSERT_NUMBERS(count, <=, VALUES_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct value *value = &values[i];
        bool is_number = value->kind == VALUE_NUMBER;
        if (value->text.length > INT32_MAX / 2 ||
            (value->kind == VALUE_TEXT && !is_storable(value->text)))
            return error_set(&database->error, "value %zu is no text that PostgreSQL stores",
                             i + 1);
        if (is_number)
            snprintf(arguments->numbers[i], sizeof arguments->numbers[i], "%" PRId64,
                     value->number);
        arguments->values[i] = value->text.length > 0 ? value->text.bytes : "";
        if (is_number)
            arguments->values[i] = arguments->numbers[i];
        if (value->kind == VALUE_NOTHING)
            arguments->values[i] = NULL;
        arguments->lengths[i] = (int)value->text.length;
        arguments->formats[i] = is_number ? 0 : 1;
    }
    return true;
}

static bool connection_prepare(struct database *database, unsigned which, const char *name)
{
    if (database->prepared[which])
        return true;
    OWNED_BUFFER(sql);
    statement_write(&postgres_dialect, which, &sql);
    bool is_sent = PQsendPrepare(database->handle, name, sql.bytes, 0, NULL);
    if (!is_sent)
        return connection_lost(database, "cannot ask the database");
    database->prepared[which] = true;
    expect(database, SENT_PREPARE, which);
    return true;
}

static bool submit(struct database *database, unsigned which, const struct value *values,
                   size_t count, enum sent_kind kind)
{
    struct arguments arguments;
    char name[16];
    ASSERT_NUMBERS(which, <, STATEMENT_ALL);
    if (!database->handle || database->has_failed ||
        !connection_fill(database, &arguments, values, count))
        return false;
    snprintf(name, sizeof name, "s%d", (int)which);
    if (!connection_prepare(database, which, name))
        return false;
    if (!PQsendQueryPrepared(database->handle, name, (int)count, arguments.values,
                             arguments.lengths, arguments.formats, 1))
        return connection_lost(database, "cannot ask the database");
    expect(database, kind, which);
    return true;
}

bool connection_queue(struct database *database, unsigned which, enum sent_kind kind)
{
    return submit(database, which, NO_VALUES, kind);
}

bool connection_begin(struct database *database, unsigned which)
{
    if (!connection_queue(database, which, SENT_WRITE))
        return false;
    database->is_silent = true;
    return PQsendFlushRequest(database->handle) ||
           connection_lost(database, "the connection to the database has failed");
}

bool connection_write(struct database *database, unsigned which, const struct value *values,
                      size_t count)
{
    database->written++;
    return submit(database, which, values, count, SENT_WRITE);
}

bool connection_ask(struct database *database, unsigned which, const struct value *values,
                    size_t count, enum sent_kind kind)
{
    return submit(database, which, values, count, kind);
}

/* Clears the rows of a statement that has failed. */
static PGresult *connection_read_rows(struct database *database)
{
    PGresult *rows = NULL;
    if (settle(database, &rows))
        return rows;
    PQclear(rows);
    return NULL;
}

PGresult *connection_read(struct database *database, unsigned which, const struct value *values,
                          size_t count)
{
    return submit(database, which, values, count, SENT_READ) ? connection_read_rows(database)
                                                             : NULL;
}

PGresult *connection_read_text(struct database *database, const char *sql,
                               const struct value *values, size_t count)
{
    struct arguments arguments;
    if (!database->handle || database->has_failed ||
        !connection_fill(database, &arguments, values, count))
        return NULL;
    if (!PQsendQueryParams(database->handle, sql, (int)count, NULL, arguments.values,
                           arguments.lengths, arguments.formats, 1)) {
        connection_lost(database, "cannot ask the database");
        return NULL;
    }
    expect(database, SENT_READ, STATEMENT_ALL);
    return connection_read_rows(database);
}

enum row_result connection_change(struct database *database, unsigned which,
                                  const struct value *values, size_t count, int64_t *changed)
{
    PGresult *result = connection_read(database, which, values, count);
    if (!result)
        return ROW_FAILED;
    int64_t rows = strtoll(PQcmdTuples(result), NULL, 10);
    database->written += rows;
    for (int i = 0; i < PQntuples(result); i++)
        database->counted.bytes -= row_number(result, i, 0);
    PQclear(result);
    if (changed)
        *changed = rows;
    return rows > 0 ? ROW_FOUND : ROW_ABSENT;
}

bool connection_script(struct database *database, const char *sql)
{
    bool done = connection_settle(database) && PQexitPipelineMode(database->handle);
    if (!done)
        return false;
    if (!PQsendQuery(database->handle, sql))
        return connection_lost(database, "cannot ask the database");
    PGresult *result;
    while ((result = connection_next(database))) {
        ExecStatusType status = PQresultStatus(result);
        if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
            done = connection_fail(database, result, "the schema cannot be changed");
        PQclear(result);
    }
    return database->handle && PQenterPipelineMode(database->handle) && done;
}

/* ---- notifications ---- */

bool connection_listen(struct database *database)
{
    if (!database->handle)
        return false;
    if (!PQconsumeInput(database->handle) || PQstatus(database->handle) == CONNECTION_BAD)
        return connection_lost(database, "the connection to the database has ended");
    PGnotify *notification;
    while ((notification = PQnotifies(database->handle))) {
        database->is_told |= notification->be_pid != database->backend_id;
        PQfreemem(notification);
    }
    return true;
}
