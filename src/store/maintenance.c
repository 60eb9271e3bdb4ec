/* A database without a store on it: the schema, the hold, a copy, a backup. */
#include "taskgate/store/maintenance.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit_rows.h"
#include "backend.h"
#include "effects.h"
#include "operation.h"
#include "replica_rows.h"
#include "row.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/store/store.h"

bool store_is_in_use(const struct error *error)
{
    return strstr(error->message, BACKEND_IN_USE) != NULL;
}

static struct database *site_open(const struct store_site *site, enum store_work *work,
                                  struct error *error)
{
    *work = STORE_WORK_FAILED;
    struct database *database = site->backend->open(site->place, error);
    if (!database) {
        if (store_is_in_use(error))
            *work = STORE_WORK_CONFLICT;
        return NULL;
    }
    if (site->backend->is_in_place(database, error))
        return database;
    site->backend->close(database);
    return NULL;
}

static bool has_roles(const struct store_site *site, struct error *error)
{
    return site->backend->grant ||
           error_set(error,
                     "%s is a file, which knows neither roles nor statements; --grant-to "
                     "and --print are for PostgreSQL",
                     site->place);
}

enum store_work store_migrate(const struct store_site *site, const char *grant_to,
                              struct error *error)
{
    enum store_work work;
    if (grant_to && !has_roles(site, error))
        return STORE_WORK_FAILED;
    struct database *database = site_open(site, &work, error);
    if (!database)
        return work;
    bool done = !grant_to || site->backend->grant(database, grant_to, error);
    site->backend->close(database);
    return done ? STORE_WORK_DONE : STORE_WORK_FAILED;
}

char *store_migration(const struct store_site *site, const char *grant_to, struct error *error)
{
    return has_roles(site, error) ? site->backend->statements(site->place, grant_to, error) : NULL;
}

static bool maintenance_accept(const struct store_backend *backend, struct database *database,
                               bool *was_held, struct error *error)
{
    if (!backend->begin(database, true) || !replica_rows_is_held(database, was_held) ||
        !rows_write(database, STATEMENT_HOLD_DELETE, NO_VALUES))
        return backend->describe(database, "the database failed", error);
    return backend->commit(database, error) == COMMIT_DONE;
}

enum store_work store_accept_timeline(const struct store_site *site, bool *was_held,
                                      struct error *error)
{
    enum store_work work;
    struct database *database = site_open(site, &work, error);
    if (!database)
        return work;
    bool done = maintenance_accept(site->backend, database, was_held, error);
    if (!done)
        site->backend->rollback(database);
    site->backend->close(database);
    return done ? STORE_WORK_DONE : STORE_WORK_FAILED;
}

/* ---- a copy ---- */

/* Calls that ran live in the copy at a replica in no epoch. So the first that is asked for their
 * session adopts it, and tells its client that they were lost. */
#define COPIED_REPLICA "copy"
#define COPIED_EPOCH 0

struct copying {
    const struct store_backend *from_backend, *to_backend;
    struct database *from, *to;
    struct store_copied *copied;
    struct id_list executing; /* tasks */
    enum statement write;     /* of the rows that are copied now */
    size_t column_count;
    bool is_good; /* the copy so far is */
    bool found;   /* a row, where one is looked for */
};

/* ---- tables ---- */

/* What outlives a process beside the tasks and the trail. */
static const struct copied_table {
    const char *name;     /* of a record, whose columns are copied */
    enum statement write; /* takes them */
    const char *order;    /* NULL: by the sequence, which is the first column, in pages */
} tables[] = {
    {"audit_kept", STATEMENT_AUDIT_KEEP, NULL},
    {"audit_anchor", STATEMENT_ANCHOR_PUT, NULL},
    {"session", STATEMENT_SESSION_PUT, "source, id_digest"},
    {"pair", STATEMENT_PAIR_PUT, "source"},
    {"sign_in", STATEMENT_SIGN_IN_PUT, "sequence"},
    {"grant", STATEMENT_GRANT_COPY, NULL},
    {"block", STATEMENT_BLOCK_COPY, NULL},
    {"tally", STATEMENT_TALLY_COPY, "source"},
    {"definition", STATEMENT_DEFINITION_COPY, NULL},
    {"outbox_target", STATEMENT_OUTBOX_TARGET_INSERT, "key"},
    {"outbox_notice", STATEMENT_OUTBOX_NOTICE_COPY, NULL},
    {"outbox_delivery", STATEMENT_OUTBOX_DELIVERY_COPY, NULL},
    {"outbox_thread", STATEMENT_OUTBOX_THREAD_COPY, "target"},
};
#define TABLE_COUNT (sizeof tables / sizeof *tables)

