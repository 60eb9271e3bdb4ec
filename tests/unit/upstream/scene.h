/*
 * A client under test, a raw origin for it to call, and records of the calls' results.
 */
#pragma once

#include "origin.h"
#include "taskgate/upstream/upstream.h"

struct scene {
    struct loop *loop;
    struct upstream_client *client;
    struct origin origin;
};

/* A call and its result. */
struct record {
    struct scene *scene;
    struct upstream_call *call; /* NULL when it is over */
    int status;
    struct buffer headers; /* "name: value\n" each */
    struct buffer body;
    int heads;
    int pieces;
    int ends;
    enum upstream_result result;
    char detail[256];
    void (*in_head)(struct record *record);
    void (*in_body)(struct record *record);
    void (*in_end)(struct record *record);
    struct record *other;
    struct loop_timer timer;
};

#define SHORT_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

/* With headers and the body {"a":1}; and with nothing. */
extern const struct upstream_request post;
extern const struct upstream_request get;

/* Whether the environment forces libcurl (see upstream.h). */
bool is_by_libcurl(void);

void start(struct scene *scene);
void stop(struct scene *scene);
/* Starts a call, at the origin unless the request has a URL. */
void call_with(struct scene *scene, struct record *record, struct upstream_request request);
void post_to(struct scene *scene, struct record *record);
void await_end(struct record *record, enum upstream_result result);
void expect_text(const struct buffer *buffer, const char *text);
/* Frees the content of the record. */
void forget(struct record *record);
/* For in_head or in_body: pauses the call once. */
void pause_once(struct record *record);
