/* Writing and reading the audit trail. */
#include "audit.h"

#include <stdlib.h>

#include "taskgate/core/memory.h"

bool audit_append(struct batch *batch, const struct task *task, const char *event, const char *from,
                  struct audit_actor actor, const char *reason)
{
    sqlite3_stmt *row = database_statement(batch->database, STATEMENT_AUDIT_INSERT);
    sqlite3_bind_int64(row, 1, task->updated_ms);
    database_bind_text(row, 2, task->id);
    database_bind_text(row, 3, event);
    database_bind_text(row, 4, from);
    database_bind_text(row, 5, task_state_name(task->state));
    database_bind_text(row, 6, actor.kind);
    database_bind_text(row, 7, actor.name);
    database_bind_text(row, 8, reason);
    database_bind_text(row, 9, task->decision);
    return database_run(row);
}

static struct store_audit_entry read_entry(sqlite3_stmt *row)
{
    return (struct store_audit_entry){
        .sequence = sqlite3_column_int64(row, 0),
        .at_ms = sqlite3_column_int64(row, 1),
        .task_id = database_take_text(row, 2),
        .event = database_take_text(row, 3),
        .from_state = database_take_text(row, 4),
        .to_state = database_take_text(row, 5),
        .actor_kind = database_take_text(row, 6),
        .actor_name = database_take_text(row, 7),
        .reason = database_take_text(row, 8),
    };
}

static bool run_list(struct batch *batch, struct operation *operation)
{
    sqlite3_stmt *row = database_statement(batch->database, STATEMENT_AUDIT_LIST);
    database_bind_text(row, 1, operation->id);
    struct store_audit_entry *entries = NULL;
    size_t count = 0, capacity = 0;
    int code;
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        if (count == capacity) {
            capacity = capacity ? 2 * capacity : 8;
            entries = memory_grow_array(entries, capacity, sizeof *entries);
        }
        entries[count++] = read_entry(row);
    }
    database_release(row);
    operation->reply.audit = entries;
    operation->reply.audit_count = count;
    return code == SQLITE_DONE;
}

const struct operation_kind operation_audit_list = {"audit list", false, run_list};
