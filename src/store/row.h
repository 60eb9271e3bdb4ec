/* Rows, as the store reads and writes them by the statements of statements.h. */
#pragma once

#include "record.h"

/* A connection. Each backend defines its own; it begins with a pointer to the backend. */
struct database;

enum row_result { ROW_FOUND, ROW_ABSENT, ROW_FAILED };

/* false, and ROW_FAILED: the database has failed. */

bool rows_write(struct database *database, enum statement which, const struct value *values,
                size_t count);
/* Writes the record as a new row. */
bool rows_insert(struct database *database, enum statement which, const struct record *record,
                 const void *from);
/* ROW_ABSENT: no row has changed. */
enum row_result rows_change(struct database *database, enum statement which,
                            const struct value *values, size_t count);
/* Removes rows, and counts them. */
bool rows_purge(struct database *database, enum statement which, const struct value *values,
                size_t count, int64_t *purged);
bool rows_read(struct database *database, enum statement which, const struct value *values,
               size_t count, row_visitor *visit, void *context);
/* The same for a text that varies, as statements.h has them. */
bool rows_read_text(struct database *database, const char *sql, const struct value *values,
                    size_t count, row_visitor *visit, void *context);
/* Rows that are read in pages, because libpq holds a whole result. Behind the last sequence that
 * was read, and the most rows, the statement has the further values. */
struct row_pages {
    enum statement which;
    const char *sql;   /* in its place; NULL: none */
    unsigned sequence; /* the column */
    int64_t after;     /* the first page begins behind it */
    const struct value *values;
    size_t count;
};
/* To the end, or until the visitor ends it. */
bool rows_read_pages(struct database *database, const struct row_pages *pages, row_visitor *visit,
                     void *context);
/* Whether an index finds "(a, b) > (?1, ?2)". */
bool rows_compare_rows(struct database *database);
/* Adds all rows to the list, which the caller finishes, also when this fails. */
bool rows_list(struct database *database, enum statement which, const struct value *values,
               size_t count, struct record_list *list);
bool rows_ids(struct database *database, enum statement which, const struct value *values,
              size_t count, struct id_list *list);
/* Reads the first row. ROW_ABSENT: there is none. */
enum row_result rows_find(struct database *database, enum statement which,
                          const struct value *values, size_t count, const struct record *record,
                          void *into);
/* The same with a structure of its own, which the caller frees with record_destroy(). */
enum row_result rows_find_new(struct database *database, enum statement which,
                              const struct value *values, size_t count, const struct record *record,
                              void **found);
/* Whether there is a row. */
enum row_result rows_exist(struct database *database, enum statement which,
                           const struct value *values, size_t count);
/* The number in the first column of the first row; INT64_MAX where it is NULL, or there is no row.
 */
enum row_result rows_find_number(struct database *database, enum statement which,
                                 const struct value *values, size_t count, int64_t *number);
/* The same. false also where there is no row. */
bool rows_number(struct database *database, enum statement which, const struct value *values,
                 size_t count, int64_t *number);
