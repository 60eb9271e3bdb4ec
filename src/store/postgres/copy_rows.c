/* Rows of whole tables, for a copy. */
#include <stdlib.h>
#include <string.h>

#include "rows.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/memory.h"

#define COLUMNS_MOST 32
#define PAGE_ROWS 1000
#define TYPE_BIGINT 20 /* INT8OID, pg_type.dat */

/* A name that is a word elsewhere has another one here. */
static char *table_of(const char *table)
{
    return memory_format("taskgate_%s", strcmp(table, "approval_grant") == 0 ? "grant" : table);
}

static bool has_sequence(const char *columns)
{
    return str_starts_with(str_from(columns), STR("sequence,"));
}

static struct copy_value value_at(const PGresult *rows, int row, int column)
{
    bool is_number = PQftype(rows, column) == TYPE_BIGINT;
    return (struct copy_value){
        .is_number = is_number,
        .number = is_number ? row_number(rows, row, column) : 0,
        .text = is_number ? STR_EMPTY : row_bytes(rows, row, column),
    };
}

/* `*last` is the first value of the last row. */
static bool visit_rows(const PGresult *rows,
                       bool (*visit)(void *context, const struct copy_value *values), void *context,
                       int64_t *last)
{
    struct copy_value values[COLUMNS_MOST] = {{.is_number = false}};
    for (int i = 0; i < PQntuples(rows); i++) {
        for (int j = 0; j < PQnfields(rows) && j < COLUMNS_MOST; j++)
            values[j] = value_at(rows, i, j);
        *last = values[0].number;
        if (!visit(context, values))
            return false;
    }
    return true;
}

/* The large tables have a sequence: they come in pages. */
static bool read_rows(struct database *database, const char *table, const char *columns,
                      bool (*visit)(void *context, const struct copy_value *values), void *context)
{
    bool in_pages = has_sequence(columns), is_read = true, goes_on = true;
    char *name = table_of(table);
    char *sql = in_pages
                    ? memory_format("SELECT %s FROM %s WHERE sequence > $1 ORDER BY 1 LIMIT %d",
                                    columns, name, PAGE_ROWS)
                    : memory_format("SELECT %s FROM %s ORDER BY 1", columns, name);
    int64_t last = 0;
    while (is_read && goes_on) {
        PGresult *rows = in_pages ? connection_read_text(database, sql, VALUES(NUMBER(last)))
                                  : connection_read_text(database, sql, NO_VALUES);
        is_read = rows != NULL;
        goes_on = is_read && visit_rows(rows, visit, context, &last) && in_pages &&
                  PQntuples(rows) == PAGE_ROWS;
        PQclear(rows);
    }
    free(sql);
    free(name);
    return is_read;
}

static bool write_row(struct database *database, const char *table, const char *columns,
                      const struct copy_value *values, size_t count)
{
    struct value sent[COLUMNS_MOST];
    struct buffer sql;
    char *name = table_of(table);
    buffer_init(&sql);
    buffer_append_format(&sql, "INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE VALUES (", name,
                         columns);
    for (size_t i = 0; i < count && i < COLUMNS_MOST; i++) {
        buffer_append_format(&sql, i > 0 ? ", $%zu" : "$%zu", i + 1);
        sent[i] = values[i].is_number ? NUMBER(values[i].number) : STRING(values[i].text);
    }
    buffer_append(&sql, STR(")"));
    buffer_append_char(&sql, '\0');
    PGresult *done = connection_read_text(database, sql.bytes, sent, count);
    database->written++;
    PQclear(done);
    buffer_finish(&sql);
    free(name);
    return done != NULL;
}

static bool reminders(struct database *database,
                      bool (*visit)(void *context, const char *task_id, unsigned event,
                                    int64_t due_ms),
                      void *context)
{
    PGresult *rows =
        connection_read_text(database,
                             "SELECT id, event, due_ms FROM taskgate_reminder JOIN taskgate_task ON"
                             " taskgate_task.sequence = taskgate_reminder.task ORDER BY due_ms",
                             NO_VALUES);
    bool is_read = rows != NULL, goes_on = is_read;
    for (int i = 0; goes_on && i < PQntuples(rows); i++) {
        char *id = row_text(rows, i, 0);
        goes_on = visit(context, id, (unsigned)row_number(rows, i, 1), row_number(rows, i, 2));
        free(id);
    }
    PQclear(rows);
    return is_read;
}

static bool number_behind(struct database *database, const char *table)
{
    char *sql = memory_format("SELECT setval(pg_get_serial_sequence('taskgate_%s', 'sequence'),"
                              " coalesce(max(sequence), 0) + 1, false) FROM taskgate_%s",
                              table, table);
    PGresult *done = connection_read_text(database, sql, NO_VALUES);
    PQclear(done);
    free(sql);
    return done != NULL;
}

static bool finish(struct database *database)
{
    return number_behind(database, "sign_in") && number_behind(database, "grant") &&
           number_behind(database, "block") && number_behind(database, "definition") &&
           number_behind(database, "outbox_notice") && number_behind(database, "outbox_delivery");
}

const struct copy_rows postgres_copy_rows = {
    .read = read_rows,
    .write = write_row,
    .reminders = reminders,
    .finish = finish,
};
