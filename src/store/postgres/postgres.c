/* PostgreSQL as a backend of the store: transactions, the lock of the writers, lost answers. */
#include "taskgate/store/site.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit_rows.h"
#include "migrations.h"
#include "place.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/random.h"

#define FIRST_PATIENCE_MS 10000
#define PATIENCE_MS 3000
/* How long the callers of a commit wait to hear what became of it. */
#define UNSURE_PATIENCE_MS 10000
#define MEASURE_INTERVAL_MS 1000

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

static enum opened opening_connect(struct database *database, int64_t patience_ms)
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

/* ---- what a transaction writes once, with its end ---- */

static void owed_init(struct owed *owed)
{
    *owed = (struct owed){.feed_count = 0};
    buffer_init(&owed->feed_ids);
    buffer_init(&owed->feed_created);
}

/* Forgets everything, as a new transaction does. */
static void owed_finish(struct owed *owed)
{
    for (size_t i = 0; i < owed->owner_count; i++)
        free(owed->owners[i].owner);
    free(owed->owners);
    buffer_finish(&owed->feed_ids);
    buffer_finish(&owed->feed_created);
    free(owed->feed_replica);
    owed_init(owed);
}

static struct owed_owner *owed_find(const struct owed *owed, struct str owner)
{
    for (size_t i = 0; i < owed->owner_count; i++) {
        if (str_equal(str_from(owed->owners[i].owner), owner))
            return &owed->owners[i];
    }
    return NULL;
}

static struct limited_change owed_of(const struct owed *owed, struct str owner)
{
    const struct owed_owner *found = owed_find(owed, owner);
    return found ? found->change : (struct limited_change){0, 0, 0};
}

static void owed_add(struct owed *owed, struct str owner, const struct limited_change *change)
{
    struct owed_owner *found = owed_find(owed, owner);
    if (found) {
        found->change.tasks += change->tasks;
        found->change.bytes += change->bytes;
        return;
    }
    if (owed->owner_count == owed->owner_capacity) {
        owed->owner_capacity = owed->owner_capacity ? 2 * owed->owner_capacity : 16;
        owed->owners = memory_grow_array(owed->owners, owed->owner_capacity, sizeof *owed->owners);
    }
    owed->owners[owed->owner_count++] =
        (struct owed_owner){.owner = memory_copy_str(owner), .change = *change};
}

/* Counts that are added after the mark can be taken back. */
static void owed_mark(struct owed *owed)
{
    for (size_t i = 0; i < owed->owner_count; i++)
        owed->owners[i].at_mark = owed->owners[i].change;
}

static void owed_return_to_mark(struct owed *owed)
{
    for (size_t i = 0; i < owed->owner_count; i++)
        owed->owners[i].change = owed->owners[i].at_mark;
}

static bool write_owners(struct database *database)
{
    const struct owed *owed = &database->owed;
    for (size_t i = 0; i < owed->owner_count; i++) {
        const struct owed_owner *owner = &owed->owners[i];
        const struct limited_change *change = &owner->change;
        if ((change->tasks != 0 || change->bytes != 0) &&
            !connection_write(
                database, STATEMENT_LIMITED_ADD,
                VALUES(TEXT(owner->owner), NUMBER(change->tasks), NUMBER(change->bytes))))
            return false;
    }
    return true;
}

/* The values of a FEED_ADD: id, replica, created, at_ms. All of a transaction are of one replica.
 */
static void owed_add_change(struct owed *owed, const struct value *values)
{
    if (owed->feed_count++ > 0) {
        buffer_append_char(&owed->feed_ids, ',');
        buffer_append_char(&owed->feed_created, ',');
        ASSERT(str_equal(values[1].text, str_from(owed->feed_replica)));
    } else {
        owed->feed_replica = memory_copy_str(values[1].text);
        owed->feed_at_ms = values[3].number;
    }
    buffer_append(&owed->feed_ids, values[0].text);
    buffer_append_char(&owed->feed_created, values[2].number ? '1' : '0');
}

