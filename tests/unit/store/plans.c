#include "plans.h"

#include <ctype.h>
#include <string.h>

#include "harness.h"
#include "task_rows.h"

void plans_write(const struct dialect *dialect, const struct plans_row *own, size_t own_count,
                 struct plans_row *all)
{
    for (unsigned i = 0; i < STATEMENT_COUNT + own_count; i++) {
        struct buffer sql;
        buffer_init(&sql);
        statement_write(dialect, i, &sql);
        all[i].name =
            i < STATEMENT_COUNT ? statement_name((enum statement)i) : own[i - STATEMENT_COUNT].name;
        all[i].text = buffer_take(&sql, NULL);
    }
}

size_t plans_find(const struct plans_row *rows, size_t count, const char *text)
{
    size_t i = 0;
    for (; i < count; i++) {
        size_t length = strlen(rows[i].name);
        if (strncmp(text, rows[i].name, length) == 0 && !isalnum((unsigned char)text[length]) &&
            text[length] != '_')
            break;
    }
    return i;
}

void plans_of_statements(const struct plans_row *rows, size_t count,
                         void (*judge)(const char *name, const char *sql))
{
    static const char *const plain[] = {"SELECT", "INSERT", "UPDATE", "DELETE", "WITH"};
    size_t judged = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < PLANS_COUNT(plain); k++) {
            if (strncmp(rows[i].text, plain[k], strlen(plain[k])) != 0)
                continue;
            judge(rows[i].name, rows[i].text);
            judged++;
        }
    }
    ck_assert_uint_gt(judged, 100);
}

/* ---- lists, whose statements are built ---- */

static bool visit(void *context, struct task *task, int64_t sequence)
{
    (void)context, (void)sequence;
    task_unref(task);
    return true;
}

void plans_run_lists(const struct store_backend *backend, struct database *database,
                     void (*ran)(const char *name))
{
    for (unsigned bits = 0; bits < 64; bits++) {
        const struct store_task_query query = {
            .owner = bits & 1 ? STR("a") : STR_EMPTY,
            .session = bits & 2 ? STR("s") : STR_EMPTY,
            .states = bits & 4 ? 5 : 0,
            .order = bits & 8 ? STORE_BY_DECIDE_BY : 0,
            .behind_sequence = bits & 16 ? 7 : 0,
            .behind_decide_by_ms = bits & 16 ? 7 : 0,
            .tool = bits & 32 ? STR("t") : STR_EMPTY,
            .without_promoted = bits & 32,
        };
        if ((bits & 8) && (bits & 3)) /* nobody asks for these */
            continue;
        ck_assert(task_rows_list(database, &query, 10, visit, NULL));
        ran("a list");
    }
}

/* ---- commands ---- */

static bool visit_row(void *context, const struct value *row)
{
    (void)context, (void)row;
    return true;
}

void plans_run_commands(struct database *database, void (*ran)(const char *name))
{
    ck_assert(rows_read(database, STATEMENT_REMINDER_ALL, NO_VALUES, visit_row, NULL));
    ran("the copy of reminders");
}
