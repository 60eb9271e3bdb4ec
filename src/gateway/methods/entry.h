/* The door of the proxy port: what every request passes before its method is looked at. */
#pragma once

#include "call/worker.h"
#include "taskgate/http/server.h"

/* Takes a request; the exchange is answered by it, now or later. */
void entry_handle(struct gateway_worker *worker, struct http_exchange *exchange);
/* The same of a request on the port for other replicas. */
void entry_handle_relayed(struct gateway_worker *worker, struct http_exchange *exchange);
/* Writes the body of a refusal of the HTTP server's: a JSON-RPC error without an id. */
void entry_write_refusal(int status, struct buffer *body);
