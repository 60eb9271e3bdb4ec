/* Calls of the control plane: the body's members go through the gateway's door as they are. */
#include "internal.h"

#include "taskgate/core/log.h"
#include "taskgate/core/owned.h"
#include "taskgate/gateway/control.h"
#include "taskgate/json/text.h"

#include "body.h"
#include "pending_reply.h"
#include "reply.h"
#include "task_json.h"

/* JSON text of the members; empty where there is none. */
struct members {
    struct str source, tool, arguments, ttl;
};

static bool calls_read_members(struct str body, struct members *members, struct error *error)
{
    struct error cause = {""};
    size_t position = 0;
    struct str key, value;
    const struct {
        const char *name;
        struct str *value;
    } known[] = {
        {"source", &members->source},
        {"tool", &members->tool},
        {"arguments", &members->arguments},
        {"ttl", &members->ttl},
    };
    *members = (struct members){STR_EMPTY, STR_EMPTY, STR_EMPTY, STR_EMPTY};
    if (!json_check(body, &cause))
        return error_set(error, "the body is not JSON: %s", cause.message);
    if (json_type(body) != JSON_OBJECT)
        return error_set(error, "the body must be an object, such as {\"tool\": \"…\"}");
    while (json_next_member(body, &position, &key, &value)) {
        size_t i = 0;
        while (i < sizeof known / sizeof *known && !body_key_is(key, known[i].name))
            i++;
        if (i == sizeof known / sizeof *known)
            return error_set(error, "the body has an unknown member; it may have source, tool, "
                                    "arguments and ttl");
        *known[i].value = value;
    }
    if (members->source.length > 0 && json_type(members->source) != JSON_STRING)
        return error_set(error, "source must be a string");
    return true;
}

static void calls_answer_created(struct http_exchange *exchange, const struct task *task,
                                 const struct task_view *view)
{
    OWNED_BUFFER(body);
    task_json_write(&body, task, view);
    reply_json(exchange, 201, &body);
}

static void calls_answer(void *context, const struct control_reply *reply)
{
    static const enum reply_error errors[] = {
        [CONTROL_INVALID] = REPLY_INVALID_REQUEST,
        [CONTROL_DENIED] = REPLY_FORBIDDEN,
        [CONTROL_LIMITED] = REPLY_LIMITED,
        [CONTROL_UNAVAILABLE] = REPLY_UNAVAILABLE,
    };
    struct pending_reply *pending = pending_reply_from(context);
    struct http_exchange *exchange = pending_reply_take(pending);
    if (reply->status == CONTROL_CREATED)
        log_info("Called by the control plane", LOG_TEXT("task", reply->task->id),
                 LOG_TEXT("by", pending->who->person.name));
    const struct task_view view = pending_reply_view(pending);
    if (exchange && reply->status == CONTROL_CREATED)
        calls_answer_created(exchange, reply->task, &view);
    else if (exchange)
        reply_refusal(exchange, errors[reply->status], reply->message, reply->code);
    pending_reply_destroy(pending);
}

void calls_create(const struct request *request)
{
    struct members members;
    struct error error = {""};
    OWNED_BUFFER(source);
    if (!body_is_json(request, false))
        return;
    if (!calls_read_members(http_body(request->exchange), &members, &error)) {
        reply_error(request->exchange, REPLY_INVALID_REQUEST, error.message, NULL);
        return;
    }
    if (!request->admin->worker) {
        reply_error(request->exchange, REPLY_UNAVAILABLE, "this gateway takes no calls here", NULL);
        return;
    }
    struct pending_reply *pending = pending_reply_create(request);
    json_decode_string(members.source, &source);
    struct ballot_names keys;
    OWNED_BUFFER(maker);
    person_keys(&pending->who->person, &keys);
    ballot_names_write(&maker, &keys);
    ballot_names_finish(&keys);
    buffer_append_char(&maker, '\0');
    const struct control_call call = {
        .name = pending->who->person.name,
        .maker = maker.bytes,
        .source = buffer_str(&source),
        .tool = members.tool,
        .arguments = members.arguments,
        .ttl = members.ttl,
    };
    control_call(request->admin->worker, &call, calls_answer, pending);
}
