/* Query parameters of GET /api/v1/inbox, one row each. */
#include "inbox_query.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "query.h"

#define LIMIT_MAX 200

static const struct {
    const char *name;
    char prefix; /* of cursors */
} orders[INBOX_ORDER_COUNT] = {
    [INBOX_BY_EXPIRY] = {"expiry", 'e'},
    [INBOX_BY_AGE] = {"age", 'a'},
    [INBOX_BY_RISK] = {"risk", 'r'},
};

static bool parse_order(struct inbox_query *query, struct str value, struct error *error)
{
    for (enum inbox_order order = 0; order < INBOX_ORDER_COUNT; order++) {
        if (!str_equal(value, str_from(orders[order].name)))
            continue;
        query->order = order;
        return true;
    }
    return error_set(error, "sort must be expiry, age or risk");
}

static bool parse_risk(struct inbox_query *query, struct str value, struct error *error)
{
    query->risk = value;
    return str_equal(value, STR("low")) || str_equal(value, STR("medium")) ||
           str_equal(value, STR("high")) || error_set(error, "risk must be low, medium or high");
}

static bool inbox_query_parse_mine(struct inbox_query *query, struct str value, struct error *error)
{
    query->is_mine = str_equal(value, STR("true"));
    return query->is_mine || str_equal(value, STR("false")) ||
           error_set(error, "mine must be true or false");
}

static bool inbox_query_parse_limit(struct inbox_query *query, struct str value,
                                    struct error *error)
{
    return query_read_limit(value, LIMIT_MAX, &query->limit, error);
}

void inbox_cursor(const struct inbox_place *place, char cursor[INBOX_CURSOR_BYTES])
{
    snprintf(cursor, INBOX_CURSOR_BYTES, "%c%" PRIx64 ".%s", orders[place->order].prefix,
             (uint64_t)place->key, place->id);
}

/* Its order is compared with `sort` when all parameters are read. */
static bool inbox_query_parse_cursor(struct inbox_query *query, struct str value,
                                     struct error *error)
{
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

/* A text is taken as it is. */
static const struct {
    const char *name;
    size_t text; /* its place, without `parse` */
    bool (*parse)(struct inbox_query *query, struct str value, struct error *error);
} parameters[] = {
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

struct reading {
    struct inbox_query *query;
};

static bool inbox_query_parse_parameter(void *context, struct str name, struct str raw,
                                        struct error *error)
{
    const struct reading *reading = context;
    struct inbox_query *query = reading->query;
    size_t start = query->decoded.length;
    if (!query_decode(&query->decoded, raw))
        return error_set(error, "the query is not well encoded");
    struct str value = str_slice(query->decoded.bytes + start, query->decoded.length - start);
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
        if (!str_equal(name, str_from(parameters[i].name)))
            continue;
        if (parameters[i].parse)
            return parameters[i].parse(query, value, error);
        *(struct str *)(void *)((char *)query + parameters[i].text) = value;
        return true;
    }
    return error_set(error,
                     "\"%.*s\" is not a parameter of the inbox; there are source, tool, workflow, "
                     "principal, risk, q, mine, stack, sort, limit and cursor",
                     STR_ARGS(name));
}

bool inbox_query_parse(struct inbox_query *query, struct str text, struct error *error)
{
    *query = (struct inbox_query){.limit = LIMIT_MAX};
    buffer_init(&query->decoded);
    /* Decoding only shortens: reserved once, the buffer never moves under the values. */
    buffer_reserve(&query->decoded, text.length);
    if (!query_each(text, inbox_query_parse_parameter, &(struct reading){query}, error))
        return false;
    return !*query->behind.id || query->behind.order == query->order ||
           error_set(error, "cursor comes from another order; repeat its sort");
}

void inbox_query_finish(struct inbox_query *query)
{
    buffer_finish(&query->decoded);
}
