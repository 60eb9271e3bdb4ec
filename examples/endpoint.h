/*
 * The endpoint /mcp: MCP's Streamable HTTP transport over one path.
 */
#ifndef EXAMPLE_ENDPOINT_H
#define EXAMPLE_ENDPOINT_H

#include <h2o.h>

struct server;

#define ENDPOINT_PATH "/mcp"

/* Registers the endpoint. `server` must outlive the host. */
void endpoint_register(struct server *server, h2o_hostconf_t *host);

#endif
