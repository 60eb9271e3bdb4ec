/* From a URL to a session that the store can rely on. */
#include "opening.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "migrations.h"
#include "place.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"

#define OLDEST_SERVER 150000

/* clang-format off */
#define SETTING(name, value) "set_config('" name "', '" value "', false)"
#define SETTINGS_OF_ALL                                                                            \
    SETTING("tcp_user_timeout", "10s") ", "                                                        \
    SETTING("client_min_messages", "warning") ", "                                                 \
    SETTING("bytea_output", "hex") ", "                                                            \
    "CASE WHEN current_setting('application_name') LIKE 'taskgate%' THEN '' ELSE "                 \
    SETTING("application_name", "taskgate") " END"
/* A replica that stops in the middle of a transaction holds up the others for the first of these.
 * They wait for longer than that. A commit that was answered is on the disk; a stronger setting
 * stays. */
static const char settings[] =
    "SELECT " SETTINGS_OF_ALL ", "
    SETTING("idle_in_transaction_session_timeout", "5s") ", "
    SETTING("lock_timeout", "10s") ", "
    SETTING("statement_timeout", "15s") ", "
    SETTING("default_transaction_isolation", "read committed") ", "
    "CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN "
    SETTING("synchronous_commit", "on") " END";
/* A command takes its time, and holds up nobody. */
static const char reader_settings[] =
    "SELECT " SETTINGS_OF_ALL ", "
    SETTING("idle_in_transaction_session_timeout", "10min") ", "
    SETTING("statement_timeout", "10min") ", "
    SETTING("default_transaction_read_only", "on");
/* clang-format on */
#define ANSWER_TIMEOUT_MS 20000
/* Waiting for the lock of another who migrates, or for all that a reader asks for. */
#define LONG_TIMEOUT_MS 600000

static const char about[] =
    "SELECT pg_is_in_recovery(), pg_backend_pid(),"
    " current_setting('server_encoding'), current_schema(), current_user::text";

/* ---- connecting ---- */

/* The URL has the last word in what it says; the name is checked later. */
static PGconn *opening_start(const struct place *place)
{
    const char *const keywords[] = {"connect_timeout",
                                    "tcp_user_timeout",
                                    "keepalives_idle",
                                    "keepalives_interval",
                                    "keepalives_count",
                                    "fallback_application_name",
                                    "dbname",
                                    "client_encoding",
                                    NULL};
    const char *const values[] = {"5",        "10000",    "10",   "5", "3",
                                  "taskgate", place->url, "UTF8", NULL};
    return PQconnectStartParams(keywords, values, 1);
}

static bool connect_within(struct database *database, int64_t patience_ms)
{
    int64_t until_ms = clock_monotonic_ms() + patience_ms;
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;
    if (PQstatus(database->handle) == CONNECTION_BAD)
        return false; /* at once, as of a Unix socket that nobody listens on */
    while (status != PGRES_POLLING_OK && status != PGRES_POLLING_FAILED) {
        struct pollfd look = {.fd = PQsocket(database->handle),
                              .events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT};
        int64_t left_ms = until_ms - clock_monotonic_ms();
        if (left_ms < 0) {
            error_set(&database->error, "%s has not answered within %d ms", database->place->title,
                      (int)patience_ms);
            database->has_failed = true;
            return false;
        }
        if (poll(&look, 1, (int)left_ms + 1) < 0 && errno != EINTR)
            return false;
        if (look.revents != 0)
            status = PQconnectPoll(database->handle);
    }
    return status == PGRES_POLLING_OK;
}

/* Words of libpq and of the server, which gives no code for these. */
static const struct {
    const char *words;
    enum opened opened;
} failures[] = {
    {"too many clients", OPENED_LATER},
    {"remaining connection slots", OPENED_LATER},
    {"too many connections", OPENED_LATER},
    {"starting up", OPENED_LATER},
    {"shutting down", OPENED_LATER},
    {"in recovery mode", OPENED_LATER},
    {"not yet accepting connections", OPENED_LATER},
    /* We refuse the server: its certificate, or that it has none. */
    {"certificate verify failed", OPENED_REFUSED},
    {"does not match host name", OPENED_REFUSED},
    {"root certificate file", OPENED_REFUSED},
    {"server does not support SSL", OPENED_REFUSED},
};

