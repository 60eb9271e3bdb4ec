/* Blocks: the list of them, making one, and lifting it. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/config/duration.h"
#include "taskgate/core/visible.h"
#include "taskgate/gateway/blocks.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"

#include "body.h"
#include "pending_reply.h"
#include "reply.h"

#define SHORTEST_MS INT64_C(60000)
#define LONGEST_MS (INT64_C(30) * 86400000)

static void blocks_write_block(struct buffer *out, const struct store_block *block)
{
    buffer_append_char(out, '{');
    json_add_text(out, "id", block->id);
    json_add_text(out, "scope", block->scope);
    json_add_text(out, "source", block->source);
    json_add_text(out, "principal", block->principal);
    json_add_text(out, "task", block->task_id);
    json_add_text(out, "reason", block->reason);
    json_add_text(out, "by", block->person);
    json_add_time(out, "createdAt", block->created_ms);
    json_add_time(out, "until", block->until_ms);
    json_add_time(out, "endedAt", block->ended_ms);
    json_add_text_or_null(out, "endedBy", block->ended_by);
    buffer_append_char(out, '}');
}

/* ---- the list ---- */

static void blocks_write_one(struct buffer *out, const struct store_reply *reply, size_t i,
                             const struct pending_reply *pending)
{
    (void)pending;
    blocks_write_block(out, &reply->blocks[i]);
}

static void blocks_answer_list(void *context, const struct store_reply *reply)
{
    pending_reply_with_page(pending_reply_from(context), reply,
                            &(struct pending_page){"blocks", reply->block_count, blocks_write_one});
}

void blocks_list(const struct request *request)
{
    pending_reply_list(request, "blocks", store_block_list, blocks_answer_list);
}

/* ---- making and lifting ---- */

static void answer_block(struct pending_reply *pending, const struct store_reply *reply, int status,
                         const char *unknown)
{
    struct http_exchange *exchange = pending_reply_take(pending);
    struct buffer body;
    if (reply->status == STORE_OK) /* calls are judged by it before the answer says so */
        blocks_put(&reply->blocks[0]);
    if (exchange && reply->status == STORE_OK) {
        buffer_init(&body);
        blocks_write_block(&body, &reply->blocks[0]);
        reply_json(exchange, status, &body);
        buffer_finish(&body);
    } else if (exchange && reply->status == STORE_LIMIT_TOTAL) {
        reply_error(exchange, REPLY_LIMITED, "there are too many blocks: lift some", NULL);
    } else if (exchange && reply->status == STORE_CONFLICT) {
        reply_error(exchange, REPLY_CONFLICT, "the block has ended already", "ended");
    } else if (exchange && reply->status == STORE_NOT_FOUND) {
        reply_error(exchange, REPLY_NOT_FOUND, unknown, NULL);
    } else if (exchange) {
        pending_reply_with_task(exchange, reply, pending);
    }
    pending_reply_destroy(pending);
}

static void blocks_answer_created(void *context, const struct store_reply *reply)
{
    answer_block(pending_reply_from(context), reply, 201, "there is no task with this id");
}

static void answer_lifted(void *context, const struct store_reply *reply)
{
    answer_block(pending_reply_from(context), reply, 200, "there is no block with this id");
}

/* Owned by the reader's caller, also where it fails. */
struct block_body {
    char *task, *scope, *duration, *reason;
};

static bool blocks_read_text(struct str value, const char *name, char **text, struct error *error)
{
    free(*text);
    *text = json_plain_text(value);
    return *text || error_set(error, "%s must be a string", name);
}

static bool blocks_read_members(struct str body, struct block_body *read, struct error *error)
{
    size_t position = 0;
    struct str key, value;
    if (!json_check(body, NULL) || json_type(body) != JSON_OBJECT)
        return error_set(error, "the body must be a JSON object");
    while (json_next_member(body, &position, &key, &value)) {
        bool is_good =
            body_key_is(key, "task")    ? blocks_read_text(value, "task", &read->task, error)
            : body_key_is(key, "scope") ? blocks_read_text(value, "scope", &read->scope, error)
            : body_key_is(key, "for")   ? blocks_read_text(value, "for", &read->duration, error)
            : body_key_is(key, "reason")
                ? decision_body_read_reason(value, &read->reason, error)
                : error_set(error, "the body may have task, scope, for and reason alone");
        if (!is_good)
            return false;
    }
    return (read->task && read->duration) || error_set(error, "task and for must be there");
}

static bool read_wish(const struct block_body *read, struct store_block_wish *wish,
                      struct error *error)
{
    struct error ignored;
    wish->task_id = str_from(read->task);
    wish->reason = read->reason;
    wish->scope = read->scope ? store_block_scope_of(str_from(read->scope)) : STORE_BLOCK_OWNER;
    if (wish->scope == STORE_BLOCK_SCOPES)
        return error_set(error, "scope may be owner, client or source");
    return (duration_parse(str_from(read->duration), &wish->for_ms, &ignored) &&
            wish->for_ms >= SHORTEST_MS && wish->for_ms <= LONGEST_MS) ||
           error_set(error, "for must be a duration from 1m to 30d");
}

void blocks_create(const struct request *request)
{
    struct block_body read = {NULL};
    struct store_block_wish wish = {.person = request->who->person.name};
    struct error error = {""};
    if (!body_is_json(request, false))
        return;
    if (!blocks_read_members(http_body(request->exchange), &read, &error) ||
        !read_wish(&read, &wish, &error)) {
        reply_error(request->exchange, REPLY_INVALID_REQUEST, error.message, NULL);
    } else if (!read.reason || !visible_has_content(str_from(read.reason))) {
        reply_error(request->exchange, REPLY_REASON_REQUIRED, "a block needs a reason", NULL);
    } else {
        struct pending_reply *pending = pending_reply_create(request);
        store_block_create(
            request->admin->store, &wish,
            (struct store_call){request->admin->loop, blocks_answer_created, pending});
    }
    free(read.task);
    free(read.scope);
    free(read.duration);
    free(read.reason);
}

void blocks_lift(const struct request *request)
{
    struct decision_body body;
    if (!decision_body_read(request, false, &body))
        return;
    struct pending_reply *pending = pending_reply_create(request);
    pending->reason = body.reason;
    pending->shown_digest = body.shown_digest; /* it is of no use here */
    store_block_lift(request->admin->store, request->id, request->who->person.name, pending->reason,
                     (struct store_call){request->admin->loop, answer_lifted, pending});
}
