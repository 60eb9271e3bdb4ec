/* The statements as the store uses them. */
#include "row.h"

#include <stdlib.h>

#include "backend.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"

static const struct store_backend *backend_of(struct database *database)
{
    return *(const struct store_backend *const *)(void *)database;
}

bool rows_write(struct database *database, enum statement which, const struct value *values,
                size_t count)
{
    ASSERT_NUMBERS(count, <=, VALUES_MAX);
    return backend_of(database)->write(database, which, values, count);
}

bool rows_insert(struct database *database, enum statement which, const struct record *record,
                 const void *from)
{
    struct value values[VALUES_MAX];
    return rows_write(database, which, values, record_write(record, from, values));
}

bool rows_purge(struct database *database, enum statement which, const struct value *values,
                size_t count, int64_t *purged)
{
    ASSERT_NUMBERS(count, <=, VALUES_MAX);
    return backend_of(database)->change(database, which, values, count, purged);
}

enum row_result rows_change(struct database *database, enum statement which,
                            const struct value *values, size_t count)
{
    int64_t changed;
    if (!backend_of(database)->change(database, which, values, count, &changed))
        return ROW_FAILED;
    return changed > 0 ? ROW_FOUND : ROW_ABSENT;
}

bool rows_read(struct database *database, enum statement which, const struct value *values,
               size_t count, row_visitor *visit, void *context)
{
    ASSERT_NUMBERS(count, <=, VALUES_MAX);
    return backend_of(database)->read(database, which, values, count, visit, context);
}

bool rows_read_text(struct database *database, const char *sql, const struct value *values,
                    size_t count, row_visitor *visit, void *context)
{
    ASSERT_NUMBERS(count, <=, VALUES_MAX);
    return backend_of(database)->read_text(database, sql, values, count, visit, context);
}

#define PAGE_ROWS 1000

struct paging {
    const struct row_pages *pages;
    row_visitor *visit;
    void *context;
    int64_t last;
    size_t count; /* of this page */
    bool goes_on;
};

static bool visit_row_of_page(void *context, const struct value *row)
{
    struct paging *paging = context;
    paging->last = row[paging->pages->sequence].number;
    paging->count++;
    paging->goes_on = paging->visit(paging->context, row);
    return paging->goes_on;
}

bool rows_read_pages(struct database *database, const struct row_pages *pages, row_visitor *visit,
                     void *context)
{
    struct paging paging = {pages, visit, context, .last = pages->after, .goes_on = true};
    struct value values[VALUES_MAX];
    bool is_read;
    ASSERT_NUMBERS(pages->count, <=, VALUES_MAX - 2);
    for (size_t i = 0; i < pages->count; i++)
        values[2 + i] = pages->values[i];
    do {
        paging.count = 0;
        values[0] = NUMBER(paging.last);
        values[1] = NUMBER(PAGE_ROWS);
        is_read = pages->sql ? rows_read_text(database, pages->sql, values, 2 + pages->count,
                                              visit_row_of_page, &paging)
                             : rows_read(database, pages->which, values, 2 + pages->count,
                                         visit_row_of_page, &paging);
    } while (is_read && paging.goes_on && paging.count == PAGE_ROWS);
    return is_read;
}

bool rows_compare_rows(struct database *database)
{
    return backend_of(database)->compares_rows;
}

struct listing {
    struct record_list *list;
};

static bool add_record(void *context, const struct value *row)
{
    const struct listing *listing = context;
    record_read(listing->list->record, row, record_list_add(listing->list));
    return true;
}

bool rows_list(struct database *database, enum statement which, const struct value *values,
               size_t count, struct record_list *list)
{
    return rows_read(database, which, values, count, add_record, &(struct listing){list});
}

static bool row_add_id(void *context, const struct value *row)
{
    id_list_add(context, row->text);
    return true;
}

bool rows_ids(struct database *database, enum statement which, const struct value *values,
              size_t count, struct id_list *list)
{
    return rows_read(database, which, values, count, row_add_id, list);
}

struct finding {
    const struct record *record;
    void *into;
    bool is_there;
};

static bool take_record(void *context, const struct value *row)
{
    struct finding *finding = context;
    if (finding->record)
        record_read(finding->record, row, finding->into);
    finding->is_there = true;
    return false;
}

enum row_result rows_find(struct database *database, enum statement which,
                          const struct value *values, size_t count, const struct record *record,
                          void *into)
{
    struct finding finding = {record, into, false};
    if (!rows_read(database, which, values, count, take_record, &finding))
        return ROW_FAILED;
    return finding.is_there ? ROW_FOUND : ROW_ABSENT;
}

enum row_result rows_find_new(struct database *database, enum statement which,
                              const struct value *values, size_t count, const struct record *record,
                              void **found)
{
    ASSERT_NUMBERS(record->bytes, >, 0);
    void *into = memory_alloc(record->bytes);
    enum row_result result = rows_find(database, which, values, count, record, into);
    *found = result == ROW_FOUND ? into : NULL;
    if (result != ROW_FOUND)
        free(into);
    return result;
}

enum row_result rows_exist(struct database *database, enum statement which,
                           const struct value *values, size_t count)
{
    return rows_find(database, which, values, count, NULL, NULL);
}

struct first {
    int64_t number;
    bool is_there;
};

static bool take_number(void *context, const struct value *row)
{
    *(struct first *)context = (struct first){row->number, true};
    return false;
}

enum row_result rows_find_number(struct database *database, enum statement which,
                                 const struct value *values, size_t count, int64_t *number)
{
    struct first first = {.number = INT64_MAX};
    bool read = rows_read(database, which, values, count, take_number, &first);
    *number = first.number;
    return !read ? ROW_FAILED : first.is_there ? ROW_FOUND : ROW_ABSENT;
}

bool rows_number(struct database *database, enum statement which, const struct value *values,
                 size_t count, int64_t *number)
{
    return rows_find_number(database, which, values, count, number) == ROW_FOUND;
}
