/*
 * The gates of a request on the proxy port: what it passes, in this order, before its method
 * answers it. On the worker's loop.
 */
#pragma once

#include "call/call.h"

/* G(name, whom). CLIENT: not a request that another replica has carried here, which has put it to
 * these gates; POST: a message; SUBJECT: of a verified subject. */
#define GATES(G)                                                                                   \
    G(host, CLIENT)                                                                                \
    G(origin, CLIENT)                                                                              \
    G(repeated_headers, ALL)                                                                       \
    G(address_rate, CLIENT)                                                                        \
    G(source, ALL)                                                                                 \
    G(principal_rate, CLIENT)                                                                      \
    G(arrival, ALL) /* from here on it is counted, and its client may leave */                     \
    G(metadata, CLIENT)                                                                            \
    G(token, ALL) /* waits for keys */                                                             \
    G(body, POST)                                                                                  \
    G(era, ALL)         /* waits for a probe */                                                    \
    G(home, ALL)        /* waits, or the call is carried to another replica */                     \
    G(session, SUBJECT) /* waits for the store */                                                  \
    G(exchange, ALL)    /* of tokens; waits */                                                     \
    G(serving, POST)                                                                               \
    G(method, ALL) /* answers each call */

/* GATE_ANSWERED: with the refusal, or by the method. GATE_WAITS: gates_go_on() follows. */
#define GATE_FUNCTION(name, whom) enum gate_verdict gate_##name(struct call *call);
GATES(GATE_FUNCTION)
#undef GATE_FUNCTION

/* Takes a request; the exchange is answered by it, now or later. */
void gates_handle(struct gateway_worker *worker, struct http_exchange *exchange);
/* The same of a request on the port for other replicas. */
void gates_handle_relayed(struct gateway_worker *worker, struct http_exchange *exchange);
/* Puts the call to the gates behind the last one that it was put to: a wait is over, and its client
 * is still there. */
void gates_go_on(struct call *call);

/* Writes the body of a refusal of the HTTP server's: a JSON-RPC error without an id. */
void gates_write_refusal(int status, struct buffer *body);
