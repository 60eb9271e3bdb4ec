/* The rights on the tables. */
#include "rights.h"

#include "migrations.h"

#define DML "SELECT, INSERT, UPDATE, DELETE"

/* The names as they are written in a statement, and whether the role may name the tables at all.
 * Fails where there is no such role. */
static const char about_role[] = "SELECT quote_ident($1::text), quote_ident(current_schema()),"
                                 " has_schema_privilege($1::text::name, current_schema(), 'USAGE')";

/* Rows of identity columns, triggers and notifications need no right of their own. */
bool rights_write(struct database *database, const char *role, struct buffer *sql)
{
    PGresult *rows = connection_read_text(database, about_role, VALUES(TEXT(role)));
    if (!rows)
        return false;
    struct str name = row_bytes(rows, 0, 0), schema = row_bytes(rows, 0, 1);
    if (row_number(rows, 0, 2) == 0)
        buffer_append_format(sql, "GRANT USAGE ON SCHEMA %.*s TO %.*s;\n", STR_ARGS(schema),
                             STR_ARGS(name));
    buffer_append_text(sql, "GRANT " DML " ON ");
    migrations_write_tables(schema, sql);
    buffer_append_format(sql, " TO %.*s;\n", STR_ARGS(name));
    buffer_append_format(
        sql, "ALTER DEFAULT PRIVILEGES IN SCHEMA %.*s GRANT " DML " ON TABLES TO %.*s;\n",
        STR_ARGS(schema), STR_ARGS(name));
    PQclear(rows);
    return true;
}

bool rights_write_head(struct database *database, struct buffer *sql)
{
    PGresult *rows =
        connection_read_text(database, "SELECT quote_ident(current_schema())", NO_VALUES);
    if (!rows)
        return false;
    buffer_append_format(sql, "BEGIN;\nSET LOCAL search_path TO %.*s;\n",
                         STR_ARGS(row_bytes(rows, 0, 0)));
    PQclear(rows);
    return true;
}

bool rights_grant(struct database *database, const char *role)
{
    struct buffer sql;
    buffer_init(&sql);
    bool done = rights_write(database, role, &sql);
    if (done) {
        buffer_append_char(&sql, '\0');
        done = connection_script(database, buffer_str(&sql).bytes);
        if (!done && connection_lacks_right(database))
            error_suffix(&database->error, "run it with the role that owns the tables");
    }
    buffer_finish(&sql);
    return done;
}