/* A server that answers has refused us for good, unless it is just starting or ending, or has no
 * room. libpq gives no code for this; PQping tells an answer from none. */
static enum opened judge_failure(const struct database *database)
{
    const char *words = PQerrorMessage(database->handle);
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        if (strstr(words, failures[i].words))
            return failures[i].opened;
    }
    const char *const keywords[] = {"connect_timeout", "dbname", NULL};
    const char *const values[] = {"3", database->place->url, NULL};
    PGPing ping = PQpingParams(keywords, values, 1);
    return ping == PQPING_OK || ping == PQPING_NO_ATTEMPT ? OPENED_REFUSED : OPENED_LATER;
}

/* The server's notices. */
static void opening_note(void *context, const PGresult *result)
{
    (void)context;
    log_debug("PostgreSQL says",
              LOG_TEXT("message", PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY)));
}

/* ---- checking ---- */

static enum opened opening_refuse(struct database *database, const char *why)
{
    error_set(&database->error, "%s %s", database->place->title, why);
    database->has_failed = true;
    return OPENED_REFUSED;
}

static enum opened opening_look_at(struct database *database, const PGresult *rows)
{
    database->backend_id = (int)row_number(rows, 0, 1);
    row_copy(database->role, sizeof database->role, rows, 0, 4);
    if (PQserverVersion(database->handle) < OLDEST_SERVER)
        return opening_refuse(database,
                              "is a PostgreSQL before version 15; taskgate needs 15 or later");
    if (row_number(rows, 0, 0) != 0 && !database->is_reader)
        return opening_refuse(database,
                              "is a standby, where nothing can be written; name the primary in "
                              "the store's URL, or all hosts and target_session_attrs=read-write");
    if (!str_equal(row_bytes(rows, 0, 2), STR("UTF8")))
        return opening_refuse(database,
                              "does not keep its texts in UTF-8; create the database with "
                              "ENCODING 'UTF8'");
    if (PQgetisnull(rows, 0, 3))
        return opening_refuse(database, "has no schema for the tables; set the role's search_path");
    return OPENED;
}

/* A second connection for a moment: who shares a server process with us? */
#define POOLER_PATIENCE_MS 3000
#define POOLER_ROUNDS 4

/* Runs `sql` on a blocking connection within the time; the number that it gives, or -1. */
static int64_t ask_number(PGconn *handle, const char *sql, int64_t until_ms)
{
    int64_t number = -1;
    PGresult *result;
    if (!PQsendQueryParams(handle, sql, 0, NULL, NULL, NULL, NULL, 0))
        return -1;
    while (PQisBusy(handle)) {
        struct pollfd look = {.fd = PQsocket(handle), .events = POLLIN};
        int64_t left_ms = until_ms - clock_monotonic_ms();
        if (left_ms <= 0 || poll(&look, 1, (int)left_ms) < 0 || !PQconsumeInput(handle))
            return -1;
    }
    while ((result = PQgetResult(handle))) {
        if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1)
            number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
        else if (PQresultStatus(result) == PGRES_COMMAND_OK)
            number = 0;
        PQclear(result);
    }
    return number;
}

static PGconn *connect_second(const struct place *place)
{
    const char *const keywords[] = {"fallback_application_name", "dbname", "connect_timeout", NULL};
    const char *const values[] = {"taskgate", place->url, "3", NULL};
    return PQconnectdbParams(keywords, values, 1);
}

/* While the second is in a transaction, it holds its server process. Two sessions that have the
 * same one, or one that changes its own, do not have a process each. */
