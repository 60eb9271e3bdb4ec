/* Grants: the list of them, and revoking one. */
#include "internal.h"

#include <stdlib.h>

#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/store/grants.h"

#include "decision_body.h"
#include "grant_json.h"
#include "pending_reply.h"
#include "query.h"
#include "reply.h"

#define LIMIT_DEFAULT 20
#define LIMIT_MAX 100

/* ---- the list ---- */

static void answer_list(void *context, const struct store_reply *reply)
{
    struct pending_reply *pending = pending_reply_from(context);
    struct http_exchange *exchange = pending_reply_take(pending);
    struct buffer body;
    buffer_init(&body);
    buffer_append_text(&body, "{\"grants\":[");
    for (size_t i = 0; i < reply->grant_count; i++) {
        if (i > 0)
            buffer_append_char(&body, ',');
        grant_json_write(&body, &reply->grants[i], pending->snapshot->config);
    }
    buffer_append_text(&body, "],\"nextCursor\":");
    if (reply->has_more) {
        char cursor[QUERY_CURSOR_BYTES];
        struct query_place last = {STORE_BY_CREATION, reply->last_sequence, 0};
        query_cursor(&last, cursor);
        buffer_append_format(&body, "\"%s\"}", cursor);
    } else {
        buffer_append_text(&body, "null}");
    }
    if (exchange && reply->status == STORE_OK)
        reply_json(exchange, 200, &body);
    else if (exchange)
        pending_reply_with_task(exchange, reply, pending);
    buffer_finish(&body);
    pending_reply_destroy(pending);
}

struct list_query {
    bool in_force_only;
    int64_t before_sequence;
    uint64_t limit;
};

static bool read_parameter(void *context, struct str key, struct str value, struct error *error)
{
    struct list_query *query = context;
    if (str_equal(key, STR("state"))) {
        query->in_force_only = str_equal(value, STR("active"));
        return query->in_force_only || error_set(error, "state may be active alone");
    }
    if (str_equal(key, STR("limit")))
        return (str_to_u64(value, &query->limit) && query->limit >= 1 &&
                query->limit <= LIMIT_MAX) ||
               error_set(error, "limit must be a whole number from 1 to %d", LIMIT_MAX);
    if (str_equal(key, STR("cursor"))) {
        struct query_place place;
        if (!query_read_cursor(value, &place, error))
            return false;
        query->before_sequence = place.sequence;
        return place.order == STORE_BY_CREATION ||
               error_set(error, "cursor does not come from a list of grants");
    }
    return error_set(error, "\"%.*s\" is not a parameter here; there are state, limit and cursor",
                     STR_ARGS(key));
}

void grants_list(const struct request *request)
{
    struct list_query query = {.limit = LIMIT_DEFAULT};
    struct error error = {""};
    if (!query_each(http_query(request->exchange), read_parameter, &query, &error)) {
        reply_error(request->exchange, REPLY_INVALID_REQUEST, error.message, NULL);
        return;
    }
    struct pending_reply *pending = pending_reply_create(request);
    store_grant_list(request->admin->store, query.in_force_only, query.before_sequence,
                     (size_t)query.limit,
                     (struct store_call){request->admin->loop, answer_list, pending});
}

/* ---- revoking ---- */

static void answer_conflict(struct http_exchange *exchange, const struct store_grant *grant)
{
    char *message = memory_format("the grant has ended already: %s", grant->end_cause);
    reply_error(exchange, REPLY_CONFLICT, message, "ended");
    free(message);
}

static void answer_revoked(void *context, const struct store_reply *reply)
{
    struct pending_reply *pending = pending_reply_from(context);
    struct http_exchange *exchange = pending_reply_take(pending);
    struct buffer body;
    if (reply->status == STORE_OK)
        log_info("Grant revoked", LOG_TEXT("grant", reply->grants[0].id),
                 LOG_TEXT("by", pending->who->person.name), LOG_TEXT("reason", pending->reason));
    if (exchange && reply->status == STORE_OK) {
        buffer_init(&body);
        grant_json_write(&body, &reply->grants[0], pending->snapshot->config);
        reply_json(exchange, 200, &body);
        buffer_finish(&body);
    } else if (exchange && reply->status == STORE_CONFLICT) {
        answer_conflict(exchange, &reply->grants[0]);
    } else if (exchange && reply->status == STORE_NOT_FOUND) {
        reply_error(exchange, REPLY_NOT_FOUND, "there is no grant with this id", NULL);
    } else if (exchange) {
        pending_reply_with_task(exchange, reply, pending);
    }
    pending_reply_destroy(pending);
}

void grants_revoke(const struct request *request)
{
    struct decision_body body;
    if (!decision_body_read(request, false, &body))
        return;
    struct pending_reply *pending = pending_reply_create(request);
    pending->reason = body.reason;
    store_grant_revoke(request->admin->store, request->id, request->who->person.name,
                       pending->reason,
                       (struct store_call){request->admin->loop, answer_revoked, pending});
}
