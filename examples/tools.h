/*
 * Tools: the table of them, and the life of a call.
 *
 * A tool either answers at once or begins a call that ends later: by call_finish,
 * because the client cancelled it or went away, or because its session ended.
 */
#ifndef EXAMPLE_TOOLS_H
#define EXAMPLE_TOOLS_H

#include <h2o.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "session.h"

struct reply;
struct server;

/* A call that is not answered yet. */
struct call {
    h2o_linklist_t link; /* in session.calls */
    struct server *server;
    struct session *session;
    struct reply *reply;
    json_t *id;
    json_t *progress_token;               /* NULL when the caller gave none */
    h2o_timeout_entry_t tick;             /* slow: when to look at the clock again */
    bool may_stream;                      /* the caller accepts an event stream */
    uint64_t began_at;                    /* slow: loop time, milliseconds */
    uint64_t lasts;                       /* slow: milliseconds */
    uint64_t next_report;                 /* slow: milliseconds after the beginning */
    int reported;                         /* slow: the last percentage sent */
    char question[SESSION_ID_LENGTH + 1]; /* the id of our request to the client, else empty */
    /* Ends the call with the client's answer to `question`. `message` is borrowed. */
    void (*answered)(struct call *call, json_t *message);
};

/* The result of tools/list. */
json_t *tools_list(void);

/* Answers tools/call. `message` is borrowed; `body` is the bytes it was parsed from. */
void tools_call(struct server *server, struct session *session, h2o_req_t *request, json_t *message,
                h2o_iovec_t body);

/* notifications/cancelled: no answer is sent any more. Unknown ids are ignored. */
void tools_cancel(struct session *session, json_t *id);

/* The client answered a request of ours. `message` is borrowed; unknown ids are ignored. */
void tools_answer(struct session *session, json_t *message);

/* Ends all calls of a session that ends. */
void tools_end_calls(struct session *session);

/* Ends a call with the result of its tool, which is taken. */
void call_finish(struct call *call, json_t *result);

/* A tool's result of one text; as errors are results, so that the model reads them. Never NULL. */
json_t *tool_text(bool is_error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The tools that take their time. They start the call's stream and
 * return NULL, or, if the call cannot be begun, its result. `arguments` is borrowed. */
json_t *slow_begin(struct call *call, json_t *arguments);
json_t *ask_begin(struct call *call, json_t *arguments);
json_t *ask_model_begin(struct call *call, json_t *arguments);

#endif
