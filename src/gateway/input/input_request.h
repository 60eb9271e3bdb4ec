/*
 * The requests of upstream in a call that the gateway runs, or in a session it answers for:
 * elicitation/create and sampling/createMessage. Each waits for the first answer, and ends by its
 * own clock (seed 000 §1.2, §1.3; seed 001).
 *
 * The ways to an answer: the request itself on a stream of a client that declared the
 * capability; pending-elicitations and elicitation-response in a task; the pseudo-task tools.
 */
#pragma once

#include "call/call.h"
#include "call/headers.h"
#include "input_table.h"

/* The client that can answer, as far as its request shows. */
struct input_audience {
    char key[INPUT_KEY_BYTES]; /* "": an owner without a name */
    char owner[OWNER_BYTES];
    bool can[INPUT_KIND_COUNT];
    /* The client must not be asked: it declares tasks and not the capability. Or there is no client
     * at all. */
    bool is_closed;
};

/* The request must have been identified and its facts loaded. */
void input_audience(const struct call *call, struct input_audience *audience);

/* Whether the client is shown tools that can answer: an elicitation, or a request to sample. Then
 * its `initialize` gets the capability. */
bool input_has_tools(const struct call *call, enum input_kind kind);

struct input_response;
/* A question whose answer is not sent to the server; borrowed. */
struct input_asked {
    struct gateway_worker *asker; /* of the worker that took it */
    struct task *task;            /* or NULL */
    uint64_t call;
    enum input_kind kind;
    struct str id; /* the server's, JSON text */
};
/* Takes the response in place of the server. On any worker. */
typedef void (*input_answer_taker)(struct gateway_worker *worker, const struct input_asked *asked,
                                   const struct input_response *response);

/* The origin of a request of upstream's; all borrowed. */
struct input_origin {
    struct gateway_worker *worker;
    struct snapshot *snapshot;
    const struct config_source *source; /* of the snapshot */
    const struct headers *headers; /* the headers of the answer to the server; NULL with a taker */
    const char *session;           /* digest of upstream's session, or "" */
    const struct input_audience *audience;
    struct task *task; /* its execution asks; NULL: a client's own stream */
    uint64_t call;     /* input_end_call() ends it; 0: the session does */
    bool is_on_stream; /* of the session: of no call that is known */
    /* The server has asked in an answer, and gets the response in a request: with a task. NULL: it
     * is sent to the server. */
    input_answer_taker take_answer;
};

/* A response to upstream's request. `result` and `error` are JSON text; without both it is an error
 * of the gateway's own. */
struct input_response {
    struct str result;
    struct str error;
    int error_code;
    struct str error_message;
};

/* Whether it is a request that a server may ask a client. */
bool input_read_kind(struct str request, enum input_kind *kind);
const char *input_method(enum input_kind kind);
/* The most requests of one round. */
#define INPUTS_PER_ROUND INPUTS_PER_KEY
/* Whether what a modern server requires is what the protocol has: requests that a client may be
 * asked, not too many, and a way to go on. */
bool input_round_is_well_formed(struct str requests, struct str state);
/* Whether the method is one of the two that a legacy server's client answers in a task. */
bool input_is_asked_by(struct str method, enum input_kind *kind);
/* Takes a request of the server: offers it to the audience, or declines at once when nobody can
 * answer. `message` is whole and json_check() has accepted it. Whether it waits for an answer now.
 */
bool input_take(const struct input_origin *origin, struct str message);
/* The same where the call itself sends the request to its client, by the id (without quotes) that
 * `own_id` gets: no stream, tool or task shows it. The client's response counts if it comes in the
 * session of `origin`. The caller keeps the clock; input_end_call() ends it. `id` is the server's,
 * JSON text. false: too many are open. */
bool input_ask_in_call(const struct input_origin *origin, enum input_kind kind, struct str id,
                       struct buffer *own_id);
/* The key of the questions of one call. */
void input_key_of_call(uint64_t call, char key[]);
/* Upstream's notifications/cancelled: true when it was about a question that was taken. */
bool input_take_cancel(const struct input_origin *origin, struct str message);

/* A message of the server on a stream of the client's own. True when it is taken out of the stream.
 * For relay_options.take_message. */
bool input_take_from_stream(struct call *call, struct str message);

/* ---- answers ---- */
/* Takes a JSON-RPC response of the client's. True when it answered an input that is closed, or one
 * that is not of the client's own session: the call is then answered. Otherwise it is to be
 * relayed. */
