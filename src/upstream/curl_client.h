/*
 * Calls by libcurl, as upstream.h says of the functions of like names.
 */
#pragma once

#include "upstream_internal.h"

struct curl_client;

struct curl_client *curl_client_create(struct loop *loop, long max_idle_connections,
                                       struct error *error);
void curl_client_destroy(struct curl_client *client);
struct upstream_call *curl_call_start(struct curl_client *client,
                                      const struct upstream_request *request,
                                      const struct upstream_callbacks *callbacks, void *context);
