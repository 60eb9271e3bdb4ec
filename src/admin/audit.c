/* The audit trail, page by page. Behaviour 15.4. */
#include "internal.h"

#include "pending_reply.h"
#include "query.h"
#include "reply.h"
#include "taskgate/core/owned.h"

#define LIMIT_DEFAULT 100
#define LIMIT_MAX 1000

static void write_start(struct buffer *body, const struct store_audit_page *page)
{
    if (page->has_start)
        store_anchor_write(body, &page->start);
    else
        buffer_append_text(body, "null");
}

static void audit_write_page(struct buffer *body, const struct store_audit_page *page,
                             bool with_arguments)
{
    buffer_append_text(body, "{\"entries\":[");
    buffer_append(body, str_slice(page->rows, page->rows_length));
    buffer_append_text(body, "],\"nextAfter\":");
    if (page->has_more)
        buffer_append_format(body, "%lld", (long long)page->last_sequence);
    else
        buffer_append_text(body, "null");
    buffer_append_text(body, ",\"start\":");
    write_start(body, page);
    if (with_arguments)
        buffer_append_format(body, ",\"arguments\":{%s}", page->kept ? page->kept : "");
    buffer_append_char(body, '}');
}

static void audit_answer_page(void *context, const struct store_reply *reply)
{
    struct pending_reply *pending = pending_reply_from(context);
    struct http_exchange *exchange = pending_reply_take(pending);
    if (exchange && reply->status == STORE_OK) {
        OWNED_BUFFER(body);
        audit_write_page(&body, reply->audit_page, pending->with_arguments);
        reply_json(exchange, 200, &body);
    } else if (exchange) {
        reply_error(exchange, REPLY_UNAVAILABLE, "the database does not answer, see the log", NULL);
    }
    pending_reply_destroy(pending);
}

struct page_query {
    uint64_t after, limit;
    bool with_arguments;
};

static bool audit_read_number(struct str text, const char *name, uint64_t most, uint64_t *number,
                              struct error *error)
{
    return (str_to_u64(text, number) && *number <= most) ||
           error_set(error, "%s is not a whole number from 0 to %llu", name,
                     (unsigned long long)most);
}

static bool audit_read_parameter(void *context, struct str key, struct str value,
                                 struct error *error)
{
    struct page_query *query = context;
    if (str_equal(key, STR("after")))
        return audit_read_number(value, "after", INT64_MAX, &query->after, error);
    if (str_equal(key, STR("limit")))
        return audit_read_number(value, "limit", LIMIT_MAX, &query->limit, error) &&
               (query->limit > 0 || error_set(error, "limit is at least 1"));
    if (str_equal(key, STR("arguments"))) {
        query->with_arguments = str_equal(value, STR("true"));
        return query->with_arguments || str_equal(value, STR("false")) ||
               error_set(error, "arguments is neither true nor false");
    }
    return error_set(error,
                     "\"%.*s\" is not a parameter here; there are after, limit and arguments",
                     STR_ARGS(key));
}

void audit_list(const struct request *request)
{
    struct page_query query = {.after = 0, .limit = LIMIT_DEFAULT};
    struct error error = {""};
    if (!query_each(http_query(request->exchange), audit_read_parameter, &query, &error)) {
        reply_error(request->exchange, REPLY_INVALID_REQUEST, error.message, NULL);
        return;
    }
    struct pending_reply *pending = pending_reply_create(request);
    pending->with_arguments = query.with_arguments;
    store_audit_page(request->admin->store, (int64_t)query.after, (size_t)query.limit,
                     query.with_arguments,
                     (struct store_call){request->admin->loop, audit_answer_page, pending});
}