bool input_take_response(struct call *call);
/* Seed 001's elicitation-response, a member of tasks/get's _meta. false: `error` says why not. */
bool input_answer_in_task(struct gateway_worker *worker, const struct task *task,
                          struct str response, struct error *error);
enum input_verdict {
    INPUT_ANSWERED,
    INPUT_NOT_OPEN, /* no such question, or no longer */
    INPUT_UNFIT,    /* the answer does not fit the question: `error` says why */
};
/* The fate of an answer that was sent to the server. */
struct input_delivery {
    bool has_arrived; /* the server has taken it */
    bool is_open;     /* it has not, and the question can be answered again */
    int status;       /* HTTP; 0 without a response */
    enum upstream_result result;
};
/* One of the two is called, once, on the loop of the worker that answered. */
struct input_receiver {
    void (*delivered)(void *context, const struct input_delivery *delivery);
    void (*dropped)(void *context); /* the worker ends */
    void *context;
};
/* By the tools. `action` and `content` are JSON text. The receiver is called only after
 * INPUT_ANSWERED, and never before these return. */
struct input_tool_answer {
    struct gateway_worker *worker;
    struct str key, id; /* of whom it is for (input_find_key()); of the question */
    struct input_receiver receiver;
};
/* Of whom the question of this id is for: another session's of the owner of the call it was asked
 * in, else the client's. `key` has INPUT_KEY_BYTES. */
void input_find_key(const struct call *call, struct str id, char key[]);
enum input_verdict input_answer_elicitation(const struct input_tool_answer *by, struct str action,
                                            struct str content, struct error *error);
/* `result` is the JSON text of a CreateMessageResult; empty: it is refused, with `reason`. */
enum input_verdict input_answer_sampling(const struct input_tool_answer *by, struct str result,
                                         struct str reason);

/* ---- the end of what they belong to ---- */
void input_end_task(struct gateway_worker *worker, const struct task *task);
void input_end_call(struct gateway_worker *worker, struct str key, uint64_t call);
/* Calls of a token outlive the session, and another one answers what they are asked. */
void input_end_session(struct gateway_worker *worker, struct str key);
/* Frees all inputs that the worker took. At its end. */
void input_drop(struct gateway_worker *worker);
/* The number of the inputs that the call has brought so far, for a call that goes on without its
 * client. They do not end with the call any more. */
uint64_t input_take_number(struct call *call);

/* ---- how they are shown ---- */
/* Fills what is known of an execution's questions; `elicitations` holds the text. */
void input_view(struct gateway *gateway, const struct task *task, struct dialect_view *view,
                struct buffer *elicitations);
/* Whether the task's execution waits for an answer. */
bool input_is_open(struct gateway *gateway, const struct task *task);
/* Whether a question that was taken from the call's own stream waits for an answer, or one from the
 * session's, which may be any call's. */
bool input_is_open_without_task(const struct call *call);
/* The same by the number of the call's questions; 0: it brought none. */
bool input_is_open_in(const struct call *call, uint64_t number);
/* Whether the task's execution waits for an answer, or one is on its way, perhaps past people. On
 * the loop of the execution. */
bool input_keeps_server_waiting(struct gateway *gateway, const struct task *task);
/* Appends items of JSON arrays: {requestId, server, message} and {requestId, server}, of the client
 * `key`, of the source `server` and asked in calls of `owner` (each empty: any). */
void input_write_pending(struct gateway *gateway, struct str key, struct str server,
                         struct str owner, struct buffer *elicitations, struct buffer *samplings);
/* The JSON array that get_elicitations or get_sampling_requests answers. Returns its length. */
size_t input_write_list(struct gateway *gateway, struct str key, enum input_kind kind,
                        struct buffer *out);

/* ---- on streams ---- */
/* Writes the open inputs that this call's client can be sent on its open stream, as SSE events:
 * those of the task's execution, or any of this client for NULL. From then on they belong to the
 * stream, whose number is `claimant`. */
void input_claim(const struct call *call, const struct task *task, uint64_t *claimant,
                 struct buffer *events);
/* The stream has ended: other streams may get its inputs. */
void input_release(struct gateway_worker *worker, uint64_t claimant);
/* Offers the task's open inputs to the streams of every worker. */
void input_offer(struct gateway *gateway, struct task *task);
/* "answered in tasks/get", … */
const char *input_end_name(enum input_state state);
