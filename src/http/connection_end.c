/* The end of a connection whose socket is closed: it lingers, and goes once no call uses it. */
#include <assert.h>
#include <stdlib.h>

#include "http_internal.h"

#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"

void connection_gauge(const struct http_server *server, double change)
{
    if (server->options.transport != NULL)
        metrics_add(METRIC_CONNECTIONS_ACTIVE, change,
                    METRIC_LABELS(str_from(server->options.transport)));
}

/* A connection less: the drain may be complete. */
static void report_closed(struct http_server *server)
{
    if (server->destroying)
        return;
    if (server->drained != NULL && server->connection_count == 0)
        loop_timer_start(&server->report_drained, 0);
}

void connection_remove(struct connection *connection)
{
    struct http_server *server = connection->server;
    linger_stop(connection);
    list_remove(&connection->departed);
    list_remove(&connection->node);
    tls_server_unref(connection->tls);
    free(connection->certificate);
    MAGIC_CLEAR(connection);
    free(connection);
    server->connection_count--;
    connection_gauge(server, -1);
    port_leave(server);
    report_closed(server);
}

static void on_linger_end(void *context)
{
    connection_remove(connection_from(context));
}

void connection_end(struct connection *connection)
{
    if (!linger_start(connection, on_linger_end))
        connection_remove(connection);
}

void connection_enter(struct connection *connection)
{
    connection->users++;
}

bool connection_leave(struct connection *connection)
{
    assert(connection->users > 0);
    connection->users--;
    if (connection->socket != NULL)
        return true;
    if (connection->users == 0)
        connection_end(connection);
    return false;
}
