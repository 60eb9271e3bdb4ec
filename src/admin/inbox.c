/*
 * GET /api/v1/inbox: the calls that wait, those that are alike in one row. The store's thread hands
 * each of them, without its long texts, to inbox_look(); the page is made from what was kept here.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/error.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/notify/brief.h"
#include "taskgate/task/task.h"

#include "internal.h"
#include "pending_reply.h"
#include "query.h"
#include "reply.h"
#include "task_filter.h"
#include "task_json.h"

/* A row: the calls of one key, or one call of the stack that is asked for. */
struct entry {
    struct task *first; /* one reference: the one that runs out first */
    int64_t key;        /* its place in the order that is asked for: the least one of its calls */
    int64_t until;      /* that of `first` by expiry */
    struct row_stack stack;
};

/* ---- the query ---- */

/* The query of the inbox: which calls, in what order, and the page. Query parameters of GET
 * /api/v1/inbox, one row each. */

enum inbox_order { INBOX_BY_EXPIRY, INBOX_BY_AGE, INBOX_BY_RISK, INBOX_ORDER_COUNT };

/* A row in an order: its key there, and the id of its call. */
struct inbox_place {
    enum inbox_order order;
    int64_t key;
    char id[TASK_ID_BYTES]; /* "": in front of all */
};

/* The texts point into `decoded`; an empty one asks for nothing. */
struct inbox_query {
    struct str source, tool, workflow, principal, risk, text, stack;
    bool is_mine;
    enum inbox_order order;
    uint64_t limit;
    struct inbox_place behind;
    struct buffer decoded;
};

/* The cursor of the page behind that row: opaque to clients. */
#define INBOX_CURSOR_BYTES (TASK_ID_BYTES + 20)

#define LIMIT_MAX 200

static const struct {
    const char *name;
    char prefix; /* of cursors */
} orders[INBOX_ORDER_COUNT] = {
    [INBOX_BY_EXPIRY] = {"expiry", 'e'},
    [INBOX_BY_AGE] = {"age", 'a'},
    [INBOX_BY_RISK] = {"risk", 'r'},
};

static bool parse_order(void *context, struct str value, struct error *error)
{
    struct inbox_query *query = context;
    for (enum inbox_order order = 0; order < INBOX_ORDER_COUNT; order++) {
        if (!str_equal(value, str_from(orders[order].name)))
            continue;
        query->order = order;
        return true;
    }
    return error_set(error, "sort must be expiry, age or risk");
}

static bool parse_risk(void *context, struct str value, struct error *error)
{
    struct inbox_query *query = context;
    query->risk = value;
    return str_equal(value, STR("low")) || str_equal(value, STR("medium")) ||
           str_equal(value, STR("high")) || error_set(error, "risk must be low, medium or high");
}

static bool inbox_query_parse_mine(void *context, struct str value, struct error *error)
{
    struct inbox_query *query = context;
    query->is_mine = str_equal(value, STR("true"));
    return query->is_mine || str_equal(value, STR("false")) ||
           error_set(error, "mine must be true or false");
}

static bool inbox_query_parse_limit(void *context, struct str value, struct error *error)
{
    struct inbox_query *query = context;
    return query_read_limit(value, LIMIT_MAX, &query->limit, error);
}

static void inbox_cursor(const struct inbox_place *place, char cursor[INBOX_CURSOR_BYTES])
{
    snprintf(cursor, INBOX_CURSOR_BYTES, "%c%" PRIx64 ".%s", orders[place->order].prefix,
             (uint64_t)place->key, place->id);
}

/* Its order is compared with `sort` when all parameters are read. */
static bool inbox_query_parse_cursor(void *context, struct str value, struct error *error)
{
    struct inbox_query *query = context;
    struct inbox_place *place = &query->behind;
    char canonical[INBOX_CURSOR_BYTES];
    struct str key, id;
    int64_t number = 0;
    bool is_good = value.length > 0 && str_cut(value, '.', &key, &id) && key.length > 1 &&
                   id.length > 0 && id.length < sizeof place->id &&
                   query_read_hex(str_slice(key.bytes + 1, key.length - 1), &number);
    while (is_good && place->order < INBOX_ORDER_COUNT &&
           orders[place->order].prefix != *value.bytes)
        place->order++;
    if (is_good && place->order < INBOX_ORDER_COUNT) {
        place->key = number;
        snprintf(place->id, sizeof place->id, "%.*s", STR_ARGS(id));
        inbox_cursor(place, canonical);
        if (str_equal(value, str_from(canonical)))
            return true;
    }
    return error_set(error, "cursor does not come from the inbox");
}