static bool write_feed(struct database *database)
{
    const struct owed *owed = &database->owed;
    struct str ids = buffer_str(&owed->feed_ids), created = buffer_str(&owed->feed_created);
    if (owed->feed_count == 0)
        return true;
    if (owed->feed_count == 1)
        return connection_write(database, STATEMENT_FEED_ADD,
                                VALUES(STRING(ids), TEXT(owed->feed_replica),
                                       NUMBER(*created.bytes == '1'), NUMBER(owed->feed_at_ms)));
    return connection_write(
        database, STATEMENT_FEED_ADD_ALL,
        VALUES(STRING(ids), TEXT(owed->feed_replica), STRING(created), NUMBER(owed->feed_at_ms)));
}

static bool owed_is_any(const struct owed *owed)
{
    return owed->owner_count > 0 || owed->feed_count > 0;
}

static bool owed_write(struct database *database)
{
    return write_owners(database) && write_feed(database);
}

/* ---- opening ---- */

static char *postgres_title_of(const char *url)
{
    struct error error;
    struct place *place = place_create(url, &error);
    char *title = memory_copy_text(place ? place->title : "PostgreSQL");
    place_destroy(place);
    return title;
}

static void close_connection(struct database *database)
{
    if (!database)
        return;
    connection_drop(database);
    place_destroy(database->place);
    known_forget(&database->known);
    owed_finish(&database->owed);
    free(database->sent);
    MAGIC_CLEAR(database);
    free(database);
}

/* Not connected. NULL: the URL is none. */
static struct database *postgres_create(const char *url, struct error *error)
{
    struct place *place = place_create(url, error);
    if (!place)
        return NULL;
    struct database *database = memory_alloc(sizeof *database);
    MAGIC_SET(database, DATABASE_MAGIC);
    database->backend = &store_postgres;
    database->place = place;
    owed_init(&database->owed);
    char id[RANDOM_UUID_BYTES];
    random_uuid(id);
    snprintf(database->marker, sizeof database->marker, "%.32s", id);
    return database;
}

static struct database *open_url(const char *url, struct error *error)
{
    struct database *database = postgres_create(url, error);
    if (!database)
        return NULL;
    enum opened opened = opening_connect(database, FIRST_PATIENCE_MS);
    if (opened == OPENED_REFUSED) {
        *error = database->error;
        close_connection(database);
        return NULL;
    }
    if (opened == OPENED_LATER)
        log_warn("The database cannot be reached; it is tried again",
                 LOG_TEXT("error", database->error.message));
    return database;
}

static struct database *open_to_read(const char *url, bool is_before_schema, struct error *error)
{
    struct database *database = postgres_create(url, error);
    if (!database)
        return NULL;
    database->is_reader = true;
    database->is_before_schema = is_before_schema;
    if (opening_connect(database, FIRST_PATIENCE_MS) == OPENED)
        return database;
    *error = database->error;
    close_connection(database);
    return NULL;
}

static struct database *postgres_open_reader(const char *url, struct error *error)
{
    return open_to_read(url, false, error);
}

/* ---- the schema, and the rights of a role that owns no table ---- */

#define DML "SELECT, INSERT, UPDATE, DELETE"

/* The names as they are written in a statement, and whether the role may name the tables at all.
 * Fails where there is no such role. */
static const char about_role[] = "SELECT quote_ident($1::text), quote_ident(current_schema()),"
                                 " has_schema_privilege($1::text::name, current_schema(), 'USAGE')";

/* Rows of identity columns, triggers and notifications need no right of their own. */
static bool rights_write(struct database *database, const char *role, struct buffer *sql)
{
    PGresult *rows = connection_read_text(database, about_role, VALUES(TEXT(role)));
    if (!rows)
        return false;
    struct str name = row_bytes(rows, 0, 0), schema = row_bytes(rows, 0, 1);
    if (row_number(rows, 0, 2) == 0)
        buffer_append_format(sql, "GRANT USAGE ON SCHEMA %.*s TO %.*s;\n", STR_ARGS(schema),
                             STR_ARGS(name));
    buffer_append_text(sql, "GRANT " DML " ON ");
    migrations_write_tables(schema, sql);
    buffer_append_format(sql, " TO %.*s;\n", STR_ARGS(name));
    buffer_append_format(
        sql, "ALTER DEFAULT PRIVILEGES IN SCHEMA %.*s GRANT " DML " ON TABLES TO %.*s;\n",
        STR_ARGS(schema), STR_ARGS(name));
    PQclear(rows);
    return true;
}

