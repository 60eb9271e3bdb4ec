/* Definitions as rows of one table. */
#include "definition_list.h"
#include "rows.h"

static bool take_rows(PGresult *rows, struct definition_list *list, bool with_texts)
{
    for (int i = 0; rows && i < PQntuples(rows); i++)
        *definition_list_add(list) = (struct store_definition){
            .sequence = row_number(rows, i, 0),
            .id = row_text(rows, i, 1),
            .source = row_text(rows, i, 2),
            .kind = row_text(rows, i, 3),
            .name = row_text(rows, i, 4),
            .digest = row_text(rows, i, 5),
            .accepted = row_text(rows, i, 6),
            .counted = row_text(rows, i, 7),
            .difference = row_text(rows, i, 8),
            .flags = (unsigned)row_number(rows, i, 9),
            .is_changed = row_number(rows, i, 10) != 0,
            .at_ms = row_number(rows, i, 11),
            .text = with_texts ? row_text(rows, i, 12) : NULL,
            .accepted_text = with_texts ? row_text(rows, i, 13) : NULL,
        };
    PQclear(rows);
    return rows != NULL;
}

/* The columns that change with each definition of the name. */
#define PRESENT(definition)                                                                        \
    TEXT((definition)->digest), TEXT((definition)->accepted), TEXT((definition)->counted),         \
        TEXT((definition)->difference), NUMBER((definition)->flags),                               \
        NUMBER((definition)->is_changed), NUMBER((definition)->at_ms), TEXT((definition)->text),   \
        TEXT((definition)->accepted_text)

static bool insert(struct database *database, const struct store_definition *definition)
{
    return connection_write(database, STATEMENT_DEFINITION_INSERT,
                            VALUES(TEXT(definition->id), TEXT(definition->source),
                                   TEXT(definition->kind), TEXT(definition->name),
                                   PRESENT(definition)));
}

static bool update(struct database *database, const struct store_definition *definition)
{
    return connection_write(database, STATEMENT_DEFINITION_UPDATE,
                            VALUES(TEXT(definition->id), PRESENT(definition)));
}

static bool get(struct database *database, const char *id, struct definition_list *list)
{
    return take_rows(connection_read(database, STATEMENT_DEFINITION_GET, VALUES(TEXT(id))), list,
                     true);
}

static bool page(struct database *database, const struct store_definition_query *query,
                 struct definition_list *list)
{
    bool is_watched = query->changed_only || query->flagged_only;
    return take_rows(
        connection_read(
            database, is_watched ? STATEMENT_DEFINITION_PAGE_WATCHED : STATEMENT_DEFINITION_PAGE,
            VALUES(NUMBER(query->after_sequence), STRING(query->source), STRING(query->kind),
                   NUMBER(query->changed_only), NUMBER(query->flagged_only),
                   NUMBER((int64_t)query->limit), STRING(query->name))),
        list, false);
}

static bool count(struct database *database, const char *source, int64_t *count)
{
    return rows_take_number(
        connection_read(database, STATEMENT_DEFINITION_COUNT, VALUES(TEXT(source))), count);
}

const struct definition_rows postgres_definition_rows = {
    .insert = insert,
    .update = update,
    .get = get,
    .page = page,
    .count = count,
};
