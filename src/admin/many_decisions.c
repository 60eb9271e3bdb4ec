/*
 * POST /api/v1/decisions: the same vote on many tasks. All go to the store at once, which takes
 * them in their order; each is counted or refused by itself.
 */
#include "internal.h"

#include <stdlib.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"

#include "body.h"
#include "vote.h"

#define MOST_ITEMS 10000

static const struct decision *const verbs[] = {&vote_approve, &vote_reject, NULL};

/* One task of the request. */
struct item {
    struct many *many;
    char *id, *shown_digest, *typed; /* the latter two may be NULL */
    char *path;                      /* of the value that is to be typed, or NULL */
    int status;
    const char *code; /* of a refusal, or NULL */
};

/* Lives until the last answer of the store. */
struct many {
    struct pending_reply *pending;
    struct item *items;
    size_t count, answered;
};

static void many_decisions_destroy(struct many *many)
{
    for (size_t i = 0; i < many->count; i++) {
        free(many->items[i].id);
        free(many->items[i].shown_digest);
        free(many->items[i].typed);
        free(many->items[i].path);
    }
    free(many->items);
    free(many);
}

static void many_decisions_answer(struct many *many)
{
    struct http_exchange *exchange = pending_reply_take(many->pending);
    OWNED_BUFFER(body);
    buffer_append_text(&body, "{\"results\":[");
    for (size_t i = 0; i < many->count; i++) {
        const struct item *item = &many->items[i];
        buffer_append_text(&body, i > 0 ? ",{" : "{");
        json_add_text(&body, "id", item->id);
        buffer_append_format(&body, ",\"status\":%d", item->status);
        if (item->code)
            json_add_text(&body, "code", item->code);
        if (item->path)
            json_add_text(&body, "path", item->path);
        buffer_append_char(&body, '}');
    }
    buffer_append_text(&body, "]}");
    if (exchange)
        reply_json(exchange, 200, &body);
    pending_reply_destroy(many->pending);
    many_decisions_destroy(many);
}

static enum reply_error error_of(const struct store_reply *reply)
{
    if (reply->status == STORE_REFUSED || reply->status == STORE_CONFLICT)
        return vote_error(reply->refusal);
    return reply->status == STORE_NOT_FOUND ? REPLY_NOT_FOUND : REPLY_UNAVAILABLE;
}

static void many_decisions_on_vote(void *context, const struct store_reply *reply)
{
    struct item *item = context;
    struct many *many = item->many;
    if (reply->status == STORE_OK) {
        item->status = vote_status(many->pending, reply);
        vote_note(many->pending, reply->task);
    } else {
        item->status = reply_error_status(error_of(reply));
        item->code = reply_error_code(error_of(reply));
        if (reply->status == STORE_REFUSED)
            item->path = vote_typed_path(many->pending, reply);
    }
    ASSERT_NUMBERS(many->answered, <, many->count);
    if (++many->answered == many->count)
        many_decisions_answer(many);
}

/* ---- the body ---- */

static bool read_id(struct str value, struct item *item, struct error *error)
{
    free(item->id);
    item->id = json_plain_text(value);
    return item->id || error_set(error, "the id of a task must be a text without NUL characters");
}

/* {"id", "requestDigest"?} */
static bool read_item(struct str value, struct item *item, struct error *error)
{
    size_t position = 0;
    struct str key, member;
    while (json_type(value) == JSON_OBJECT && json_next_member(value, &position, &key, &member)) {
        bool is_good;
        if (body_key_is(key, "id"))
            is_good = read_id(member, item, error);
        else if (body_key_is(key, "requestDigest"))
            is_good = decision_body_read_digest(member, &item->shown_digest, error);
        else if (body_key_is(key, "typed"))
            is_good = decision_body_read_typed(member, &item->typed, error);
        else
            is_good = error_set(error, "an item has an unknown member; it may have only \"id\", "
                                       "\"requestDigest\" and \"typed\"");
        if (!is_good)
            return false;
    }
    return item->id || error_set(error, "items must be a list such as [{\"id\": \"tg_…\"}]");
}

/* `read` reads one element: of items, or of ids, which are items that have nothing else. */
static bool read_list(struct str value, struct many *many, const char *name,
                      bool (*read)(struct str value, struct item *item, struct error *error),
                      struct error *error)
{
    size_t position = 0;
    struct str element;
    if (many->items)
        return error_set(error, "the body has a list of tasks twice; it needs items or ids");
    if (json_type(value) != JSON_ARRAY || json_count(value) == 0)
        return error_set(error, "%s must be a list of tasks", name);
    if (json_count(value) > MOST_ITEMS)
        return error_set(error, "%s has more than %d items", name, MOST_ITEMS);
    many->items = memory_alloc_array(json_count(value), sizeof *many->items);
    while (json_next_element(value, &position, &element)) {
        struct item *item = &many->items[many->count++];
        *item = (struct item){.many = many};
        if (!read(element, item, error))
            return false;
    }
    return true;
}

static bool many_decisions_read_verb(struct str value, const struct decision **decision,
                                     struct error *error)
{
    for (size_t i = 0; verbs[i]; i++) {
        if (json_string_equals(value, str_from(ballot_verb_name(verbs[i]->verb)))) {
            *decision = verbs[i];
            return true;
        }
    }
    return error_set(error, "verb must be \"approve\" or \"reject\"");
}

/* The members of the body; `reason` is the caller's also after a failure. */
static bool many_decisions_read_body(struct str text, struct many *many,
                                     const struct decision **decision, char **reason,
                                     struct error *error)
{
    struct error cause;
    size_t position = 0;
    struct str key, value;
    if (!json_check(text, &cause))
        return error_set(error, "the body is not JSON: %s", cause.message);
    while (json_next_member(text, &position, &key, &value)) {
        bool is_good;
        if (body_key_is(key, "items"))
            is_good = read_list(value, many, "items", read_item, error);
        else if (body_key_is(key, "ids"))
            is_good = read_list(value, many, "ids", read_id, error);
        else if (body_key_is(key, "verb"))
            is_good = many_decisions_read_verb(value, decision, error);
        else if (body_key_is(key, "reason"))
            is_good = decision_body_read_reason(value, reason, error);
        else
            is_good = error_set(error, "the body has an unknown member; it may have only "
                                       "\"items\", \"ids\", \"verb\" and \"reason\"");
        if (!is_good)
            return false;
    }
    return (many->count > 0 && *decision) || error_set(error, "the body needs items and verb");
}

void decisions_many(const struct request *request)
{
    const struct decision *decision = NULL;
    char *reason = NULL;
    struct error error = {""};
    if (!body_is_json(request, false))
        return;
    struct many *many = memory_alloc(sizeof *many);
    if (!many_decisions_read_body(http_body(request->exchange), many, &decision, &reason, &error)) {
        reply_error(request->exchange, REPLY_INVALID_REQUEST, error.message, NULL);
        free(reason);
        many_decisions_destroy(many);
        return;
    }
    many->pending = pending_reply_create(request);
    many->pending->decision = decision;
    many->pending->reason = reason;
    /* The answers come later, but all may have come when the last vote is on its way. */
    for (size_t i = 0, count = many->count; i < count; i++) {
        many->pending->shown_digest = many->items[i].shown_digest;
        many->pending->typed = many->items[i].typed;
        vote_cast(
            many->pending, str_from(many->items[i].id),
            (struct store_call){request->admin->loop, many_decisions_on_vote, &many->items[i]});
        many->pending->shown_digest = NULL;
        many->pending->typed = NULL;
    }
}
