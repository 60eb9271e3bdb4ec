/* Shared by the tests of plans in either database: statements, lists and commands to walk. */
#pragma once

#include <stddef.h>

#include "backend.h"
#include "statement.h"

/* A statement with its SQL, or an exception with the bound of what it reads. */
struct plans_row {
    const char *name, *text;
};
#define PLANS_COUNT(array) (sizeof(array) / sizeof *(array))

/* All statements of a database: into `all`, from enum statement on, with its further ones. The
 * texts live as long as the test. */
void plans_write(const struct dialect *dialect, const struct plans_row *own, size_t own_count,
                 struct plans_row *all);
/* The place of the row whose name is the first word of `text`; `count` if there is none. */
size_t plans_find(const struct plans_row *rows, size_t count, const char *text);
/* Judges every row that has a plan. */
void plans_of_statements(const struct plans_row *rows, size_t count,
                         void (*judge)(const char *name, const char *sql));
/* Runs lists in all combinations of holder, states, order and place; `ran` is called behind each.
 */
void plans_run_lists(const struct store_backend *backend, struct database *database,
                     void (*ran)(const char *name));
/* Runs what commands read beside a gateway. */
void plans_run_commands(struct database *database, void (*ran)(const char *name));