static const struct query_parameter parameters[] = {
    {"source", offsetof(struct inbox_query, source), NULL},
    {"tool", offsetof(struct inbox_query, tool), NULL},
    {"workflow", offsetof(struct inbox_query, workflow), NULL},
    {"principal", offsetof(struct inbox_query, principal), NULL},
    {"q", offsetof(struct inbox_query, text), NULL},
    {"stack", offsetof(struct inbox_query, stack), NULL},
    {"risk", 0, parse_risk},
    {"mine", 0, inbox_query_parse_mine},
    {"sort", 0, parse_order},
    {"limit", 0, inbox_query_parse_limit},
    {"cursor", 0, inbox_query_parse_cursor},
};
static const struct query_parameters of_inbox = {
    "the inbox",
    "source, tool, workflow, principal, risk, q, mine, stack, sort, limit and cursor",
    parameters,
    sizeof parameters / sizeof *parameters,
};

/* Reads "tool=delete&sort=age". false with `error` for what is unknown or ill-formed. Always call
 * inbox_query_finish() afterwards. */
static bool inbox_query_parse(struct inbox_query *query, struct str text, struct error *error)
{
    *query = (struct inbox_query){.limit = LIMIT_MAX};
    buffer_init(&query->decoded);
    if (!query_parse_parameters(&of_inbox, query, &query->decoded, text, error))
        return false;
    return !*query->behind.id || query->behind.order == query->order ||
           error_set(error, "cursor comes from another order; repeat its sort");
}

static void inbox_query_finish(struct inbox_query *query)
{
    buffer_finish(&query->decoded);
}

/* ---- the calls ---- */

struct inbox {
    uint32_t magic; /* INBOX_LIST_MAGIC */
    struct pending_reply *pending;
    struct inbox_query query;
    struct task_view view;
    struct entry **entries;
    size_t count, capacity;
    struct map *stacks; /* entries by their keys; borrowed */
    int64_t now_ms;
    int64_t waiting;
    size_t matching;
    size_t start, end; /* the page */
    size_t checked;    /* so many of its rows can be written */
};
#define INBOX_LIST_MAGIC 0x1b0c5ac4

static struct inbox *inbox_from(void *context)
{
    return MAGIC_CAST(struct inbox, INBOX_LIST_MAGIC, context);
}

static void empty(struct inbox *inbox)
{
    for (size_t i = 0; i < inbox->count; i++) {
        task_unref(inbox->entries[i]->first);
        free(inbox->entries[i]);
    }
    map_destroy(inbox->stacks, NULL);
    inbox->stacks = NULL;
    inbox->count = inbox->matching = 0;
}

static void inbox_destroy(struct inbox *inbox)
{
    empty(inbox);
    free(inbox->entries);
    inbox_query_finish(&inbox->query);
    pending_reply_destroy(inbox->pending);
    MAGIC_CLEAR(inbox);
    free(inbox);
}

/* ---- which calls ---- */

static bool inbox_has_text(const struct inbox *inbox, const struct task *task)
{
    const char *const texts[] = {task->id, task->tool, task->source, task->principal,
                                 task->workflow};
    OWNED_BUFFER(all);
    struct brief brief;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        buffer_append_text(&all, texts[i]);
        buffer_append_char(&all, '\n');
    }
    if (brief_is_current(task, inbox->view.config)) {
        brief_read(&brief, str_from(task->brief));
        json_decode_string(brief.summary, &all);
        buffer_append_char(&all, '\n');
        buffer_append(&all, brief.arguments);
    }
    buffer_append_char(&all, '\0');
    return search_finds(all.bytes, inbox->query.text);
}

static bool is_of_stack(const struct inbox *inbox, const struct task *task)
{
    char key[DIGEST_HEX_BYTES];
    if (inbox->query.stack.length == 0)
        return true;
    row_json_key(task, key);
    return str_equal(inbox->query.stack, str_from(key));
}