static bool rights_write_head(struct database *database, struct buffer *sql)
{
    PGresult *rows =
        connection_read_text(database, "SELECT quote_ident(current_schema())", NO_VALUES);
    if (!rows)
        return false;
    buffer_append_format(sql, "BEGIN;\nSET LOCAL search_path TO %.*s;\n",
                         STR_ARGS(row_bytes(rows, 0, 0)));
    PQclear(rows);
    return true;
}

static bool rights_grant(struct database *database, const char *role)
{
    OWNED_BUFFER(sql);
    bool done = rights_write(database, role, &sql);
    if (done) {
        buffer_append_char(&sql, '\0');
        done = connection_script(database, buffer_str(&sql).bytes);
        if (!done && connection_lacks_right(database))
            error_suffix(&database->error, "run it with the role that owns the tables");
    }
    return done;
}

static bool grant(struct database *database, const char *role, struct error *error)
{
    return rights_grant(database, role) || error_set(error, "%s", database->error.message);
}

static char *statements(const char *url, const char *role, struct error *error)
{
    struct database *database = open_to_read(url, true, error);
    if (!database)
        return NULL;
    OWNED_BUFFER(sql);
    bool written = rights_write_head(database, &sql) && migrations_write_pending(database, &sql) &&
                   (!role || rights_write(database, role, &sql));
    buffer_append_text(&sql, "COMMIT;\n");
    if (!written)
        error_set(error, "%s", database->error.message);
    close_connection(database);
    return written ? buffer_take(&sql, NULL) : NULL;
}

/* ---- a commit whose answer was lost ---- */

/* The number of the last transaction of this process that the database has. Under the lock of the
 * writers: before it is free, a lost transaction may still be committed. */
static bool read_mark(struct database *database, int64_t *number)
{
    PGresult *rows = NULL;
    *number = 0;
    database->has_failed = false;
    bool read = connection_queue(database, STATEMENT_BEGIN_READ, SENT_WRITE) &&
                connection_queue(database, STATEMENT_LOCK, SENT_WRITE) &&
                (rows = connection_read(database, STATEMENT_MARK_GET,
                                        VALUES(TEXT(database->marker)))) != NULL;
    if (rows_any(rows) == ROW_FOUND)
        *number = row_number(rows, 0, 0);
    PQclear(rows);
    return read && connection_queue(database, STATEMENT_COMMIT, SENT_COMMIT) &&
           connection_settle(database);
}

static bool look_up(struct database *database, bool *is_committed)
{
    int64_t number;
    bool read = read_mark(database, &number);
    *is_committed = read && number == database->mark;
    return read;
}

/* Behind the name there may be another server now, such as a standby that has taken over. */
static bool look_for_loss(struct database *database)
{
    int64_t number;
    if (database->durable_mark == 0)
        return true;
    if (!read_mark(database, &number))
        return connection_lost(database, "cannot look up the last commit");
    database->has_lost = database->has_lost || number < database->durable_mark;
    if (number < database->durable_mark)
        database->durable_mark = number;
    return true;
}

static bool reconnect(struct database *database, int64_t patience_ms)
{
    if (database->handle)
        return true;
    if (clock_monotonic_ms() < database->retry_at_ms)
        return false;
    if (opening_connect(database, patience_ms) != OPENED || !look_for_loss(database))
        return false;
    log_info("Connected to the database again", LOG_TEXT("database", database->place->title));
    return true;
}

/* false: it is still not known. */
static bool resolve(struct database *database, int64_t patience_ms, bool *is_committed)
{
    int64_t until_ms = clock_monotonic_ms() + patience_ms;
    bool known = false;
    do {
        known = reconnect(database, PATIENCE_MS) && look_up(database, is_committed);
        if (!known && database->handle)
            connection_lost(database, "cannot look up a commit");
        int64_t now_ms = clock_monotonic_ms();
        if (!known && now_ms < until_ms && database->retry_at_ms > now_ms)
            poll(NULL, 0, (int)(database->retry_at_ms - now_ms));
    } while (!known && clock_monotonic_ms() < until_ms);
    database->is_unsure = !known;
    return known;
}

