/*
 * The listeners of one port, one on each loop, share the bound on connections and the log of failed
 * handshakes. A listener takes a seat before it accepts, so all together accept no more than the
 * bound. Listeners that found none wait in line, and a seat that is left goes to the first of them.
 * Any thread.
 */
#pragma once

struct http_port;

/* 0: no bound. */
struct http_port *http_port_create(int max_connections);
/* After the servers that share it, and after their loops. NULL is allowed. */
void http_port_destroy(struct http_port *port);
