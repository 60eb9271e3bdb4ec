/*
 * The door of the module: what it does is done by an implementation behind it.
 */
#include <stdlib.h>

#include "curl_client.h"
#include "taskgate/core/memory.h"

struct upstream_client {
    struct curl_client *curl;
};

struct upstream_client *upstream_client_create(struct loop *loop, long max_idle_connections,
                                               struct error *error)
{
    struct curl_client *curl = curl_client_create(loop, max_idle_connections, error);
    if (curl == NULL)
        return NULL;
    struct upstream_client *client = memory_alloc(sizeof(*client));
    client->curl = curl;
    return client;
}

void upstream_client_destroy(struct upstream_client *client)
{
    if (client == NULL)
        return;
    curl_client_destroy(client->curl);
    free(client);
}

struct upstream_call *upstream_call_start(struct upstream_client *client,
                                          const struct upstream_request *request,
                                          const struct upstream_callbacks *callbacks, void *context)
{
    return curl_call_start(client->curl, request, callbacks, context);
}

void upstream_call_cancel(struct upstream_call *call)
{
    call->implementation->cancel(call);
}

void upstream_call_pause(struct upstream_call *call)
{
    call->implementation->pause(call);
}

void upstream_call_resume(struct upstream_call *call)
{
    call->implementation->resume(call);
}