/* ---- transactions ---- */

static unsigned beginning(const struct database *database, bool writes)
{
    if (writes)
        return STATEMENT_BEGIN_WRITE;
    return database->is_reader ? STATEMENT_BEGIN_MOMENT : STATEMENT_BEGIN_READ;
}

static bool postgres_begin(struct database *database, bool writes)
{
    bool is_committed = false;
    ASSERT(!database->is_open_transaction);
    connection_listen(database); /* an ended connection is seen here, not in the transaction */
    database->is_told = false;   /* this transaction reads the changes of all hints so far */
    if (!reconnect(database, PATIENCE_MS))
        return false;
    if (database->is_unsure && !resolve(database, 0, &is_committed))
        return false;
    database->is_late |= is_committed;
    database->has_failed = database->tells = false;
    database->error.message[0] = database->code[0] = '\0';
    database->written_before = database->written;
    known_forget(&database->known);
    owed_finish(&database->owed);
    database->counted = (struct totals){0, 0, 0};
    database->is_open_transaction = true;
    database->asked_ms = clock_now_ms();
    return connection_begin(database, beginning(database, writes)) &&
           (!writes || connection_queue(database, STATEMENT_LOCK, SENT_WRITE)) &&
           connection_queue(database, writes ? STATEMENT_LOOK_WRITE : STATEMENT_LOOK, SENT_LOOK);
}

/* The last rows of a transaction that writes, its number among them. */
static bool close_writing(struct database *database)
{
    const struct totals counted = database->counted;
    ASSERT_NUMBERS(database->mark, >, database->durable_mark);
    database->counted = (struct totals){0, 0, 0};
    return owed_write(database) &&
           connection_write(database, STATEMENT_CLOSE,
                            VALUES(TEXT(database->marker), NUMBER(database->mark),
                                   NUMBER(clock_now_ms() + database->ahead_ms),
                                   NUMBER(counted.tasks), NUMBER(counted.pending),
                                   NUMBER(counted.bytes), NUMBER(database->tells)));
}

static enum commit_result postgres_commit(struct database *database, struct error *error)
{
    bool wrote = database->written != database->written_before || owed_is_any(&database->owed);
    bool is_committed = false;
    database->mark += wrote; /* before anything can fail: the last number is that of another */
    bool done = (!wrote || close_writing(database)) &&
                connection_queue(database, STATEMENT_COMMIT, SENT_COMMIT) &&
                connection_settle(database);
    if (done) {
        database->is_open_transaction = false;
        database->durable_mark = database->mark;
    }
    if (done)
        return COMMIT_DONE;
    if (database->handle || !wrote) {
        error_set(error, "the database failed: %s", database->error.message);
        return COMMIT_NOTHING;
    }
    *error = database->error;
    if (!resolve(database, UNSURE_PATIENCE_MS, &is_committed)) {
        error_suffix(error, BACKEND_UNSURE);
        return COMMIT_UNSURE;
    }
    log_warn("The answer to a commit was lost, and looked up", LOG_BOOL("committed", is_committed));
    return is_committed ? COMMIT_DONE : COMMIT_NOTHING;
}

static void postgres_rollback(struct database *database)
{
    if (!database->handle || !database->is_open_transaction)
        return;
    connection_settle(database);
    database->has_failed = false;
    if (database->handle && !(connection_queue(database, STATEMENT_ROLLBACK, SENT_WRITE) &&
                              connection_settle(database)))
        connection_lost(database, "cannot undo a transaction");
    database->is_open_transaction = false;
}

static bool set_mark(struct database *database)
{
    database->operation++;
    database->counted_at_mark = database->counted;
    owed_mark(&database->owed);
    return connection_queue(database, STATEMENT_SAVEPOINT, SENT_WRITE);
}

/* Values that do not fit are one operation's fault, unless the statement was that of an earlier
 * one, which was taken for done. */
static bool postgres_can_go_on(const struct database *database)
{
    static const char *const classes[] = {"22", "23", "54"};
    if (!database->handle || !database->has_failed)
        return database->handle != NULL;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        if (strncmp(database->code, classes[i], 2) == 0)
            return database->failed_operation == database->operation;
    }
    return false;
}

