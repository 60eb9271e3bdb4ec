/* Passing on what upstream says, and refusing what nobody can answer. */
#include "interim.h"

#include "stream.h"
#include "taskgate/json/text.h"
#include "waiting.h"

/* Of upstream's questions in one call; each costs a request of ours. */
#define MOST_REFUSALS 100

static void pass_progress(struct gateway_worker *worker, struct task *task, struct str message)
{
    waiting_tell_progress(worker, task, message);
    if (task->progress_token[0]) {
        struct buffer rewritten;
        buffer_init(&rewritten);
        dialect_rewrite_progress(&rewritten, message, str_from(task->progress_token),
                                 str_from(task->id));
        stream_tell_owner(worker, task, buffer_str(&rewritten));
        buffer_finish(&rewritten);
    }
}

/* Nobody is there to answer upstream's question, and it must not hang. */
static void refuse_request(const struct interim_origin *origin, struct str id)
{
    struct buffer body;
    buffer_init(&body);
    jsonrpc_write_error(&body, id, JSONRPC_METHOD_NOT_FOUND, STR_EMPTY, NULL);
    struct ask_options options = {.source = origin->source,
                                  .snapshot = origin->snapshot,
                                  .headers = origin->headers,
                                  .body = buffer_str(&body)};
    ask_tell(origin->worker, &options);
    buffer_finish(&body);
}

void interim_take(const struct interim_origin *origin, struct str message)
{
    struct gateway *gateway = origin->worker->gateway;
    struct str id = json_member(message, "id");
    if (id.length > 0 && (*origin->refusals)++ < MOST_REFUSALS)
        refuse_request(origin, id);
    else if (id.length > 0)
        return;
    else if (json_string_equals(json_member(message, "method"), STR("notifications/progress")))
        gateway_tell_workers(gateway, pass_progress, origin->task, message);
    else
        gateway_tell_workers(gateway, stream_tell_owner, origin->task, message);
}
