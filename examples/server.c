/* Starts the example MCP server, runs its loop, and stops it cleanly on SIGTERM or Ctrl-C. */
#include "server.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "endpoint.h"
#include "reply.h"

#define STOP_WITHIN_MS 3000

static void configure_http(struct server *server);
static h2o_socket_t *watch_signals(struct server *server);
static void run(struct server *server);

int main(int argc, char **argv)
{
    static struct server server;
    int status = EXIT_FAILURE;
    switch (options_read(&server.options, argc, argv)) {
    case OPTIONS_DONE:
        return EXIT_SUCCESS;
    case OPTIONS_WRONG:
        return 2;
    case OPTIONS_RUN:
        break;
    }
    signal(SIGPIPE, SIG_IGN);
    if (!databases_open(&server.databases, server.options.data_dir))
        return EXIT_FAILURE;
    if (server.options.journal != NULL &&
        (server.journal = fopen(server.options.journal, "ae")) == NULL) {
        fprintf(stderr, "--journal %s: %s\n", server.options.journal, strerror(errno));
        goto no_journal;
    }
    sessions_init(&server.sessions);
    configure_http(&server);
    h2o_socket_t *signals = watch_signals(&server);
    uint16_t port = 0;
    if (signals == NULL || !connections_open(&server.connections, &server.context,
                                             server.options.host, server.options.port, &port))
        goto not_open;

    const char *form = strchr(server.options.host, ':') != NULL ? "[%s]" : "%s";
    printf("listening on http://");
    printf(form, server.options.host);
    printf(":%u" ENDPOINT_PATH "\n", (unsigned)port);
    fflush(stdout);
    run(&server);
    connections_free(&server.connections);
    status = EXIT_SUCCESS;

not_open:
    if (signals != NULL)
        h2o_socket_close(signals);
    h2o_timeout_dispose(server.context.loop, &server.tick);
    h2o_timeout_dispose(server.context.loop, &server.keepalive);
    h2o_loop_t *loop = server.context.loop;
    h2o_context_dispose(&server.context);
    h2o_config_dispose(&server.config);
    h2o_evloop_destroy(loop);
    if (server.journal != NULL)
        fclose(server.journal);
no_journal:
    databases_free(&server.databases);
    return status;
}

static void configure_http(struct server *server)
{
    h2o_config_init(&server->config);
    server->config.server_name = h2o_iovec_init(NULL, 0);
    server->config.max_request_entity_size = SERVER_BODY_BYTES;
    server->config.http1.req_timeout = 60000;
    server->config.http1.upgrade_to_http2 = 0;
    h2o_hostconf_t *host =
        h2o_config_register_host(&server->config, h2o_iovec_init(H2O_STRLIT("default")), 65535);
    endpoint_register(server, host);
    h2o_context_init(&server->context, h2o_evloop_create(), &server->config);
    h2o_timeout_init(server->context.loop, &server->tick, SERVER_TICK_MS);
    h2o_timeout_init(server->context.loop, &server->keepalive, SERVER_KEEPALIVE_MS);
}

static void on_signal(h2o_socket_t *signals, const char *error)
{
    struct server *server = signals->data;
    struct signalfd_siginfo information;
    if (error == NULL && read(h2o_socket_get_fd(signals), &information, sizeof(information)) > 0)
        server->stopping = true;
}

/* Signals come as input to the loop, so that stopping is work like any other. */
static h2o_socket_t *watch_signals(struct server *server)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int descriptor = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (descriptor == -1) {
        fprintf(stderr, "cannot watch signals: %s\n", strerror(errno));
        return NULL;
    }
    h2o_socket_t *signals =
        h2o_evloop_socket_create(server->context.loop, descriptor, H2O_SOCKET_FLAG_DONT_READ);
    signals->data = server;
    h2o_socket_read_start(signals, on_signal);
    return signals;
}

static void run(struct server *server)
{
    h2o_loop_t *loop = server->context.loop;
    while (!server->stopping)
        h2o_evloop_run(loop, INT32_MAX);

    sessions_free(&server->sessions);
    /* One turn lets the last events of the streams leave before their connections are closed. */
    h2o_evloop_run(loop, 0);
    connections_close(&server->connections);
    uint64_t deadline = h2o_now(loop) + STOP_WITHIN_MS;
    while (server->connections.count != 0 && h2o_now(loop) < deadline)
        h2o_evloop_run(loop, 100);
}