static bool return_to_mark(struct database *database)
{
    if (!postgres_can_go_on(database) || (!database->has_failed && !connection_settle(database)))
        return false;
    database->has_failed = false;
    database->counted = database->counted_at_mark;
    owed_return_to_mark(&database->owed);
    known_forget(&database->known);
    return connection_queue(database, STATEMENT_ROLLBACK_TO, SENT_WRITE) &&
           connection_queue(database, STATEMENT_RELEASE, SENT_WRITE) && connection_settle(database);
}

static bool postgres_mark(struct database *database, enum backend_mark what)
{
    switch (what) {
    case MARK_SET:
        return set_mark(database);
    case MARK_FORGET:
        return connection_queue(database, STATEMENT_RELEASE, SENT_WRITE);
    case MARK_RETURN:
        break;
    }
    return return_to_mark(database);
}

/* ---- the database as a whole ---- */

static bool postgres_describe(const struct database *database, const char *what,
                              struct error *error)
{
    return error_set(error, "%s: %s", what, database->error.message);
}

static bool is_in_place(const struct database *database, struct error *error)
{
    return database->handle != NULL || error_set(error, "%s", database->error.message);
}

/* Asks for something that is not known yet, and waits. */
static bool known_ask(struct database *database, unsigned which, enum sent_kind kind,
                      const bool *is_known)
{
    return *is_known ||
           (connection_queue(database, which, kind) && connection_settle(database) && *is_known);
}

/* Makes the totals of this transaction known. */
static bool totals_know(struct database *database)
{
    return known_ask(database, STATEMENT_TOTALS_GET, SENT_TOTALS, &database->known.has_totals);
}

/* Of the tables that nobody counts the size is measured now and then. */
static int64_t used_bytes(struct database *database)
{
    int64_t now_ms = clock_monotonic_ms();
    if (database->measured_ms == 0 || now_ms - database->measured_ms >= MEASURE_INTERVAL_MS) {
        if (!rows_take_number(connection_read(database, STATEMENT_BESIDE_BYTES, NO_VALUES),
                              &database->beside_bytes))
            return -1;
        database->measured_ms = now_ms;
    }
    if (!totals_know(database))
        return -1;
    return database->known.totals.bytes + database->counted.bytes + database->beside_bytes;
}

/* ---- statements ---- */

#define AUDIT_ROW_BYTES 256 /* of the numbers, and of the indexes */

/* The chain goes on from it, and its bytes are counted. */
static bool insert_audit(struct database *database, const struct value *given, size_t count)
{
    struct value values[AUDIT_COLUMN_COUNT + 1];
    struct store_chain *end = &database->known.end;
    int64_t bytes = AUDIT_ROW_BYTES;
    ASSERT_NUMBERS(count, ==, AUDIT_COLUMN_COUNT);
    for (size_t i = 0; i < count; i++) {
        values[i] = given[i];
        bytes += (int64_t)given[i].text.length;
    }
    values[count] = NUMBER(bytes);
    database->counted.bytes += bytes;
    end->sequence = given[AUDIT_sequence].number;
    snprintf(end->hash, sizeof end->hash, "%.*s", STR_ARGS(given[AUDIT_hash].text));
    return connection_write(database, STATEMENT_AUDIT_INSERT, values, count + 1);
}

/* The values of a whole task, up to the replica and the epoch that it lives with. */
static bool postgres_insert_task(struct database *database, const struct value *values,
                                 size_t count)
{
    const struct str id = values[3].text;
    const bool is_kept = values[count - 2].text.length > 0;
    /* Said by the database, it would be the fault of all that are committed together. */
    if (known_has_id(&database->known, id))
        return error_set(&database->error, "there is a task %.*s already", STR_ARGS(id));
    id_list_add(&database->known.ids, id);
    database->counted.bytes += values[2].number;
    return connection_write(database, is_kept ? STATEMENT_TASK_INSERT_KEPT : STATEMENT_TASK_INSERT,
                            values, is_kept ? count : count - 2);
}

