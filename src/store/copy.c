/* A copy of a database in another of whatever kind: tasks as values, all else row by row. */
#include <stdlib.h>
#include <string.h>

#include "audit_rows.h"
#include "operation.h"
#include "pending.h"
#include "replica_rows.h"
#include "site_internal.h"
#include "taskgate/core/clock.h"

#define AUDIT_PAGE_ROWS 1000
/* Calls that ran live in the copy at a replica in no epoch. So the first that is asked for their
 * session adopts it, and tells its client that they were lost. */
#define COPIED_REPLICA "copy"
#define COPIED_EPOCH 0

struct copying {
    const struct store_backend *from_backend, *to_backend;
    struct database *from, *to;
    struct store_copied *copied;
    struct id_list executing;    /* tasks */
    int64_t audit_sequence;      /* of the last row of the trail that was copied */
    const char *table, *columns; /* that are copied now */
    size_t column_count;
    bool is_good; /* the copy so far is */
    bool found;   /* a row, where one is looked for */
};

static const struct {
    const char *name, *columns;
} tables[] = {
#define COPY_ROW(name, columns) {name, columns},
#include "copy_table.h"
#undef COPY_ROW
};
#define TABLE_COUNT (sizeof tables / sizeof *tables)

static size_t count_columns(const char *columns)
{
    size_t count = 1;
    for (; *columns; columns++)
        count += *columns == ',';
    return count;
}

/* ---- whether anything is there ---- */

static bool note_row(void *context, const struct copy_value *values)
{
    (void)values;
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
            done = copying->to_backend->copy->read(copying->to, tables[i].name, tables[i].columns,
                                                   note_row, copying);
    }
    return done;
}

/* ---- tasks ---- */

static bool add_id(void *context, struct task *task, int64_t sequence)
{
    (void)sequence;
    id_list_add(context, str_from(task->id));
    task_unref(task);
    return true;
}

static bool write_task(struct copying *copying, struct task *task)
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
        copying->is_good = write_task(copying, task);
    if (done && task->state == TASK_EXECUTING)
        id_list_add(&copying->executing, str_from(id));
    task_unref(task);
    return done && copying->is_good;
}

/* The oldest first, because the rows of a copy have numbers of their own. */
static bool copy_tasks(struct copying *copying)
{
    struct id_list list = {.count = 0};
    bool done = task_rows_list(copying->from, &all_tasks, INT32_MAX, add_id, &list);
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
    copying->audit_sequence = row->sequence;
    copying->copied->audit_rows++;
    return copying->is_good;
}

/* `values`: sequence, arguments, until_ms. */
static bool copy_kept(void *context, const struct copy_value *values)
{
    struct copying *copying = context;
    copying->is_good =
        audit_rows_keep(copying->to, values[0].number, values[1].text, values[2].number);
    return copying->is_good;
}

static bool copy_trail(struct copying *copying)
{
    bool done = true;
    int64_t before;
    do {
        before = copying->copied->audit_rows;
        done = audit_rows_page(copying->from, copying->audit_sequence, AUDIT_PAGE_ROWS,
                               copy_audit_row, copying) &&
               copying->is_good;
    } while (done && copying->copied->audit_rows > before);
    return done &&
           copying->from_backend->copy->read(copying->from, "audit_kept",
                                             "sequence, arguments, until_ms", copy_kept, copying) &&
           copying->is_good;
}

/* ---- the rest ---- */

static bool copy_row(void *context, const struct copy_value *values)
{
    struct copying *copying = context;
    copying->is_good = copying->to_backend->copy->write(
        copying->to, copying->table, copying->columns, values, copying->column_count);
    copying->copied->others++;
    return copying->is_good;
}

static bool copy_table(struct copying *copying, size_t index)
{
    copying->table = tables[index].name;
    copying->columns = tables[index].columns;
    copying->column_count = count_columns(copying->columns);
    return copying->from_backend->copy->read(copying->from, copying->table, copying->columns,
                                             copy_row, copying) &&
           copying->is_good;
}

static bool add_reminder(void *context, const char *task_id, unsigned event, int64_t due_ms)
{
    struct copying *copying = context;
    copying->is_good = rows_write(copying->to, STATEMENT_REMINDER_INSERT,
                                  VALUES(TEXT(task_id), NUMBER(event), NUMBER(due_ms)));
    copying->copied->others++;
    return copying->is_good;
}

/* ---- what ran ---- */

static bool give_home(struct copying *copying, const struct task *task)
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
            done = copying->is_good = give_home(copying, task);
        task_unref(task);
    }
    return done;
}

static bool copy_all(struct copying *copying)
{
    bool done = copy_tasks(copying) && copy_trail(copying);
    for (size_t i = 0; done && i < TABLE_COUNT; i++)
        done = copy_table(copying, i);
    return done && give_homes(copying) &&
           copying->from_backend->copy->reminders(copying->from, add_reminder, copying) &&
           copying->is_good && copying->to_backend->copy->finish(copying->to);
}

/* ---- both ends ---- */

static enum store_work run(struct copying *copying, struct error *error)
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
        work = run(&copying, error);
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

bool site_copy_moment(const struct store_site *from, const struct store_site *to,
                      struct error *error)
{
    struct store_copied copied;
    struct database *database = from->backend->open_reader(from->place, error);
    return database && copy_open(from->backend, database, to, &copied, error) == STORE_WORK_DONE;
}
