/*
 * The requests of upstream in a call that the gateway runs, or in a session it answers for:
 * elicitation/create and sampling/createMessage. Each waits for the first answer, and ends by its
 * own clock (behaviour 12.1, 12.2).
 *
 * The ways to an answer: the request itself on a stream of a client that declared the
 * capability; pending-elicitations and elicitation-response in a task; the pseudo-task tools.
 */
#pragma once

#include "call/call.h"
#include "call/headers.h"
#include "question_table.h"
#include "server/http.h"

/* The client that can answer, as far as its request shows. */
struct question_audience {
    char key[QUESTION_KEY_BYTES]; /* "": an owner without a name */
    char owner[OWNER_BYTES];
    bool can[QUESTION_KIND_COUNT];
    /* The client must not be asked: it declares tasks and not the capability. Or there is no client
     * at all. */
    bool is_closed;
};

/* The request must have been identified and its facts loaded. */
void question_audience(const struct call *call, struct question_audience *audience);

/* Whether the client is shown tools that can answer: an elicitation, or a request to sample. Then
 * its `initialize` gets the capability. */
bool question_has_tools(const struct call *call, enum question_kind kind);

/* A question whose answer is not sent to the server; borrowed. */
struct question_asked {
    struct gateway_worker *asker; /* of the worker that took it */
    struct task *task;            /* or NULL */
    uint64_t call;
    enum question_kind kind;
    struct str id; /* the server's, JSON text */
};
/* Takes the response in place of the server. On any worker. */
typedef void (*question_answer_taker)(struct gateway_worker *worker,
                                      const struct question_asked *asked,
                                      const struct server_response *response);

/* The origin of a request of upstream's; all borrowed. */
struct question_origin {
    struct gateway_worker *worker;
    struct snapshot *snapshot;
    const struct config_source *source; /* of the snapshot */
    const struct headers *headers; /* the headers of the answer to the server; NULL with a taker */
    const char *session;           /* digest of upstream's session, or "" */
    const struct question_audience *audience;
    struct task *task; /* its call asks; NULL: a client's own stream, or one that waits itself */
    uint64_t call;     /* question_end_call() ends what it asks; 0: the task does, or the session */
    bool is_on_stream; /* of the session: of no call that is known */
    /* The server has asked in an answer, and gets the response in a request: with a task. NULL: it
     * is sent to the server. */
    question_answer_taker take_answer;
    /* For notices_take(): */
    const char *key;              /* of the client (inbox/inbox.h), or "" */
    struct server_budget *budget; /* for the requests of the server */
};

/* Whether it is a request that a server may ask a client. A legacy server's client answers all but
 * roots in a task. */
bool question_read_kind(struct str request, enum question_kind *kind);
/* Takes a request of the server: offers it to the audience, or declines at once when nobody can
 * answer. `message` is whole and json_check() has accepted it. Whether it waits for an answer now.
 */
bool question_take(const struct question_origin *origin, struct str message);
/* The same where the call itself sends the request to its client, by the id (without quotes) that
 * `own_id` gets: no stream, tool or task shows it. The client's response counts if it comes in the
 * session of `origin`. The caller keeps the clock; question_end_call() ends it. `id` is the
 * server's, JSON text. false: too many are open. */
bool question_ask_in_call(const struct question_origin *origin, enum question_kind kind,
                          struct str id, struct buffer *own_id);
/* The key of the questions of one call. */
void question_key_of_call(uint64_t call, char key[]);
/* Upstream's notifications/cancelled: true when it was about a question that was taken. */
bool question_take_cancel(const struct question_origin *origin, struct str message);

/* Takes a message of the server in a call that runs, whose client has only its task: notifications
 * are passed on, with the task's id in related-task _meta, and requests become questions (behaviour
 * 7.8, 12.1). */
void notices_take(const struct question_origin *origin, struct str message);
/* A message of the server on a stream of the client's own. True when it is taken out of the stream.
 * For looks.take_message. */
bool question_take_from_stream(struct call *call, struct str message);

/* ---- answers ---- */
/* Takes a JSON-RPC response of the client's. True when it answered a question that is closed, or
 * one that is not of the client's own session: the call is then answered. Otherwise it is to be
 * relayed. */
bool question_take_response(struct call *call);
/* An elicitation-response, a member of tasks/get's _meta. false: `error` says why not. */
bool question_answer_in_task(struct gateway_worker *worker, const struct task *task,
                             struct str response, struct error *error);