/* Counts are owed until the commit. */
static bool add_limited(struct database *database, const struct value *values)
{
    const struct limited_change change = {values[1].number, values[2].number, values[3].number};
    if (values[0].text.length == 0) {
        database->counted.tasks += change.tasks;
        database->counted.pending += change.pending;
    } else if (change.tasks != 0 || change.bytes != 0) {
        owed_add(&database->owed, values[0].text, &change);
    }
    return true;
}

static bool postgres_write_row(struct database *database, enum statement which,
                               const struct value *values, size_t count)
{
    switch (which) {
    case STATEMENT_FEED_ADD:
        database->tells = true;
        owed_add_change(&database->owed, values);
        return true;
    case STATEMENT_TASK_INSERT:
        return postgres_insert_task(database, values, count);
    case STATEMENT_LIMITED_ADD:
        return add_limited(database, values);
    case STATEMENT_TASK_SET_OUTCOME:
        database->counted.bytes += values[2].number;
        break;
    case STATEMENT_REQUEST_END:
        database->counted.bytes -= values[6].number;
        break;
    case STATEMENT_AUDIT_INSERT:
        return insert_audit(database, values, count);
    case STATEMENT_AUDIT_KEEP:
        database->counted.bytes += (int64_t)values[1].text.length;
        break;
    case STATEMENT_GRANT_INSERT:
        database->known.has_grants = true;
        break;
    case STATEMENT_OUTBOX_TARGET_CLEAR:
        database->known.has_targets = false;
        break;
    default:
        break;
    }
    return connection_write(database, which, values, count);
}

static bool postgres_change(struct database *database, enum statement which,
                            const struct value *values, size_t count, int64_t *changed)
{
    *changed = 0;
    return connection_change(database, which, values, count, changed) != ROW_FAILED;
}

/* ---- what limits count ---- */

static bool ask_of_owner(struct database *database, struct str owner, struct str ids)
{
    return connection_ask(database, STATEMENT_LIMITED_COUNT, VALUES(STRING(owner), STRING(ids)),
                          SENT_OWNER);
}

static bool postgres_is_asked(const struct task *const *tasks, size_t count, const char *owner)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(tasks[i]->owner, owner) == 0)
            return true;
    }
    return false;
}

/* A statement for each owner; the first asks for the ids of all. */
static bool expect_inserts(struct database *database, const struct task *const *tasks, size_t count)
{
    OWNED_BUFFER(ids);
    bool done = true;
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buffer_append_char(&ids, ',');
        buffer_append_text(&ids, tasks[i]->id);
    }
    for (size_t i = 0; done && i < count; i++) {
        if (!postgres_is_asked(tasks, i, tasks[i]->owner))
            done = ask_of_owner(database, str_from(tasks[i]->owner),
                                i == 0 ? buffer_str(&ids) : STR_EMPTY);
    }
    return done;
}

/* NULL: the database has failed. */
static const struct known_owner *know_owner(struct database *database, struct str owner)
{
    const struct known_owner *known = known_find_owner(&database->known, owner);
    if (!known && ask_of_owner(database, owner, STR_EMPTY) && connection_settle(database))
        known = known_find_owner(&database->known, owner);
    return known;
}

static bool count_limited(struct database *database, struct str owner, row_visitor *visit,
                          void *context)
{
    if (!totals_know(database))
        return false;
    const struct known_owner *known = owner.length > 0 ? know_owner(database, owner) : NULL;
    if (owner.length > 0 && !known)
        return false;
    const struct totals *totals = &database->known.totals, *counted = &database->counted;
    const struct limited_change owed = owed_of(&database->owed, owner);
    visit(context, (struct value[]){NUMBER(known ? known->tasks + owed.tasks : 0),
                                    NUMBER(known ? known->bytes + owed.bytes : 0),
                                    NUMBER(totals->tasks + counted->tasks),
                                    NUMBER(totals->pending + counted->pending)});
    return true;
}

