/* Definitions of servers: the list of them, and accepting one. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/policy/pins.h"
#include "taskgate/store/definitions.h"

#include "body.h"
#include "pending_reply.h"
#include "query.h"
#include "reply.h"

#define LIMIT_DEFAULT 100
#define LIMIT_MAX 500

static void write_definition(struct buffer *out, const struct store_definition *definition)
{
    const char *joint = "";
    buffer_append_char(out, '{');
    json_add_text(out, "source", definition->source);
    json_add_text(out, "kind", definition->kind);
    json_add_text(out, "name", definition->name);
    json_add_text(out, "digest", definition->digest);
    json_add_text(out, "state", definition->is_changed ? "changed" : "accepted");
    json_add_key(out, "flags");
    buffer_append_char(out, '[');
    for (unsigned i = 0; i < DEFINITION_FLAG_COUNT; i++) {
        if (!(definition->flags & 1U << i))
            continue;
        buffer_append_text(out, joint);
        buffer_append_json_string(out, str_from(definition_flag_name((enum definition_flag)i)));
        joint = ",";
    }
    buffer_append_char(out, ']');
    json_add_text_or_null(out, "difference", definition->difference);
    buffer_append_char(out, '}');
}

/* ---- the list ---- */

static void definitions_write_one(struct buffer *out, const struct store_reply *reply, size_t i,
                                  const struct pending_reply *pending)
{
    (void)pending;
    write_definition(out, &reply->definitions[i]);
}

static void definitions_answer_list(void *context, const struct store_reply *reply)
{
    pending_reply_with_page(
        pending_reply_from(context), reply,
        &(struct pending_page){"definitions", reply->definition_count, definitions_write_one});
}

struct list_query {
    struct store_definition_query query;
    uint64_t limit;
};

static bool definitions_read_state(struct list_query *list, struct str value, struct error *error)
{
    list->query.changed_only = str_equal(value, STR("changed"));
    list->query.flagged_only = str_equal(value, STR("flagged"));
    return list->query.changed_only || list->query.flagged_only ||
           error_set(error, "state may be changed or flagged");
}

static bool definitions_read_parameter(void *context, struct str key, struct str value,
                                       struct error *error)
{
    struct list_query *list = context;
    enum definition_kind kind;
    if (str_equal(key, STR("source")) || str_equal(key, STR("name")))
        return true; /* read below, because they may be encoded */
    if (str_equal(key, STR("kind"))) {
        list->query.kind = value;
        return definition_kind_parse(value, &kind) ||
               error_set(error, "kind may be tool, prompt or skill");
    }
    if (str_equal(key, STR("state")))
        return definitions_read_state(list, value, error);
    if (str_equal(key, STR("limit")))
        return query_read_limit(value, LIMIT_MAX, &list->limit, error);
    if (str_equal(key, STR("cursor")))
        return query_read_creation_cursor(value, "definitions", &list->query.after_sequence, error);
    return error_set(error,
                     "\"%.*s\" is not a parameter here; there are source, kind, name, state, limit "
                     "and cursor",
                     STR_ARGS(key));
}

void definitions_list(const struct request *request)
{
    struct list_query list = {.limit = LIMIT_DEFAULT};
    struct str text = http_query(request->exchange);
    struct error error = {""};
    OWNED_BUFFER(source);
    OWNED_BUFFER(name);
    if (!query_each(text, definitions_read_parameter, &list, &error)) {
        reply_error(request->exchange, REPLY_INVALID_REQUEST, error.message, NULL);
    } else if (!query_read(&source, text, "source") || !query_read(&name, text, "name")) {
        reply_error(request->exchange, REPLY_INVALID_REQUEST,
                    "source and name may be given once, percent-encoded", NULL);
    } else {
        list.query.source = buffer_str(&source);
        list.query.name = buffer_str(&name);
        list.query.limit = (size_t)list.limit;
        struct pending_reply *pending = pending_reply_create(request);
        store_definition_list(
            request->admin->store, &list.query,
            (struct store_call){request->admin->loop, definitions_answer_list, pending});
    }
}

/* ---- accepting ---- */

/* Calls are judged by it from now on, before the answer says so. */
static void pin(const struct store_definition *row)
{
    struct pin_name name = {.source = str_from(row->source), .name = str_from(row->name)};
    const struct pin_row accepted = {row->digest, row->accepted, row->difference, row->flags};
    if (definition_kind_parse(str_from(row->kind), &name.kind))
        pins_put(&name, &accepted, false);
}

static void answer_accepted(void *context, const struct store_reply *reply)
{
    struct pending_reply *pending = pending_reply_from(context);
    struct http_exchange *exchange = pending_reply_take(pending);
    struct buffer body;
    if (reply->status == STORE_OK)
        pin(&reply->definitions[0]);
    if (exchange && reply->status == STORE_OK) {
        buffer_init(&body);
        write_definition(&body, &reply->definitions[0]);
        reply_json(exchange, 200, &body);
        buffer_finish(&body);
    } else if (exchange && reply->status == STORE_CONFLICT) {
        reply_error(exchange, REPLY_CONFLICT, "the server gives another definition now",
                    reply->definitions[0].digest);
    } else if (exchange && reply->status == STORE_NOT_FOUND) {
        reply_error(exchange, REPLY_NOT_FOUND, "there is no such definition", NULL);
    } else if (exchange) {
        pending_reply_with_task(exchange, reply, pending);
    }
    pending_reply_destroy(pending);
}

static const char *const members[] = {"source", "kind", "name", "digest"};
enum { SOURCE, KIND, NAME, DIGEST, MEMBER_COUNT };

/* The texts are the caller's, also where it fails. */
static bool definitions_read_body(struct str body, char *texts[MEMBER_COUNT], struct error *error)
{
    size_t position = 0;
    struct str key, value;
    if (!json_check(body, NULL) || json_type(body) != JSON_OBJECT)
        return error_set(error, "the body must be a JSON object");
    while (json_next_member(body, &position, &key, &value)) {
        size_t i = 0, length;
        while (i < MEMBER_COUNT && !body_key_is(key, members[i]))
            i++;
        if (i == MEMBER_COUNT)
            return error_set(error, "the body may have source, kind, name and digest alone");
        texts[i] = json_string_text(value, &length);
        if (!texts[i] || strlen(texts[i]) != length)
            return error_set(error, "%s must be a string", members[i]);
    }
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        if (!texts[i])
            return error_set(error, "%s is missing", members[i]);
    }
    return true;
}

void definitions_accept(const struct request *request)
{
    char *texts[MEMBER_COUNT] = {NULL};
    char id[STORE_DEFINITION_ID_BYTES];
    struct error error = {""};
    if (!body_is_json(request, false))
        return;
    if (definitions_read_body(http_body(request->exchange), texts, &error)) {
        store_definition_id(str_from(texts[SOURCE]), str_from(texts[KIND]), str_from(texts[NAME]),
                            id);
        struct pending_reply *pending = pending_reply_create(request);
        store_definition_accept(
            request->admin->store, str_from(id), str_from(texts[DIGEST]), request->who->person.name,
            (struct store_call){request->admin->loop, answer_accepted, pending});
    } else {
        reply_error(request->exchange, REPLY_INVALID_REQUEST, error.message, NULL);
    }
    for (size_t i = 0; i < MEMBER_COUNT; i++)
        free(texts[i]);
}
