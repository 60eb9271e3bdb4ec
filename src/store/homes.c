/* Settling sessions and tasks, and what is lost with their last home. */
#include "taskgate/store/homes.h"

#include <stdlib.h>
#include <string.h>

#include "queue.h"
#include "replica_rows.h"
#include "taskgate/core/memory.h"

/* Others have failed by themselves, and were told of then. */
static bool is_lost(const struct task *task)
{
    return task->failure == TASK_FAILURE_OUTCOME_UNKNOWN && task->status_message &&
           (strcmp(task->status_message, REPLICA_LOST_PROMOTED) == 0 ||
            strcmp(task->status_message, REPLICA_LOST_EXECUTING) == 0);
}

static bool add_lost(struct batch *batch, struct store_reply *reply, const char *id)
{
    struct task *task = NULL;
    enum row_result result = task_rows_get(batch->database, str_from(id), &task);
    if (result == ROW_FOUND && is_lost(task)) {
        reply->tasks =
            memory_grow_array(reply->tasks, reply->task_count + 1, sizeof(struct task *));
        reply->tasks[reply->task_count++] = task_ref(task);
    }
    task_unref(task);
    return result != ROW_FAILED;
}

static bool find_lost(struct batch *batch, const struct home_key *key, const struct home_row *row,
                      struct store_reply *reply)
{
    struct id_list list = {.count = 0};
    bool done = rows_ids(batch->database, STATEMENT_HOME_LOST_TASKS,
                         VALUES(TEXT(key->source), TEXT(key->session_digest), NUMBER(TASK_FAILED),
                                TEXT(row->lost_replica), NUMBER(row->lost_epoch)),
                         &list);
    for (size_t i = 0; done && i < list.count; i++)
        done = add_lost(batch, reply, list.ids[i]);
    free(list.ids);
    return done;
}

/* Heartbeats tell of a replica's address, too, but not at once. */
static bool find_address(struct batch *batch, const char *id, char **address)
{
    struct record_list list;
    bool done = replica_rows_list(batch->database, &list);
    const struct replica_row *row = replica_rows_find(&list, id);
    *address = memory_copy_text(row ? row->address : "");
    record_list_finish(&list);
    return done;
}

static bool run_settle_session(struct batch *batch, struct operation *operation)
{
    const struct replica *self = batch->replica;
    const struct home_key key = {operation->pair.source, operation->pair.session};
    struct home_row row = {0};
    enum row_result result =
        replica_rows_home_take(batch->database, &key, self->id, self->epoch, batch->now_ms, &row);
    bool done = result != ROW_FAILED;
    if (done && !row.replica) {
        operation->reply.status = STORE_NOT_FOUND;
        return true;
    }
    if (done && row.lost_replica)
        done = find_lost(batch, &key, &row, &operation->reply);
    char *address = NULL;
    done = done && find_address(batch, row.replica, &address);
    if (done) {
        struct store_home *home = memory_alloc(sizeof *home);
        *home = (struct store_home){
            .replica = memory_copy_text(row.replica),
            .epoch = row.epoch,
            .address = address,
            .is_here = result == ROW_FOUND ||
                       (row.epoch == self->epoch && strcmp(row.replica, self->id) == 0),
            .is_adopted = row.lost_replica != NULL,
        };
        operation->reply.home = home;
    } else {
        free(address);
    }
    free(row.replica);
    free(row.lost_replica);
    return done;
}

static const struct operation_kind operation_session_settle = {"session settle", true,
                                                               run_settle_session, NULL};

void store_session_settle(struct store *store, struct str source, struct str digest,
                          struct store_call call)
{
    struct operation *operation = operation_create(&operation_session_settle, call);
    operation->pair.source = operation_keep(operation, source);
    operation->pair.session = operation_keep(operation, digest);
    store_queue(store, operation);
}

/* ---- tasks, and what becomes of one whose replica is gone ---- */

static bool homes_is_own(const struct replica *self, const char *replica, int64_t epoch)
{
    return epoch == self->epoch && strcmp(replica, self->id) == 0;
}

/* The replica of the task is gone. */
static bool adopt_task(struct batch *batch, const struct task_home_row *row,
                       struct operation *operation)
{
    const struct replica *self = batch->replica;
    batch->must_write = !batch->may_write;
    if (batch->must_write)
        return false;
    if (row->state == TASK_EXECUTING) {
        operation->reply.status = STORE_NOT_FOUND;
        return replica_end_unknown(batch, operation->id);
    }
    const char *heir = operation->heir.replica ? operation->heir.replica : self->id;
    int64_t epoch = operation->heir.replica ? operation->heir.epoch : self->epoch;
    struct store_home *home = memory_alloc(sizeof *home);
    *home = (struct store_home){.replica = memory_copy_text(heir),
                                .epoch = epoch,
                                .address = memory_copy_text(""),
                                .is_here = homes_is_own(self, heir, epoch),
                                .is_adopted = true};
    operation->reply.home = home;
    return replica_rows_keep(batch->database, operation->id, heir, epoch);
}

static bool settle_task(struct batch *batch, struct operation *operation, struct task_home_row *row)
{
    if (task_state_is_terminal(row->state)) {
        operation->reply.status = STORE_NOT_FOUND;
        return true;
    }
    if (row->is_over)
        return adopt_task(batch, row, operation);
    struct store_home *home = memory_alloc(sizeof *home);
    *home = (struct store_home){.replica = row->replica,
                                .epoch = row->epoch,
                                .address = row->address,
                                .is_here = homes_is_own(batch->replica, row->replica, row->epoch)};
    row->replica = row->address = NULL;
    operation->reply.home = home;
    return true;
}

static bool run_settle_task(struct batch *batch, struct operation *operation)
{
    struct task_home_row row = {.replica = NULL};
    enum row_result result = replica_rows_task_home(batch->database, operation->id, &row);
    bool done = result != ROW_FAILED;
    if (result == ROW_FOUND)
        done = settle_task(batch, operation, &row);
    else if (done)
        operation->reply.status = STORE_NOT_FOUND;
    free(row.replica);
    free(row.address);
    return done;
}

static const struct operation_kind operation_task_settle = {"task settle", false, run_settle_task,
                                                            NULL};

void store_task_settle(struct store *store, struct str id, const struct store_heir *heir,
                       struct store_call call)
{
    struct operation *operation = operation_create(&operation_task_settle, call);
    operation->id = operation_keep(operation, id);
    if (heir) {
        operation->heir.replica = operation_keep_text(operation, heir->replica);
        operation->heir.epoch = heir->epoch;
    }
    store_queue(store, operation);
}
