/* Query parameters of GET /api/v1/tasks, one row each. */
#include "query.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/magic.h"

#define LIMIT_DEFAULT 20
#define LIMIT_MAX 100
#define CREATION_PREFIX "c"
#define DEADLINE_PREFIX "d"

static struct task_list_query *query_from(void *context)
{
    return MAGIC_CAST(struct task_list_query, TASK_LIST_QUERY_MAGIC, context);
}

static bool parse_states(void *context, struct str value, struct error *error)
{
    struct task_list_query *query = query_from(context);
    while (value.length > 0) {
        struct str name;
        enum task_state state;
        str_cut(value, ',', &name, &value);
        if (!task_state_parse(name, &state))
            return error_set(error, "state \"%.*s\" is not a state of a task", STR_ARGS(name));
        query->filter.states |= 1u << state;
    }
    return true;
}

static bool query_parse_limit(void *context, struct str value, struct error *error)
{
    struct task_list_query *query = query_from(context);
    uint64_t limit;
    if (!str_to_u64(value, &limit) || limit < 1 || limit > LIMIT_MAX)
        return error_set(error, "limit must be a number from 1 to %d", LIMIT_MAX);
    query->filter.limit = (size_t)limit;
    return true;
}

static bool query_parse_mine(void *context, struct str value, struct error *error)
{
    struct task_list_query *query = query_from(context);
    query->is_mine = str_equal(value, STR("true"));
    return query->is_mine || str_equal(value, STR("false")) ||
           error_set(error, "mine must be true or false");
}

static bool parse_sort(void *context, struct str value, struct error *error)
{
    struct task_list_query *query = query_from(context);
    bool is_by_deadline = str_equal(value, STR("decideBy"));
    query->filter.order = is_by_deadline ? STORE_BY_DECIDE_BY : STORE_BY_CREATION;
    return is_by_deadline || str_equal(value, STR("created")) ||
           error_set(error, "sort must be created or decideBy");
}

void query_cursor(const struct query_place *place, char cursor[QUERY_CURSOR_BYTES])
{
    if (place->order == STORE_BY_DECIDE_BY)
        snprintf(cursor, QUERY_CURSOR_BYTES, DEADLINE_PREFIX "%" PRIx64 ".%" PRIx64,
                 (uint64_t)place->decide_by_ms, (uint64_t)place->sequence);
    else
        snprintf(cursor, QUERY_CURSOR_BYTES, CREATION_PREFIX "%" PRIx64, (uint64_t)place->sequence);
}

bool query_read_hex(struct str digits, int64_t *number)
{
    uint64_t read = 0;
    for (size_t i = 0; i < digits.length; i++) {
        int digit = str_hex_digit(digits.bytes[i]);
        if (digit < 0 || i == 16)
            return false;
        read = read << 4 | (uint64_t)digit;
    }
    *number = (int64_t)(read & INT64_MAX);
    return digits.length > 0 && read > 0 && read <= INT64_MAX;
}

/* The row that such a cursor stands for. */
static bool query_read_cursor(struct str value, struct query_place *place, struct error *error)
{
    char canonical[QUERY_CURSOR_BYTES];
    bool is_by_deadline = str_starts_with(value, STR(DEADLINE_PREFIX));
    struct str digits = value, key = STR_EMPTY;
    if (value.length > 0)
        digits = str_slice(value.bytes + 1, value.length - 1);
    if (is_by_deadline)
        str_cut(digits, '.', &key, &digits);
    place->order = is_by_deadline ? STORE_BY_DECIDE_BY : STORE_BY_CREATION;
    place->sequence = place->decide_by_ms = 0;
    bool is_read = query_read_hex(digits, &place->sequence) &&
                   (!is_by_deadline || query_read_hex(key, &place->decide_by_ms));
    /* Only the output of query_cursor(): no second spelling of the same place. */
    query_cursor(place, canonical);
    if (!is_read || !str_equal(value, str_from(canonical)))
        return error_set(error, "cursor does not come from a list");
    return true;
}

/* Its order is compared with `sort` when all parameters are read. */
static bool query_parse_cursor(void *context, struct str value, struct error *error)
{
    struct task_list_query *query = query_from(context);
    struct query_place place;
    if (!query_read_cursor(value, &place, error))
        return false;
    query->cursor_order = place.order;
    query->filter.behind_sequence = place.sequence;
    query->filter.behind_decide_by_ms = place.decide_by_ms;
    return true;
}

static const struct query_parameter task_parameters[] = {
    {"state", 0, parse_states},
    {"source", offsetof(struct task_list_query, filter.source), NULL},
    {"tool", offsetof(struct task_list_query, filter.tool), NULL},
    {"limit", 0, query_parse_limit},
    {"cursor", 0, query_parse_cursor},
    {"workflow", offsetof(struct task_list_query, filter.workflow), NULL},
    {"principal", offsetof(struct task_list_query, filter.principal), NULL},
    {"q", offsetof(struct task_list_query, text), NULL},
    {"digest", offsetof(struct task_list_query, digest), NULL},
    {"mine", 0, query_parse_mine},
    {"sort", 0, parse_sort},
};
static const struct query_parameters of_tasks = {
    "this list",
    "state, source, tool, workflow, principal, digest, q, mine, sort, limit and cursor",
    task_parameters,
    sizeof task_parameters / sizeof *task_parameters,
};

