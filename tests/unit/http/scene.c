#include "scene.h"

#include <check.h>
#include <string.h>
#include <sys/socket.h>

#include "certificate.h"

void on_request(struct http_exchange *exchange, void *context)
{
    struct scene *scene = context;
    scene->requests++;
    scene->act(scene, exchange);
}

void start_with(struct scene *scene, struct http_server_options options)
{
    struct error error = {""};
    scene->loop = loop_create(&error);
    ck_assert_msg(scene->loop != NULL, "%s", error.message);
    buffer_init(&scene->seen);
    struct tls_server *tls = peer_speaks_tls ? make_tls(NULL) : NULL;
    options.tls = options.tls ? options.tls : tls;
    options.handler = on_request;
    options.context = scene;
    scene->server = http_server_create(scene->loop, &options, &error);
    ck_assert_msg(scene->server != NULL, "%s", error.message);
    tls_server_unref(tls);
    scene->port = http_server_port(scene->server);
    ck_assert_uint_ne(scene->port, 0);
}

const struct http_server_options usual = {
    .address = {"127.0.0.1", 9},
    .max_body_bytes = MAX_BODY,
    .read_timeout_ms = 5000,
    .stream_high_water = HIGH_WATER,
};

void start(struct scene *scene)
{
    start_with(scene, usual);
}

void stop(struct scene *scene)
{
    http_server_destroy(scene->server);
    loop_destroy(scene->loop);
    buffer_finish(&scene->seen);
}

void on_gone(void *context)
{
    struct scene *scene = context;
    scene->gone++;
    scene->held = NULL;
}

void on_drained(void *context)
{
    struct scene *scene = context;
    scene->drained++;
}

void on_idle(void *context)
{
    struct scene *scene = context;
    scene->idle++;
}

void answer_hello(struct scene *scene, struct http_exchange *exchange)
{
    http_respond_text(exchange, 200, "text/plain", STR("hello"));
}

void hold(struct scene *scene, struct http_exchange *exchange)
{
    scene->held = exchange;
    http_on_gone(exchange, on_gone, scene);
}

void start_stream(struct scene *scene, struct http_exchange *exchange)
{
    const struct http_header type = {STR("content-type"), STR("text/event-stream")};
    hold(scene, exchange);
    http_on_drained(exchange, on_drained, scene);
    http_stream_start(exchange, 200, &type, 1, -1);
}

struct str block_of(char c, size_t length)
{
    static char bytes[256 * 1024];
    memset(bytes, c, length);
    return str_slice(bytes, length);
}

void leave(struct peer *peer, int way)
{
    if (way == 0)
        peer_close(peer);
    else if (way == 1)
        shutdown(peer->fd, SHUT_WR);
    else
        peer_reset(peer);
}

void open_stream(struct scene *scene, struct peer *peer, const char *request)
{
    int before = scene->requests;
    start(scene);
    peer_connect(peer, scene->loop, scene->port);
    peer_send_text(peer, request);
    run_until(scene->loop, &scene->requests, before + 1);
    ck_assert_ptr_nonnull(scene->held);
}