static bool read_table(struct database *database, const struct copied_table *table,
                       row_visitor *visit, void *context)
{
    OWNED char *sql =
        table->order ? memory_format("SELECT {%s.*} FROM {%s} ORDER BY %s", table->name,
                                     table->name, table->order)
                     : memory_format("SELECT {%s.*} FROM {%s} WHERE sequence > ?1 ORDER BY sequence"
                                     " LIMIT ?2",
                                     table->name, table->name);
    return table->order
               ? rows_read_text(database, sql, NO_VALUES, visit, context)
               : rows_read_pages(database, &(struct row_pages){.sql = sql}, visit, context);
}

/* ---- whether anything is there ---- */

static bool note_row(void *context, const struct value *row)
{
    (void)row;
    ((struct copying *)context)->found = true;
    return false;
}

static bool note_task(void *context, struct task *task, int64_t sequence)
{
    (void)sequence;
    ((struct copying *)context)->found = true;
    task_unref(task);
    return false;
}

static const struct store_task_query all_tasks = {.order = STORE_BY_CREATION};

/* Of the places of notifications alone a database is no other: each start writes them. */
static bool look_for_rows(struct copying *copying)
{
    struct store_chain end;
    bool done = task_rows_list(copying->to, &all_tasks, 1, note_task, copying) &&
                audit_rows_end(copying->to, &end);
    copying->found = copying->found || (done && end.sequence > 0);
    for (size_t i = 0; done && !copying->found && i < TABLE_COUNT; i++) {
        if (strcmp(tables[i].name, "outbox_target") != 0)
            done = read_table(copying->to, &tables[i], note_row, copying);
    }
    return done;
}

/* ---- tasks ---- */

static bool copy_add_id(void *context, struct task *task, int64_t sequence)
{
    (void)sequence;
    id_list_add(context, str_from(task->id));
    task_unref(task);
    return true;
}

static bool copy_write_task(struct copying *copying, struct task *task)
{
    struct batch batch = {.backend = copying->to_backend, .database = copying->to};
    struct database *to = copying->to;
    copying->copied->tasks++;
    return task_rows_insert(to, task, NULL) && task_rows_set_votes(to, task) &&
           task_rows_set_grant(to, task) && (!*task->original_digest || task_rows_edit(to, task)) &&
           ((!task->started_ms && !*task->refused_credentials) ||
            task_rows_move(to, task, task->state, false) == ROW_FOUND) &&
           (!task->promised || task_rows_set_reach(to, task)) &&
           (!task_state_is_terminal(task->state) || task->request_length > 0 ||
            task_rows_end_request(to, task, true)) &&
           pending_note_created(&batch, task) && pending_write(&batch);
}

static bool copy_task(struct copying *copying, const char *id)
{
    struct task *task = NULL;
    bool done = task_rows_get(copying->from, str_from(id), &task) == ROW_FOUND;
    if (done)
        copying->is_good = copy_write_task(copying, task);
    if (done && task->state == TASK_EXECUTING)
        id_list_add(&copying->executing, str_from(id));
    task_unref(task);
    return done && copying->is_good;
}

/* The oldest first, because the rows of a copy have numbers of their own. */
static bool copy_tasks(struct copying *copying)
{
    struct id_list list = {.count = 0};
    bool done = task_rows_list(copying->from, &all_tasks, INT32_MAX, copy_add_id, &list);
    for (size_t i = list.count; done && i > 0; i--)
        done = copy_task(copying, list.ids[i - 1]);
    free(list.ids);
    return done;
}

/* ---- the trail ---- */

static bool copy_audit_row(void *context, const struct audit_row *row)
{
    struct copying *copying = context;
    copying->is_good = audit_rows_insert(copying->to, row);
    copying->copied->audit_rows++;
    return copying->is_good;
}

static bool copy_trail(struct copying *copying)
{
    return audit_rows_all(copying->from, 0, copy_audit_row, copying) && copying->is_good;
}

/* ---- the rest ---- */

static bool copy_row(void *context, const struct value *row)
{
    struct copying *copying = context;
    copying->is_good = rows_write(copying->to, copying->write, row, copying->column_count);
    copying->copied->others += copying->write != STATEMENT_AUDIT_KEEP;
    return copying->is_good;
}

static bool copy_table(struct copying *copying, const struct copied_table *table)
{
    const struct record *record = record_of(str_from(table->name));
    ASSERT(record);
    copying->write = table->write;
    copying->column_count = record_width(record) + record->has_sequence;
    return read_table(copying->from, table, copy_row, copying) && copying->is_good;
}

