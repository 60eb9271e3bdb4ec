/* Definitions as rows of one table. */
#include "definition_list.h"
#include "rows.h"

static void read_row(struct store_definition *definition, sqlite3_stmt *row, bool with_texts)
{
    *definition = (struct store_definition){
        .sequence = sqlite3_column_int64(row, 0),
        .id = database_take_text(row, 1),
        .source = database_take_text(row, 2),
        .kind = database_take_text(row, 3),
        .name = database_take_text(row, 4),
        .digest = database_take_text(row, 5),
        .accepted = database_take_text(row, 6),
        .counted = database_take_text(row, 7),
        .difference = database_take_text(row, 8),
        .flags = (unsigned)sqlite3_column_int64(row, 9),
        .is_changed = sqlite3_column_int64(row, 10) != 0,
        .at_ms = sqlite3_column_int64(row, 11),
        .text = with_texts ? database_take_text(row, 12) : NULL,
        .accepted_text = with_texts ? database_take_text(row, 13) : NULL,
    };
}

static bool read_rows(sqlite3_stmt *statement, struct definition_list *list, bool with_texts)
{
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW)
        read_row(definition_list_add(list), statement, with_texts);
    database_release(statement);
    return code == SQLITE_DONE;
}

/* The columns that change with each definition of the name. */
static int bind_present(sqlite3_stmt *row, int index, const struct store_definition *definition)
{
    database_bind_text(row, index++, definition->digest);
    database_bind_text(row, index++, definition->accepted);
    database_bind_text(row, index++, definition->counted);
    database_bind_text(row, index++, definition->difference);
    sqlite3_bind_int64(row, index++, definition->flags);
    sqlite3_bind_int64(row, index++, definition->is_changed);
    sqlite3_bind_int64(row, index++, definition->at_ms);
    database_bind_text(row, index++, definition->text);
    database_bind_text(row, index++, definition->accepted_text);
    return index;
}

static bool insert(struct database *database, const struct store_definition *definition)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_DEFINITION_INSERT);
    database_bind_text(row, 1, definition->id);
    database_bind_text(row, 2, definition->source);
    database_bind_text(row, 3, definition->kind);
    database_bind_text(row, 4, definition->name);
    bind_present(row, 5, definition);
    return database_run(row);
}

static bool update(struct database *database, const struct store_definition *definition)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_DEFINITION_UPDATE);
    database_bind_text(row, 1, definition->id);
    bind_present(row, 2, definition);
    return database_run(row);
}

static bool get(struct database *database, const char *id, struct definition_list *list)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_DEFINITION_GET);
    database_bind_text(row, 1, id);
    return read_rows(row, list, true);
}

static bool page(struct database *database, const struct store_definition_query *query,
                 struct definition_list *list)
{
    bool is_watched = query->changed_only || query->flagged_only;
    sqlite3_stmt *row = database_statement(database, is_watched ? STATEMENT_DEFINITION_PAGE_WATCHED
                                                                : STATEMENT_DEFINITION_PAGE);
    sqlite3_bind_int64(row, 1, query->after_sequence);
    database_bind_str(row, 2, query->source);
    database_bind_str(row, 3, query->kind);
    sqlite3_bind_int64(row, 4, query->changed_only);
    sqlite3_bind_int64(row, 5, query->flagged_only);
    sqlite3_bind_int64(row, 6, (int64_t)query->limit);
    database_bind_str(row, 7, query->name);
    return read_rows(row, list, false);
}

static bool count(struct database *database, const char *source, int64_t *count)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_DEFINITION_COUNT);
    database_bind_text(row, 1, source);
    return rows_read_number(row, count);
}

const struct definition_rows sqlite_definition_rows = {
    .insert = insert,
    .update = update,
    .get = get,
    .page = page,
    .count = count,
};
