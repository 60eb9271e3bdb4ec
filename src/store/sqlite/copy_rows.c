/* Rows of whole tables, for a copy. */
#include <stdlib.h>

#include "rows.h"
#include "taskgate/core/memory.h"

#define COLUMNS_MOST 32

/* A statement of its own: names come from a table of the code. */
static sqlite3_stmt *prepare(struct database *database, char *sql)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database->handle, sql, -1, &statement, NULL) != SQLITE_OK)
        statement = NULL;
    free(sql);
    return statement;
}

static struct copy_value value_at(sqlite3_stmt *row, int column)
{
    bool is_number = sqlite3_column_type(row, column) == SQLITE_INTEGER;
    return (struct copy_value){
        .is_number = is_number,
        .number = is_number ? sqlite3_column_int64(row, column) : 0,
        .text = is_number ? STR_EMPTY : database_column_bytes(row, column),
    };
}

static bool read_rows(struct database *database, const char *table, const char *columns,
                      bool (*visit)(void *context, const struct copy_value *values), void *context)
{
    sqlite3_stmt *row =
        prepare(database, memory_format("SELECT %s FROM %s ORDER BY 1", columns, table));
    struct copy_value values[COLUMNS_MOST];
    int code = row ? SQLITE_ROW : SQLITE_ERROR, count = row ? sqlite3_column_count(row) : 0;
    while (code == SQLITE_ROW && (code = sqlite3_step(row)) == SQLITE_ROW) {
        for (int i = 0; i < count && i < COLUMNS_MOST; i++)
            values[i] = value_at(row, i);
        if (!visit(context, values))
            break;
    }
    sqlite3_finalize(row);
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

static bool write_row(struct database *database, const char *table, const char *columns,
                      const struct copy_value *values, size_t count)
{
    struct buffer marks;
    buffer_init(&marks);
    for (size_t i = 0; i < count; i++)
        buffer_append_text(&marks, i > 0 ? ", ?" : "?");
    sqlite3_stmt *row = prepare(database, memory_format("INSERT INTO %s (%s) VALUES (%.*s)", table,
                                                        columns, STR_ARGS(buffer_str(&marks))));
    buffer_finish(&marks);
    for (size_t i = 0; row && i < count; i++) {
        if (values[i].is_number)
            sqlite3_bind_int64(row, (int)i + 1, values[i].number);
        else
            database_bind_str(row, (int)i + 1, values[i].text);
    }
    bool done = row && sqlite3_step(row) == SQLITE_DONE;
    sqlite3_finalize(row);
    return done;
}

static bool reminders(struct database *database,
                      bool (*visit)(void *context, const char *task_id, unsigned event,
                                    int64_t due_ms),
                      void *context)
{
    sqlite3_stmt *row =
        prepare(database, memory_copy_text("SELECT id, event, due_ms FROM reminder JOIN task ON"
                                           " task.sequence = reminder.task ORDER BY task, event"));
    int code = row ? SQLITE_ROW : SQLITE_ERROR;
    while (code == SQLITE_ROW && (code = sqlite3_step(row)) == SQLITE_ROW) {
        char *id = database_take_text(row, 0);
        bool goes_on =
            visit(context, id, (unsigned)sqlite3_column_int(row, 1), sqlite3_column_int64(row, 2));
        free(id);
        if (!goes_on)
            break;
    }
    sqlite3_finalize(row);
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

/* The database numbers by the largest that there is. */
static bool finish(struct database *database)
{
    (void)database;
    return true;
}

const struct copy_rows sqlite_copy_rows = {
    .read = read_rows,
    .write = write_row,
    .reminders = reminders,
    .finish = finish,
};