/* Conditions that are not in the store's statement. */
static bool inbox_matches(const struct inbox *inbox, const struct task *task, struct str risk)
{
    const struct inbox_query *query = &inbox->query;
    return (query->risk.length == 0 || str_equal(query->risk, risk)) && is_of_stack(inbox, task) &&
           (!query->is_mine || task_filter_waits_for(task, &inbox->view)) &&
           (query->text.length == 0 || inbox_has_text(inbox, task));
}

/* ---- rows ---- */

#define RISK_STEP (INT64_C(1) << 61)

static int64_t inbox_key_of(enum inbox_order order, const struct task *task, struct str risk)
{
    int64_t until_ms = task->decide_by_ms > 0 ? task->decide_by_ms : RISK_STEP - 1;
    if (order == INBOX_BY_AGE)
        return task->created_ms;
    if (order == INBOX_BY_EXPIRY)
        return until_ms;
    int64_t rank = str_equal(risk, STR("high")) ? 0 : str_equal(risk, STR("medium")) ? 1 : 2;
    return rank * RISK_STEP + until_ms;
}

static int inbox_compare(int64_t key, const char *id, int64_t other_key, const char *other_id)
{
    return key != other_key ? (key < other_key ? -1 : 1) : strcmp(id, other_id);
}

static int compare_entries(const void *one, const void *other)
{
    const struct entry *a = *(struct entry *const *)one, *b = *(struct entry *const *)other;
    return inbox_compare(a->key, a->first->id, b->key, b->first->id);
}

static struct entry *add_entry(struct inbox *inbox)
{
    struct entry *entry = memory_alloc(sizeof *entry);
    if (inbox->count == inbox->capacity) {
        inbox->capacity = inbox->capacity ? 2 * inbox->capacity : 64;
        inbox->entries = memory_grow_array(inbox->entries, inbox->capacity, sizeof(struct entry *));
    }
    ASSERT_NUMBERS(inbox->count, <, inbox->capacity);
    return inbox->entries[inbox->count++] = entry;
}

/* The row of the task's stack. */
static struct entry *inbox_entry_of(struct inbox *inbox, const struct task *task, struct str risk)
{
    OWNED_BUFFER(name);
    if (inbox->query.stack.length > 0)
        return add_entry(inbox);
    row_json_name(&name, task, risk);
    struct entry *entry = map_get(inbox->stacks, buffer_str(&name));
    if (!entry) {
        entry = add_entry(inbox);
        map_put(inbox->stacks, buffer_str(&name), entry);
    }
    return entry;
}

static void inbox_take(struct inbox *inbox, struct task *task, struct str risk)
{
    struct entry *entry = inbox_entry_of(inbox, task, risk);
    int64_t until = inbox_key_of(INBOX_BY_EXPIRY, task, risk);
    int64_t key = inbox_key_of(inbox->query.order, task, risk);
    entry->stack.count++;
    if (!entry->first || key < entry->key)
        entry->key = key;
    if (entry->first && inbox_compare(entry->until, entry->first->id, until, task->id) < 0)
        return;
    task_unref(entry->first);
    entry->first = task_ref(task);
    entry->until = until;
}

/* On the store's thread. */
static bool inbox_look(void *context, const struct task *task)
{
    struct inbox *inbox = inbox_from(context);
    struct task_change due;
    if (!task) {
        empty(inbox);
        inbox->stacks = map_create();
        return false;
    }
    if (task_due(task, inbox->now_ms, &due))
        return false;
    struct str risk = brief_risk(task).risk;
    if (inbox_matches(inbox, task, risk)) {
        inbox->matching++;
        inbox_take(inbox, (struct task *)task, risk);
    }
    return false; /* the store keeps none */
}

/* ---- the page ---- */

static void choose_page(struct inbox *inbox)
{
    const struct inbox_place *behind = &inbox->query.behind;
    if (inbox->count > 0)
        qsort(inbox->entries, inbox->count, sizeof(struct entry *), compare_entries);
    while (*behind->id && inbox->start < inbox->count &&
           inbox_compare(inbox->entries[inbox->start]->key, inbox->entries[inbox->start]->first->id,
                         behind->key, behind->id) <= 0)
        inbox->start++;
    size_t left = inbox->count - inbox->start;
    inbox->end = inbox->start + (left < inbox->query.limit ? left : inbox->query.limit);
    inbox->checked = inbox->start;
}

