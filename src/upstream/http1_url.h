/*
 * The parts of a plain http URL.
 */
#pragma once

#include "taskgate/core/str.h"

struct http1_url {
    struct str authority; /* as it stands in the URL: what connections are kept under */
    struct str host;      /* a name or an address, without brackets */
    struct str host_line; /* for the Host header: without the port that is the default */
    struct str target;    /* path and query; empty stands for "/" */
    uint16_t port;
};

/* A view of `text`. false: not http, or with anything out of the ordinary in it (user names,
 * escapes in the host, a fragment, …). */
bool http1_url_read(struct http1_url *url, const char *text);