bool query_next(struct str *text, struct str *key, struct str *raw)
{
    struct str parameter = STR_EMPTY;
    while (parameter.length == 0) {
        if (text->length == 0)
            return false;
        str_cut(*text, '&', &parameter, text);
    }
    str_cut(parameter, '=', key, raw);
    return true;
}

bool query_each(struct str text,
                bool (*read)(void *context, struct str key, struct str raw, struct error *error),
                void *context, struct error *error)
{
    struct str key, raw;
    while (query_next(&text, &key, &raw)) {
        if (!read(context, key, raw, error))
            return false;
    }
    return true;
}

bool query_parse_single(struct buffer *value, struct str text, const char *name,
                        struct error *error)
{
    struct str key, raw;
    while (query_next(&text, &key, &raw)) {
        if (!str_equal(key, str_from(name)))
            return error_set(error, "\"%.*s\" is not a parameter here; there is %s", STR_ARGS(key),
                             name);
        buffer_clear(value);
        if (!buffer_append_url_decoded(value, raw))
            return error_set(error, "the query is not well encoded");
    }
    return true;
}

bool query_read(struct buffer *value, struct str text, const char *name)
{
    size_t count = 0;
    struct str key, raw;
    while (query_next(&text, &key, &raw)) {
        if (str_equal(key, str_from(name)) &&
            (count++ > 0 || !buffer_append_url_decoded(value, raw)))
            return false;
    }
    return true;
}

static bool query_parse_parameter(const struct query_parameters *parameters, void *query,
                                  struct str name, struct str value, struct error *error)
{
    for (size_t i = 0; i < parameters->count; i++) {
        const struct query_parameter *row = &parameters->rows[i];
        if (!str_equal(name, str_from(row->name)))
            continue;
        if (row->parse)
            return row->parse(query, value, error);
        *(struct str *)(void *)((char *)query + row->text) = value;
        return true;
    }
    return error_set(error, "\"%.*s\" is not a parameter of %s; there are %s", STR_ARGS(name),
                     parameters->what, parameters->known);
}

bool query_parse_parameters(const struct query_parameters *parameters, void *query,
                            struct buffer *decoded, struct str text, struct error *error)
{
    struct str name, raw;
    ASSERT_NUMBERS(decoded->length, ==, 0);
    /* Decoding only shortens: reserved once, the buffer never moves under the values. */
    buffer_reserve(decoded, text.length);
    while (query_next(&text, &name, &raw)) {
        size_t start = decoded->length;
        if (!buffer_append_url_decoded(decoded, raw))
            return error_set(error, "the query is not well encoded");
        struct str value = str_slice(decoded->bytes + start, decoded->length - start);
        if (!query_parse_parameter(parameters, query, name, value, error))
            return false;
    }
    return true;
}

bool query_parse(struct task_list_query *query, struct str text, struct error *error)
{
    *query = (struct task_list_query){.magic = TASK_LIST_QUERY_MAGIC,
                                      .filter = {.limit = LIMIT_DEFAULT,
                                                 .most_argument_bytes = SIZE_MAX,
                                                 .most_bytes = QUERY_PAGE_BYTES_MAX}};
    buffer_init(&query->decoded);
    if (!query_parse_parameters(&of_tasks, query, &query->decoded, text, error))
        return false;
    return query->filter.behind_sequence == 0 || query->cursor_order == query->filter.order ||
           error_set(error, "cursor comes from a list in another order; repeat its sort");
}

void query_finish(struct task_list_query *query)
{
    buffer_finish(&query->decoded);
}

/* ---- lists of other rows ---- */

bool query_read_limit(struct str value, uint64_t most, uint64_t *limit, struct error *error)
{
    return (str_to_u64(value, limit) && *limit >= 1 && *limit <= most) ||
           error_set(error, "limit must be a whole number from 1 to %" PRIu64, most);
}

bool query_read_creation_cursor(struct str value, const char *what, int64_t *sequence,
                                struct error *error)
{
    struct query_place place;
    if (!query_read_cursor(value, &place, error))
        return false;
    *sequence = place.sequence;
    return place.order == STORE_BY_CREATION ||
           error_set(error, "cursor does not come from a list of %s", what);
}

struct lasting_reading {
    struct query_lasting *query;
};

static bool read_lasting(void *context, struct str key, struct str value, struct error *error)
{
    const struct lasting_reading *reading = context;
    struct query_lasting *query = reading->query;
    if (str_equal(key, STR("limit")))
        return query_read_limit(value, LIMIT_MAX, &query->limit, error);
    if (str_equal(key, STR("cursor")))
        return query_read_creation_cursor(value, query->what, &query->before_sequence, error);
    if (!str_equal(key, STR("state")))
        return error_set(error,
                         "\"%.*s\" is not a parameter here; there are state, limit and cursor",
                         STR_ARGS(key));
    query->in_force_only = str_equal(value, STR("active"));
    return query->in_force_only || error_set(error, "state may be active alone");
}

bool query_parse_lasting(struct query_lasting *query, struct str text, struct error *error)
{
    query->limit = LIMIT_DEFAULT;
    return query_each(text, read_lasting, &(struct lasting_reading){query}, error);
}
