/* Settling tasks, and what becomes of one whose replica is gone. */
#include <stdlib.h>
#include <string.h>

#include "replica.h"
#include "replica_rows.h"
#include "taskgate/core/memory.h"
#include "taskgate/store/homes.h"

static bool is_own(const struct replica *self, const char *replica, int64_t epoch)
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
    const char *heir = operation->heir ? operation->heir : self->id;
    int64_t epoch = operation->heir ? operation->heir_epoch : self->epoch;
    struct store_home *home = memory_alloc(sizeof *home);
    *home = (struct store_home){.replica = memory_copy_text(heir),
                                .epoch = epoch,
                                .address = memory_copy_text(""),
                                .is_here = is_own(self, heir, epoch),
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
                                .is_here = is_own(batch->replica, row->replica, row->epoch)};
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

const struct operation_kind operation_task_settle = {"task settle", false, run_settle_task};
