/* Grants: the list of them, and revoking one. */
#include "internal.h"

#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/store/grants.h"

#include "body.h"
#include "pending_reply.h"
#include "reply.h"
#include "task_json.h"

/* ---- the list ---- */

static void grants_write_one(struct buffer *out, const struct store_reply *reply, size_t i,
                             const struct pending_reply *pending)
{
    grant_json_write(out, &reply->grants[i], pending->snapshot->config);
}

static void grants_answer_list(void *context, const struct store_reply *reply)
{
    pending_reply_with_page(pending_reply_from(context), reply,
                            &(struct pending_page){"grants", reply->grant_count, grants_write_one});
}

void grants_list(const struct request *request)
{
    pending_reply_list(request, "grants", store_grant_list, grants_answer_list);
}

/* ---- revoking ---- */

static void answer_conflict(struct http_exchange *exchange, const struct store_grant *grant)
{
    OWNED char *message = memory_format("the grant has ended already: %s", grant->end_cause);
    reply_error(exchange, REPLY_CONFLICT, message, "ended");
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