static void inbox_write_page(const struct inbox *inbox, struct buffer *body)
{
    buffer_append(body, STR("{\"rows\":["));
    for (size_t i = inbox->start; i < inbox->end; i++) {
        struct entry *entry = inbox->entries[i];
        if (i > inbox->start)
            buffer_append_char(body, ',');
        row_json_key(entry->first, entry->stack.key);
        row_json_write(body, entry->first, &entry->stack, &inbox->view);
    }
    buffer_append_format(body, "],\"waiting\":%" PRId64 ",\"matching\":%zu,\"nextCursor\":",
                         inbox->waiting, inbox->matching);
    if (inbox->end < inbox->count) {
        const struct entry *last = inbox->entries[inbox->end - 1];
        struct inbox_place place = {.order = inbox->query.order, .key = last->key};
        char cursor[INBOX_CURSOR_BYTES];
        memcpy(place.id, last->first->id, sizeof place.id);
        inbox_cursor(&place, cursor);
        buffer_append_format(body, "\"%s\"}", cursor);
    } else {
        buffer_append(body, STR("null}"));
    }
}

static void inbox_answer_page(struct inbox *inbox)
{
    struct http_exchange *exchange = pending_reply_take(inbox->pending);
    OWNED_BUFFER(body);
    inbox_write_page(inbox, &body);
    if (exchange)
        reply_json(exchange, 200, &body);
    inbox_destroy(inbox);
}

static void inbox_answer_failed(struct inbox *inbox, const struct store_reply *reply)
{
    struct http_exchange *exchange = pending_reply_take(inbox->pending);
    if (exchange)
        pending_reply_with_task(exchange, reply, inbox->pending);
    inbox_destroy(inbox);
}

static void check_rows(struct inbox *inbox);

/* Only the brief stays: a page of whole tasks could fill the memory. One that has gone meanwhile
 * has an empty row. */
static void inbox_take_whole(void *context, const struct store_reply *reply)
{
    struct inbox *inbox = inbox_from(context);
    if (reply->status == STORE_FAILED) {
        inbox_answer_failed(inbox, reply);
        return;
    }
    if (reply->status == STORE_OK) {
        struct task *listed = inbox->entries[inbox->checked]->first;
        OWNED_BUFFER(brief);
        brief_write(&brief, reply->task, inbox->view.config);
        task_set_text(&listed->brief, buffer_str(&brief));
    }
    inbox->checked++;
    check_rows(inbox);
}

/* A task of an older version has no brief, and that of another hides what was hidden then: such
 * ones are read whole, one after the other. */
static void check_rows(struct inbox *inbox)
{
    const struct admin *admin = inbox->pending->admin;
    while (inbox->checked < inbox->end) {
        const struct task *task = inbox->entries[inbox->checked]->first;
        if (!brief_is_current(task, inbox->view.config)) {
            store_task_get(admin->store, str_from(task->id),
                           (struct store_call){admin->loop, inbox_take_whole, inbox});
            return;
        }
        inbox->checked++;
    }
    inbox_answer_page(inbox);
}

static void inbox_answer_list(void *context, const struct store_reply *reply)
{
    struct inbox *inbox = inbox_from(context);
    if (reply->status != STORE_OK) {
        inbox_answer_failed(inbox, reply);
        return;
    }
    inbox->waiting = reply->waiting;
    choose_page(inbox);
    check_rows(inbox);
}

void inbox_list(const struct request *request)
{
    struct inbox_query query;
    struct error error = {""};
    if (!inbox_query_parse(&query, http_query(request->exchange), &error)) {
        reply_error(request->exchange, REPLY_INVALID_REQUEST, error.message, NULL);
        inbox_query_finish(&query);
        return;
    }
    struct inbox *inbox = memory_alloc(sizeof *inbox);
    MAGIC_SET(inbox, INBOX_LIST_MAGIC);
    inbox->query = query;
    inbox->pending = pending_reply_create(request);
    inbox->view = pending_reply_view(inbox->pending);
    inbox->now_ms = clock_now_ms();
    const struct store_task_query waiting = {.is_of_waiting = true,
                                             .source = query.source,
                                             .tool = query.tool,
                                             .workflow = query.workflow,
                                             .principal = query.principal,
                                             .limit = 1,
                                             .most_bytes = SIZE_MAX,
                                             .accepts = inbox_look,
                                             .context = inbox};
    store_task_list(request->admin->store, &waiting,
                    (struct store_call){request->admin->loop, inbox_answer_list, inbox});
}
