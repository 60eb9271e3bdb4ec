/* Settling sessions, and what is lost with their last home. */
#include "taskgate/store/homes.h"

#include <stdlib.h>
#include <string.h>

#include "operation.h"
#include "replica.h"
#include "replica_rows.h"
#include "taskgate/core/memory.h"

void home_destroy(struct store_home *home)
{
    if (!home)
        return;
    free((char *)home->replica);
    free((char *)home->address);
    free(home);
}

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

struct looking {
    const char *id;
    char *address;
};

static bool look(void *context, const struct replica_row *row)
{
    struct looking *looking = context;
    if (!str_equal(row->id, str_from(looking->id)))
        return true;
    looking->address = memory_copy_str(row->address);
    return false;
}

/* Heartbeats tell of a replica's address, too, but not at once. */
static bool find_address(struct batch *batch, const char *id, char **address)
{
    struct looking looking = {.id = id};
    bool done = replica_rows_list(batch->database, look, &looking);
    *address = looking.address ? looking.address : memory_copy_text("");
    return done;
}

static bool run_settle_session(struct batch *batch, struct operation *operation)
{
    const struct replica *self = batch->replica;
    const struct home_key key = {operation->source, operation->session};
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

const struct operation_kind operation_session_settle = {"session settle", true, run_settle_session};