enum question_verdict {
    QUESTION_ANSWERED,
    QUESTION_NOT_OPEN, /* no such question, or no longer */
    QUESTION_UNFIT,    /* the answer does not fit the question: `error` says why */
};
/* The fate of an answer that was sent to the server. */
struct question_delivery {
    bool has_arrived; /* the server has taken it */
    bool is_open;     /* it has not, and the question can be answered again */
    int status;       /* HTTP; 0 without a response */
    enum upstream_result result;
};
/* One of the two is called, once, on the loop of the worker that answered. */
struct question_receiver {
    void (*delivered)(void *context, const struct question_delivery *delivery);
    void (*dropped)(void *context); /* the worker ends */
    void *context;
};
/* By the tools. `action` and `content` are JSON text. The receiver is called only after
 * QUESTION_ANSWERED, and never before these return. */
struct question_tool_answer {
    struct gateway_worker *worker;
    struct str key, id; /* of whom it is for (question_find_key()); of the question */
    struct question_receiver receiver;
};
/* Of whom the question of this id is for: another session's of the owner of the call it was asked
 * in, else the client's. `key` has QUESTION_KEY_BYTES. */
void question_find_key(const struct call *call, struct str id, char key[]);
enum question_verdict question_answer_elicitation(const struct question_tool_answer *by,
                                                  struct str action, struct str content,
                                                  struct error *error);
/* `result` is the JSON text of a CreateMessageResult; empty: it is refused, with `reason`. */
enum question_verdict question_answer_sampling(const struct question_tool_answer *by,
                                               struct str result, struct str reason);

/* ---- the end of what they belong to ---- */
void question_end_task(struct gateway_worker *worker, const struct task *task);
void question_end_call(struct gateway_worker *worker, struct str key, uint64_t call);
/* Calls of a token outlive the session, and another one answers what they are asked. */
void question_end_session(struct gateway_worker *worker, struct str key);
/* Frees all questions that the worker took. At its end. */
void question_drop(struct gateway_worker *worker);
/* The number of the questions that the call brings; they end with it. */
uint64_t question_number(struct call *call);
/* The number of the questions that the call has brought so far, for a call that goes on without its
 * client. They do not end with the call any more. */
uint64_t question_take_number(struct call *call);

/* ---- how they are shown ---- */
/* Fills what is known of an execution's questions; `elicitations` holds the text. */
void question_view(struct gateway *gateway, const struct task *task, struct dialect_view *view,
                   struct buffer *elicitations);
/* Whether a question that was taken from the call's own stream waits for an answer, or one from the
 * session's, which may be any call's. */
bool question_is_open_without_task(const struct call *call);
/* The same by the number of the call's questions; 0: it brought none. */
bool question_is_open_in(const struct call *call, uint64_t number);
/* Whether the task's execution waits for an answer, or one is on its way, perhaps past people. On
 * the loop of the execution. */
bool question_keeps_server_waiting(struct gateway *gateway, const struct task *task);
/* Appends items of JSON arrays: {requestId, server, message} and {requestId, server}, of the client
 * `key`, of the source `server` and asked in calls of `owner` (each empty: any). */
void question_write_pending(struct gateway *gateway, struct str key, struct str server,
                            struct str owner, struct buffer *elicitations,
                            struct buffer *samplings);
/* The JSON array that get_elicitations or get_sampling_requests answers. Returns its length. */
size_t question_write_list(struct gateway *gateway, struct str key, enum question_kind kind,
                           struct buffer *out);

/* ---- on streams ---- */
/* Writes the open questions that this call's client can be sent on its open stream, as SSE events:
 * those of the task's execution, or any of this client for NULL. From then on they belong to the
 * stream, whose number is `claimant`. */
void question_claim(const struct call *call, const struct task *task, uint64_t *claimant,
                    struct buffer *events);
/* The stream has ended: other streams may get its questions. */
void question_release(struct gateway_worker *worker, uint64_t claimant);
/* Offers the task's open questions to the streams of every worker. */
void question_offer(struct gateway *gateway, struct task *task);
/* "answered in tasks/get", … */
const char *question_end_name(enum question_state state);

/* ---- what the rooms above learn of questions ---- */
/* gateway.c fills the table, so that this room calls none of them. Each function runs on the loop
 * of `worker`, and looks only at what belongs to that worker. */
struct question_events {
    /* The open questions of the task's execution have changed. While a person thinks, the server is
     * not silent. */
    void (*changed)(struct gateway_worker *worker, const struct task *task);
    /* The task's status has changed for clients that follow it. */
    void (*status)(struct gateway_worker *worker, struct task *task);
    /* The task's execution has an open question, which a client of this worker may be sent. */
    void (*offer)(struct gateway_worker *worker, const struct task *task);
    /* The same for a question of a client outside any task. */
    void (*offer_client)(struct gateway_worker *worker, struct str key);
    /* Sends the message on the stream of this number, if it is here. `task` may be NULL. */
    void (*send)(struct gateway_worker *worker, const struct task *task, uint64_t claimant,
                 struct str message);
};
