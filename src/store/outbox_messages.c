/* Messages that endpoints keep of tasks, as those who look at them there see them. */
#include "operation.h"
#include "taskgate/core/memory.h"

#define MOST_OF_TASK 100

static bool read_messages(struct operation *operation, sqlite3_stmt *row)
{
    struct store_message *messages = NULL;
    size_t count = 0, capacity = 0;
    int code;
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        if (count == capacity) {
            capacity = capacity ? 2 * capacity : 16;
            messages = memory_grow_array(messages, capacity, sizeof *messages);
        }
        messages[count++] = (struct store_message){
            .target = database_take_text(row, 0),
            .task_id = database_take_text(row, 1),
            .reference = database_take_text(row, 2),
            .seen = database_take_text(row, 3),
        };
    }
    database_release(row);
    operation->reply.messages = messages;
    operation->reply.message_count = count;
    return code == SQLITE_DONE;
}

static bool run_messages(struct batch *batch, struct operation *operation)
{
    sqlite3_stmt *row = database_statement(batch->database, STATEMENT_OUTBOX_MESSAGES);
    database_bind_text(row, 1, operation->id);
    sqlite3_bind_int64(row, 2, (int64_t)operation->limit);
    return read_messages(operation, row);
}

static bool run_messages_of(struct batch *batch, struct operation *operation)
{
    sqlite3_stmt *row = database_statement(batch->database, STATEMENT_OUTBOX_MESSAGES_OF);
    database_bind_text(row, 1, operation->id);
    sqlite3_bind_int64(row, 2, MOST_OF_TASK);
    return read_messages(operation, row);
}

static bool run_see(struct batch *batch, struct operation *operation)
{
    sqlite3_stmt *row = database_statement(batch->database, STATEMENT_OUTBOX_SEE);
    database_bind_text(row, 1, operation->id);
    database_bind_text(row, 2, operation->source);
    database_bind_text(row, 3, operation->reason);
    return database_run(row);
}

const struct operation_kind operation_outbox_messages = {"outbox messages", false, run_messages};
const struct operation_kind operation_outbox_messages_of = {"outbox messages of a task", false,
                                                            run_messages_of};
const struct operation_kind operation_outbox_see = {"outbox see", true, run_see};
