/* The sender of the request, as the gateway knows them. */
#include "internal.h"

#include "reply.h"
#include "taskgate/core/owned.h"

void whoami_get(const struct request *request)
{
    OWNED_BUFFER(body);
    operator_write(&body, request->who);
    reply_json(request->exchange, 200, &body);
}