static bool pooler_is_shared(struct database *database, PGconn *second, int64_t until_ms)
{
    bool is_shared = false;
    for (int i = 0; i < POOLER_ROUNDS && !is_shared; i++) {
        int64_t other;
        if (ask_number(second, "BEGIN", until_ms) < 0)
            return false;
        other = ask_number(second, "SELECT pg_backend_pid()", until_ms);
        int64_t own = -1;
        rows_take_number(connection_read_text(database, "SELECT pg_backend_pid()", NO_VALUES),
                         &own);
        is_shared = other == own || own != database->backend_id;
        if (ask_number(second, "COMMIT", until_ms) < 0)
            return is_shared;
    }
    return is_shared;
}

/* Refuses a pooler that gives each transaction another server process, as PgBouncer does in
 * transaction mode: settings, prepared statements and notifications would be somebody else's. */
static enum opened pooler_check(struct database *database)
{
    /* A pooler makes up the number by which a session is cancelled. */
    if (PQbackendPID(database->handle) == database->backend_id)
        return OPENED;
    PGconn *second = connect_second(database->place);
    bool found = PQstatus(second) == CONNECTION_OK &&
                 pooler_is_shared(database, second, clock_monotonic_ms() + POOLER_PATIENCE_MS);
    PQfinish(second);
    if (!found)
        return database->handle ? OPENED : OPENED_LATER;
    error_set(&database->error,
              "%s is behind a pooler in transaction mode, where a session is not one server "
              "process; let the pooler use session mode (PgBouncer: pool_mode = session), or name "
              "the server itself in the store's URL",
              database->place->title);
    database->has_failed = true;
    return OPENED_REFUSED;
}

static bool opening_ask(struct database *database, const char *sql, PGresult **rows)
{
    *rows = connection_read_text(database, sql, NO_VALUES);
    return *rows != NULL;
}

/* Runs a statement whose rows nobody reads. */
static bool opening_run(struct database *database, const char *sql)
{
    PGresult *rows;
    bool done = opening_ask(database, sql, &rows);
    PQclear(rows);
    return done;
}

/* After it the feed is read from where it was read to. */
static enum opened set_up_writer(struct database *database)
{
    if (!opening_run(database, settings))
        return OPENED_LATER;
    database->timeout_ms = LONG_TIMEOUT_MS;
    enum opened opened = postgres_migrate(database);
    database->timeout_ms = ANSWER_TIMEOUT_MS;
    if (opened == OPENED && !opening_run(database, "LISTEN taskgate_feed"))
        return OPENED_LATER;
    return opened;
}

static enum opened set_up_reader(struct database *database)
{
    database->timeout_ms = LONG_TIMEOUT_MS;
    if (!opening_run(database, reader_settings))
        return OPENED_LATER;
    return database->is_before_schema ? OPENED : postgres_check_schema(database);
}

static enum opened set_up(struct database *database)
{
    PGresult *rows;
    PQsetnonblocking(database->handle, 1);
    PQsetNoticeReceiver(database->handle, opening_note, NULL);
    if (!PQenterPipelineMode(database->handle) || !opening_ask(database, about, &rows))
        return OPENED_LATER;
    enum opened opened = opening_look_at(database, rows);
    PQclear(rows);
    /* Before the settings, which somebody else's session could get. */
    if (opened == OPENED)
        opened = pooler_check(database);
    if (opened != OPENED)
        return opened;
    return database->is_reader ? set_up_reader(database) : set_up_writer(database);
}

enum opened opening_connect(struct database *database, int64_t patience_ms)
{
    enum opened opened;
    connection_drop(database);
    database->has_failed = false;
    database->code[0] = '\0';
    database->is_silent = false;
    database->timeout_ms = ANSWER_TIMEOUT_MS;
    database->handle = opening_start(database->place);
    if (connect_within(database, patience_ms))
        opened = set_up(database);
    else
        opened = judge_failure(database);
    if (opened == OPENED_LATER && connection_lacks_right(database))
        opened = OPENED_REFUSED;
    if (opened != OPENED) {
        connection_lost(database, "cannot connect");
        return opened;
    }
    database->delay_ms = 0;
    return OPENED;
}
