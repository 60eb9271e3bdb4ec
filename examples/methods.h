/*
 * The MCP methods this server answers.
 */
#ifndef EXAMPLE_METHODS_H
#define EXAMPLE_METHODS_H

#include <h2o.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct server;
struct session;

bool methods_know_version(const char *version, size_t length);

/* Whether `method` is a request other than initialize that is answered here. */
bool methods_know(const char *method);

/* In all of these `message` is borrowed and has been checked to be a JSON-RPC message. */

/* Begins a session and answers with its id. */
void methods_initialize(struct server *server, h2o_req_t *request, json_t *message);

/* Answers a request with a known method. */
void methods_answer(struct server *server, struct session *session, h2o_req_t *request,
                    json_t *message);

/* Takes a notification, or the client's answer to a request of ours. */
void methods_take(struct session *session, h2o_req_t *request, json_t *message);

#endif