/* What is known without the statement: then *is_done. false: the database has failed. */
static bool read_known(struct database *database, enum statement which, const struct value *values,
                       row_visitor *visit, void *context, bool *is_done)
{
    const struct known *known = &database->known;
    bool is_known;
    switch (which) {
    case STATEMENT_GRANT_OF_TOOL: /* most of the time there is no grant at all */
        is_known =
            known_ask(database, STATEMENT_GRANT_ANY, SENT_GRANTS, &known->has_looked_for_grants);
        *is_done = is_known && !known->has_grants;
        return is_known;
    case STATEMENT_LIMITED_COUNT:
        *is_done = true;
        return count_limited(database, values[0].text, visit, context);
    case STATEMENT_AUDIT_END:
        is_known = known_ask(database, STATEMENT_AUDIT_END, SENT_END, &known->has_end);
        *is_done = true;
        if (is_known && known->end.sequence > 0)
            visit(context, (struct value[]){NUMBER(known->end.sequence), TEXT(known->end.hash)});
        return is_known;
    case STATEMENT_OUTBOX_TARGETS:
        is_known = known_ask(database, STATEMENT_OUTBOX_TARGETS, SENT_TARGETS, &known->has_targets);
        *is_done = true;
        for (size_t i = 0; is_known && i < known->target_count; i++)
            visit(context, (struct value[]){NUMBER(known->targets[i].events),
                                            NUMBER(known->targets[i].with_arguments)});
        return is_known;
    default:
        return true;
    }
}

/* Clears the rows. */
static bool postgres_visit_rows(PGresult *rows, row_visitor *visit, void *context)
{
    struct value row[VALUES_MAX];
    bool is_read = rows != NULL, goes_on = is_read;
    ASSERT(!rows || PQnfields(rows) <= VALUES_MAX);
    for (int i = 0; goes_on && i < PQntuples(rows); i++) {
        for (int j = 0; j < PQnfields(rows); j++)
            row[j] = row_value(rows, i, j);
        goes_on = visit(context, row);
    }
    PQclear(rows);
    return is_read;
}

static bool postgres_read_rows(struct database *database, enum statement which,
                               const struct value *values, size_t count, row_visitor *visit,
                               void *context)
{
    bool is_done = false, is_good = read_known(database, which, values, visit, context, &is_done);
    if (is_done || !is_good)
        return is_good;
    if (which == STATEMENT_REPLICA_JOIN || which == STATEMENT_HOME_TAKE ||
        which == STATEMENT_TASK_HAND_OVER_ENDED)
        database->written++;
    return postgres_visit_rows(connection_read(database, which, values, count), visit, context);
}

static bool postgres_read_text(struct database *database, const char *text,
                               const struct value *values, size_t count, row_visitor *visit,
                               void *context)
{
    OWNED_BUFFER(sql);
    statement_write_text(&postgres_dialect, text, &sql);
    return postgres_visit_rows(connection_read_text(database, sql.bytes, values, count), visit,
                               context);
}

/* ---- other processes ---- */

/* What it says, once. */
static bool postgres_take(bool *fact)
{
    bool is_so = *fact;
    *fact = false;
    return is_so;
}

static int64_t postgres_look(struct database *database, enum backend_fact fact)
{
    switch (fact) {
    case LOOK_AHEAD_MS:
        return database->ahead_ms;
    case LOOK_WRITTEN:
        return database->written;
    case LOOK_HINT:
        connection_listen(database);
        return postgres_take(&database->is_told);
    case LOOK_LATE_COMMIT:
        return postgres_take(&database->is_late);
    case LOOK_LOSS:
        return postgres_take(&database->has_lost);
    case LOOK_BYTES:
        return used_bytes(database);
    case LOOK_UPKEEP: /* autovacuum does it */
        return BACKEND_UPKEEP_NONE;
    case LOOK_WAKE_FD:
        break;
    }
    return database->handle ? PQsocket(database->handle) : -1;
}

const struct store_backend store_postgres = {
    .name = "postgres",
    .is_shared = true,
    .title = postgres_title_of,
    .open = open_url,
    .open_reader = postgres_open_reader,
    .grant = grant,
    .statements = statements,
    .close = close_connection,
    .begin = postgres_begin,
    .commit = postgres_commit,
    .rollback = postgres_rollback,
    .mark = postgres_mark,
    .describe = postgres_describe,
    .is_in_place = is_in_place,
    .look = postgres_look,
    .write = postgres_write_row,
    .change = postgres_change,
    .read = postgres_read_rows,
    .read_text = postgres_read_text,
    .compares_rows = true,
    .expect_inserts = expect_inserts,
};
