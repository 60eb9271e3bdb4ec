/*
 * Replies: the answer to one HTTP request, at once, later, or as a stream of events.
 *
 * A held reply lives in its request's memory. It ends in exactly one of two ways:
 * its holder calls reply_finish, or the client goes away and `on_gone` is called.
 * After either the holder must not touch it.
 */
#ifndef EXAMPLE_REPLY_H
#define EXAMPLE_REPLY_H

#include <h2o.h>
#include <jansson.h>
#include <stdbool.h>

struct server;
struct reply;

typedef void (*reply_gone_callback)(void *holder);

/* Answers at once. `message` is taken. */
void reply_json(h2o_req_t *request, int status, json_t *message);
void reply_empty(h2o_req_t *request, int status);

/* Whether the client accepts `type` ("text/event-stream"); saying nothing accepts all. */
bool reply_accepts(h2o_req_t *request, const char *type);

/* Holds the request for later. `on_gone` is never called from inside this function. */
struct reply *reply_hold(struct server *server, h2o_req_t *request, reply_gone_callback on_gone,
                         void *holder);

/* Turns a held reply into an event stream; its headers leave at once. */
void reply_start_stream(struct reply *reply);
bool reply_is_stream(const struct reply *reply);

/* Sends one message on a stream; does nothing on a held reply that is none. `message` is taken. */
void reply_send(struct reply *reply, json_t *message);

/* Sends the last message, if any, and ends the reply. `message` is taken. */
void reply_finish(struct reply *reply, json_t *message);

/* For the connection watch: the peer has closed its side. */
void reply_client_gone(struct reply *reply);

#endif
