/* Lists of tasks, for people and for programs. */
#include "tasks_list.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/visible.h"

#include "options.h"
#include "tasks.h"
#include "tasks_pages.h"
#include "terminal.h"

#define LIMIT_DEFAULT 20
#define LIMIT_MAX 100
/* Every state but pending. */
#define OTHER_STATES "approved,executing,completed,failed,cancelled,rejected,expired"
/* All that wait are read, or else the most urgent one may be on a later page. */
#define WAITING_MAX 100000

/* The query of the filters, with this state; for a page of the endpoint with `limit` and `cursor`.
 * The caller frees. */
static char *build_query(struct admin_client *client, const struct tasks_filters *filters,
                         const char *state, bool is_page)
{
    const struct {
        const char *name, *value;
    } parts[] = {
        {"state", state},
        {"source", filters->source},
        {"tool", filters->tool},
        {"limit", is_page ? filters->limit : NULL},
        {"cursor", is_page ? filters->cursor : NULL},
    };
    struct buffer query;
    buffer_init(&query);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!parts[i].value)
            continue;
        char *value = admin_client_encode(client, parts[i].value);
        buffer_append_format(&query, "%s%s=%s", query.length > 0 ? "&" : "", parts[i].name, value);
        free(value);
    }
    return query.length > 0 ? buffer_take(&query, NULL) : memory_copy_text("");
}

static int tasks_list_print_page(struct admin_client *client, const struct tasks_filters *filters)
{
    struct buffer body, text;
    char *query = build_query(client, filters, filters->state, true);
    char *path = memory_format("/api/v1/tasks%s%s", *query ? "?" : "", query);
    struct admin_request request = {.method = "GET", .path = path};
    buffer_init(&body);
    buffer_init(&text);
    int code = admin_client_send(client, &request, &body);
    if (code == CLI_DONE) {
        visible_append_json(&text, buffer_str(&body));
        buffer_append_char(&text, '\n');
        code = terminal_write(&text) ? CLI_DONE : CLI_FAILURE;
    }
    buffer_finish(&text);
    buffer_finish(&body);
    free(path);
    free(query);
    return code;
}

static int tasks_list_read_state(struct tasks_pages *pages, struct admin_client *client,
                                 const struct tasks_filters *filters, const char *state,
                                 size_t limit)
{
    char *query = build_query(client, filters, state, false);
    int code = tasks_pages_read(pages, client, query, limit);
    free(query);
    return code;
}

/* Up to `limit` tasks to show. Without a filter by state those that wait come first, all of them.
 */
static int tasks_list_read_tasks(struct tasks_pages *pages, struct admin_client *client,
                                 const struct tasks_filters *filters, size_t limit)
{
    int code;
    if (filters->cursor) {
        pages->cursor = memory_copy_text(filters->cursor);
        return tasks_list_read_state(pages, client, filters,
                                     filters->state ? filters->state : OTHER_STATES, limit);
    }
    if (filters->state && strcmp(filters->state, "pending") != 0)
        code = tasks_list_read_state(pages, client, filters, filters->state, limit);
    else
        code = tasks_list_read_state(pages, client, filters, "pending", WAITING_MAX);
    if (code == CLI_DONE && !filters->state && pages->count < limit)
        code = tasks_list_read_state(pages, client, filters, OTHER_STATES, limit - pages->count);
    tasks_pages_sort(pages);
    return code;
}

static int print_table(const struct tasks_pages *pages, size_t limit)
{
    struct buffer text;
    size_t shown = pages->count < limit ? pages->count : limit;
    const struct tasks_table table = {pages->tasks, shown, clock_now_ms(), isatty(STDOUT_FILENO)};
    buffer_init(&text);
    if (shown > 0)
        tasks_append_table(&text, &table);
    else
        buffer_append(&text, STR("No tasks.\n"));
    if (pages->count > shown)
        buffer_append_format(&text, "\n%zu more wait: --limit %d\n", pages->count - shown,
                             LIMIT_MAX);
    else if (pages->cursor)
        buffer_append_format(&text, "\nThere are older ones: --cursor %s\n", pages->cursor);
    bool written = terminal_write(&text);
    buffer_finish(&text);
    return written ? CLI_DONE : CLI_FAILURE;
}

static bool read_limit(const char *text, size_t *limit)
{
    uint64_t number = LIMIT_DEFAULT;
    bool good =
        !text || (str_to_u64(str_from(text), &number) && number >= 1 && number <= LIMIT_MAX);
    if (!good)
        options_complain("--limit must be a number from 1 to %d", LIMIT_MAX);
    *limit = (size_t)number;
    return good;
}

int tasks_print_list(struct admin_client *client, const struct tasks_filters *filters)
{
    struct tasks_pages pages = {0};
    size_t limit;
    if (filters->json)
        return tasks_list_print_page(client, filters);
    if (!read_limit(filters->limit, &limit))
        return CLI_USAGE;
    int code = tasks_list_read_tasks(&pages, client, filters, limit);
    if (code == CLI_DONE)
        code = print_table(&pages, limit);
    tasks_pages_finish(&pages);
    return code;
}
