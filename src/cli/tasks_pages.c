/* Pages of the list of tasks. */
#include "tasks_pages.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"

#include "options.h"

#define PAGE 100
/* A shorter beginning of an id is more likely a mistake. */
#define BEGINNING_MIN 4
/* A person does not look through more of them for one. */
#define SEARCHED_MAX 10000
#define WHOLE_ID 39   /* "tg_" and a UUID */
#define WHOLE_ULID 26 /* of a promoted call */

static void take_page(struct tasks_pages *pages, const struct buffer *body)
{
    struct str text = buffer_str(body), list = json_member(text, "tasks"), task;
    struct str cursor = json_member(text, "nextCursor");
    size_t position = 0;
    pages->bodies = memory_grow_array(pages->bodies, pages->body_count + 1, sizeof *pages->bodies);
    pages->bodies[pages->body_count++] = *body;
    while (json_next_element(list, &position, &task)) {
        pages->tasks = memory_grow_array(pages->tasks, pages->count + 1, sizeof *pages->tasks);
        pages->tasks[pages->count++] = task;
    }
    free(pages->cursor);
    pages->cursor = json_type(cursor) == JSON_STRING ? json_string_text(cursor, NULL) : NULL;
}

static int tasks_pages_read_page(struct tasks_pages *pages, struct admin_client *client,
                                 const char *query, size_t limit)
{
    struct buffer body;
    OWNED_BUFFER(path);
    buffer_init(&body);
    buffer_append_format(&path, "/api/v1/tasks?limit=%zu%s%s", limit < PAGE ? limit : PAGE,
                         *query ? "&" : "", query);
    if (pages->cursor) {
        OWNED char *cursor = admin_client_encode(client, pages->cursor);
        buffer_append_format(&path, "&cursor=%s", cursor);
    }
    OWNED char *text = buffer_take(&path, NULL);
    struct admin_request request = {.method = "GET", .path = text};
    int code = admin_client_send(client, &request, &body);
    if (code == CLI_DONE)
        take_page(pages, &body);
    else
        buffer_finish(&body);
    return code;
}

int tasks_pages_read(struct tasks_pages *pages, struct admin_client *client, const char *query,
                     size_t limit)
{
    size_t end = pages->count + limit;
    int code = CLI_DONE;
    while (code == CLI_DONE && pages->count < end) {
        code = tasks_pages_read_page(pages, client, query, end - pages->count);
        if (!pages->cursor)
            break;
    }
    return code;
}

void tasks_pages_finish(struct tasks_pages *pages)
{
    for (size_t i = 0; i < pages->body_count; i++)
        buffer_finish(&pages->bodies[i]);
    free(pages->bodies);
    free(pages->tasks);
    free(pages->cursor);
    *pages = (struct tasks_pages){0};
}

/* ---- the order ---- */

int64_t tasks_time(struct str task, const char *member)
{
    struct tm parts = {0};
    OWNED char *text = json_string_text(json_member(task, member), NULL);
    const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &parts) : NULL;
    int64_t ms = rest ? (int64_t)timegm(&parts) * 1000 : 0;
    if (rest && *rest == '.')
        ms += strtol(rest + 1, NULL, 10); /* the endpoint writes three digits */
    return ms;
}

/* INT64_MAX for a task that does not wait. */
static int64_t deadline_of(struct str task)
{
    bool waits = json_string_equals(json_member(task, "state"), STR("pending"));
    int64_t decide_by = waits ? tasks_time(task, "decideBy") : 0;
    return decide_by ? decide_by : INT64_MAX;
}

struct place {
    int64_t deadline;
    size_t index; /* as it was: qsort() need not keep the order of equals */
    struct str task;
};

static int compare_places(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    bool waits = a->deadline != INT64_MAX;
    if (a->deadline != b->deadline)
        return a->deadline < b->deadline ? -1 : 1;
    return (a->index < b->index) == waits ? 1 : -1; /* of two that wait the older one first */
}

void tasks_pages_sort(struct tasks_pages *pages)
{
    OWNED struct place *places = memory_alloc_array(pages->count, sizeof *places);
    for (size_t i = 0; i < pages->count; i++)
        places[i] = (struct place){deadline_of(pages->tasks[i]), i, pages->tasks[i]};
    if (pages->count > 1)
        qsort(places, pages->count, sizeof *places, compare_places);
    for (size_t i = 0; i < pages->count; i++)
        pages->tasks[i] = places[i].task;
}

/* ---- one by the beginning of its id ---- */

static bool tasks_pages_is_whole(const char *text)
{
    size_t length = strlen(text);
    return strncmp(text, "tg_", 3) == 0 ? length >= WHOLE_ID : length >= WHOLE_ULID;
}

/* The first that fits goes to *id. Returns how many fit. */
static size_t match(const struct tasks_pages *pages, const char *text, char **id)
{
    size_t found = 0;
    for (size_t i = 0; i < pages->count; i++) {
        OWNED char *own = json_string_text(json_member(pages->tasks[i], "id"), NULL);
        if (own && strncmp(own, text, strlen(text)) == 0 && found++ == 0)
            *id = memory_copy_text(own);
    }
    return found;
}

int tasks_find(struct admin_client *client, const char *text, char **id)
{
    struct tasks_pages pages = {0};
    size_t found = 0;
    int code = CLI_DONE;
    *id = NULL;
    if (!tasks_pages_is_whole(text) && strlen(text) >= BEGINNING_MIN) {
        code = tasks_pages_read(&pages, client, "", SEARCHED_MAX);
        found = match(&pages, text, id);
    }
    tasks_pages_finish(&pages);
    if (code == CLI_DONE && found > 1)
        code = options_complain("%s begins the ids of %zu tasks; write more of it", text, found);
    if (found == 0)
        *id = memory_copy_text(text);
    if (code != CLI_DONE) {
        free(*id);
        *id = NULL;
    }
    return code;
}
