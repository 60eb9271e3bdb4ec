/*
 * A server under test with a handler of the test, and the recorded events.
 */
#pragma once

#include "peer.h"
#include "taskgate/http/server.h"

enum { MAX_BODY = 1000, HIGH_WATER = 64 * 1024 };

/* A server with a handler that a test scripts, and the recorded events. */
struct scene {
    struct loop *loop;
    struct http_server *server;
    uint16_t port;
    void (*act)(struct scene *scene, struct http_exchange *exchange);
    struct http_exchange *held; /* set to NULL when it is over */
    int requests;
    int gone;
    int drained;
    int idle;
    struct buffer seen; /* the request, as text */
};

/* Ways for a client to leave; the loop tests run through them. */
enum { DEPARTURES = 3 };
void leave(struct peer *peer, int way);

extern const struct http_server_options usual;
void start(struct scene *scene);
void start_with(struct scene *scene, struct http_server_options options);
/* start(), and a client with a request that the handler holds. */
void open_stream(struct scene *scene, struct peer *peer, const char *request);
void stop(struct scene *scene);

/* The http_handler that start() sets; `context` is the scene. */
void on_request(struct http_exchange *exchange, void *context);
/* Callbacks that count; `context` is the scene. */
void on_gone(void *context);
void on_drained(void *context);
void on_idle(void *context);

/* Handlers. */
void answer_hello(struct scene *scene, struct http_exchange *exchange);
void hold(struct scene *scene, struct http_exchange *exchange);
void start_stream(struct scene *scene, struct http_exchange *exchange);

/* `length` bytes of `c`, valid until the next call. At most 256 KiB. */
struct str block_of(char c, size_t length);