static bool copy_reminders(struct copying *copying)
{
    copying->write = STATEMENT_REMINDER_INSERT;
    copying->column_count = 3;
    return rows_read(copying->from, STATEMENT_REMINDER_ALL, NO_VALUES, copy_row, copying) &&
           copying->is_good;
}

/* ---- what ran ---- */

static bool copy_give_home(struct copying *copying, const struct task *task)
{
    const struct home_key key = {task->source, task->session};
    struct home_row home = {.replica = NULL};
    bool done = replica_rows_keep(copying->to, task->id, COPIED_REPLICA, COPIED_EPOCH) &&
                replica_rows_home_take(copying->to, &key, COPIED_REPLICA, COPIED_EPOCH,
                                       clock_now_ms(), &home) != ROW_FAILED;
    free(home.replica);
    free(home.lost_replica);
    return done;
}

/* After the sessions, for only a session that is stored has a home. */
static bool give_homes(struct copying *copying)
{
    bool done = true;
    for (size_t i = 0; done && copying->to_backend->is_shared && i < copying->executing.count;
         i++) {
        struct task *task = NULL;
        done =
            task_rows_get(copying->from, str_from(copying->executing.ids[i]), &task) == ROW_FOUND;
        if (done)
            done = copying->is_good = copy_give_home(copying, task);
        task_unref(task);
    }
    return done;
}

static bool end_copy(struct copying *copying)
{
    copying->is_good = rows_exist(copying->to, STATEMENT_COPY_END, NO_VALUES) != ROW_FAILED;
    return copying->is_good;
}

static bool copy_all(struct copying *copying)
{
    bool done = copy_tasks(copying) && copy_trail(copying);
    for (size_t i = 0; done && i < TABLE_COUNT; i++)
        done = copy_table(copying, &tables[i]);
    return done && give_homes(copying) && copy_reminders(copying) && end_copy(copying);
}

/* ---- both ends ---- */

static enum store_work copy_run(struct copying *copying, struct error *error)
{
    bool done = copying->from_backend->begin(copying->from, false) &&
                copying->to_backend->begin(copying->to, true) && look_for_rows(copying);
    if (done && copying->found) {
        error_set(error, "the database to copy to is not empty; name a new one");
        return STORE_WORK_CONFLICT;
    }
    if (done && copy_all(copying))
        return copying->to_backend->commit(copying->to, error) == COMMIT_DONE ? STORE_WORK_DONE
                                                                              : STORE_WORK_FAILED;
    if (copying->is_good)
        copying->from_backend->describe(copying->from, "the database to copy from failed", error);
    else
        copying->to_backend->describe(copying->to, "the database to copy to failed", error);
    return STORE_WORK_FAILED;
}

/* Closes `from`. */
static enum store_work copy_open(const struct store_backend *from_backend, struct database *from,
                                 const struct store_site *to, struct store_copied *copied,
                                 struct error *error)
{
    enum store_work work;
    *copied = (struct store_copied){0};
    struct copying copying = {.from_backend = from_backend,
                              .from = from,
                              .to_backend = to->backend,
                              .copied = copied,
                              .is_good = true};
    copying.to = site_open(to, &work, error);
    if (copying.to) {
        work = copy_run(&copying, error);
        copying.to_backend->rollback(copying.to);
    }
    free(copying.executing.ids);
    from_backend->rollback(from);
    to->backend->close(copying.to);
    from_backend->close(from);
    return work;
}

enum store_work store_copy(const struct store_site *from, const struct store_site *to,
                           struct store_copied *copied, struct error *error)
{
    enum store_work work;
    struct database *database = site_open(from, &work, error);
    return database ? copy_open(from->backend, database, to, copied, error) : work;
}

static bool site_copy_moment(const struct store_site *from, const struct store_site *to,
                             struct error *error)
{
    struct store_copied copied;
    struct database *database = from->backend->open_reader(from->place, error);
    return database && copy_open(from->backend, database, to, &copied, error) == STORE_WORK_DONE;
}

/* The database would create the file with the process's mask. */
static bool create_private(const char *target, struct error *error)
{
    int descriptor = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (descriptor < 0)
        return error_set(error, "%s cannot be written: %s", target, strerror(errno));
    close(descriptor);
    return true;
}

/* With the files that stand beside an open database. */
static void remove_files(const char *target)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        OWNED char *path = memory_format("%s%s", target, suffixes[i]);
        unlink(path);
    }
}

bool store_backup(const struct store_site *from, const struct store_site *to, struct error *error)
{
    if (!create_private(to->place, error))
        return false;
    bool done = from->backend->backup ? from->backend->backup(from->place, to->place, error)
                                      : site_copy_moment(from, to, error);
    if (!done)
        remove_files(to->place);
    return done;
}
