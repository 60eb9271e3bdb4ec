/* Reading a task with what became of the others of its tool. */
#include "store_internal.h"
#include "tally.h"
#include "task_operations.h"
#include "taskgate/core/memory.h"

static bool run_get(struct batch *batch, struct operation *operation)
{
    struct store_reply *reply = &operation->reply;
    enum row_result result = task_operations_load(batch, str_from(operation->id), &reply->task);
    if (result == ROW_ABSENT)
        reply->status = STORE_NOT_FOUND;
    if (result == ROW_FOUND)
        reply->tally = tally_read(batch, reply->task);
    return result == ROW_ABSENT || reply->tally;
}

const struct operation_kind operation_task_tally = {"get with tally", false, run_get};

void store_task_get_with_tally(struct store *store, struct str id, struct store_call call)
{
    struct operation *operation = operation_create(&operation_task_tally, call);
    operation->id = memory_copy_str(id);
    store_queue(store, operation);
}
