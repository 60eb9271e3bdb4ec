/*
 * The admin endpoint over HTTP, for commands: one request at a time, blocking. The address and
 * token of the endpoint: THOUGHTGATE_ADMIN_URL; TASKGATE_TOKEN, else THOUGHTGATE_ADMIN_TOKEN, else
 * the token that `taskgate login` has kept. Never from argv, which every user of the machine can
 * read. Over https: TASKGATE_CA, TASKGATE_CERT and TASKGATE_KEY name files in PEM.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/buffer.h"

struct admin_client;

/* --insecure was said: the token may go over plain http to another machine. `insecure` of a command
 * that makes a client points here. */
extern bool admin_client_is_insecure;
/* NULL after a word on stderr (exit CLI_USAGE). */
struct admin_client *admin_client_create(void);
void admin_client_destroy(struct admin_client *client); /* NULL is allowed */
/* One that ends with the block: NULL as from admin_client_create(). */
#define OWNED_ADMIN_CLIENT(name)                                                                   \
    __attribute__((cleanup(admin_client_end))) struct admin_client *name = admin_client_create()
void admin_client_end(struct admin_client **client);

struct admin_request {
    const char *method;
    const char *path;          /* "/api/v1/tasks?limit=5" */
    struct str body;           /* JSON, with POST */
    const char *last_event_id; /* for a stream; may be NULL */
    int64_t wait_ms;           /* how long the endpoint is asked to hold the answer back */
    /* For a stream: takes each part; false ends it. NULL: the body is collected. */
    bool (*received)(void *context, struct str bytes);
    void *context;
};

/* Sends and receives. Returns an exit code (taskgate/cli/cli.h): CLI_DONE with the JSON text in
 * `body` for a 2xx, else the code for the answer, after a line on stderr. */
int admin_client_send(struct admin_client *client, const struct admin_request *request,
                      struct buffer *body);
/* The endpoint's url, without a slash at its end. */
const char *admin_client_url(const struct admin_client *client);
/* From now on this token is sent. */
void admin_client_use_token(struct admin_client *client, const char *token);
/* The HTTP status of the last answer; 0 when there was none. */
long admin_client_status(const struct admin_client *client);
/* `text` percent-encoded for a path or a query. The caller frees with free(). */
char *admin_client_encode(struct admin_client *client, const char *text);
