/* The sender of the request, as the gateway knows them. */
#include "internal.h"

#include "reply.h"

void whoami_get(const struct request *request)
{
    struct buffer body;
    buffer_init(&body);
    operator_write(&body, request->who);
    reply_json(request->exchange, 200, &body);
    buffer_finish(&body);
}
