/*
 * The door of the module: each call goes by the implementation that fits its URL.
 */
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"
#include "taskgate/upstream/curl_library.h"

#include "upstream_internal.h"

struct upstream_client {
    struct loop *loop;
    long max_idle_connections;
    struct curl_client *curl;   /* NULL until it is needed */
    struct http1_client *http1; /* NULL when the environment forces libcurl */
};

/* THOUGHTGATE_UPSTREAM_CLIENT. */
static bool read_switch(bool *only_curl, struct error *error)
{
    const char *value = getenv("THOUGHTGATE_UPSTREAM_CLIENT");
    *only_curl = value != NULL && strcmp(value, "curl") == 0;
    if (value == NULL || *only_curl || strcmp(value, "auto") == 0)
        return true;
    error_set(error, "THOUGHTGATE_UPSTREAM_CLIENT: \"%s\" is neither \"auto\" nor \"curl\"", value);
    return false;
}

struct upstream_client *upstream_client_create(struct loop *loop, long max_idle_connections,
                                               struct error *error)
{
    bool only_curl;
    if (!read_switch(&only_curl, error))
        return NULL;
    struct curl_client *curl = NULL;
    if (only_curl && (curl = curl_client_create(loop, max_idle_connections, error)) == NULL)
        return NULL;
    struct upstream_client *client = memory_alloc(sizeof(*client));
    client->loop = loop;
    client->max_idle_connections = max_idle_connections;
    client->curl = curl;
    if (!only_curl)
        client->http1 = http1_client_create(loop, (size_t)max_idle_connections);
    return client;
}

bool upstream_prepare(const char *url, struct error *error)
{
    struct http1_url parts;
    bool only_curl;
    if (!read_switch(&only_curl, error))
        return false;
    return (!only_curl && http1_url_read(&parts, url)) || curl_library_load(error);
}

void upstream_client_destroy(struct upstream_client *client)
{
    if (client == NULL)
        return;
    http1_client_destroy(client->http1);
    curl_client_destroy(client->curl);
    free(client);
}

struct upstream_call *upstream_call_start(struct upstream_client *client,
                                          const struct upstream_request *request,
                                          const struct upstream_callbacks *callbacks, void *context)
{
    struct http1_url url;
    if (client->http1 != NULL && http1_client_read_url(client->http1, &url, request->url))
        return http1_call_start(client->http1, &url, request, callbacks, context);
    struct error error = {""};
    if (client->curl == NULL)
        client->curl = curl_client_create(client->loop, client->max_idle_connections, &error);
    if (client->curl == NULL)
        return http1_call_refuse(client->http1, error.message, callbacks, context);
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

void upstream_call_prove(struct upstream_call *call)
{
    call->implementation->prove(call);
}

bool upstream_call_has_begun(const struct upstream_call *call)
{
    return call->implementation->has_begun(call);
}

bool upstream_call_has_sent(const struct upstream_call *call)
{
    return call->implementation->has_sent(call);
}

void upstream_call_set_silence(struct upstream_call *call, int64_t silence_timeout_ms)
{
    call->implementation->set_silence(call, silence_timeout_ms);
}
