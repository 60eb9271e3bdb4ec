/* A conversation itself, for the files that lead it. */
#pragma once

#include "conversation.h"
#include "conversation/question_table.h"
#include "taskgate/core/magic.h"
#include "taskgate/mcp/legacy_server.h"

/* So many questions of one call may be open, and so many bytes wait for its client. */
#define CONVERSATION_MOST_QUESTIONS 32
#define CONVERSATION_HELD_BYTES ((size_t)1024 * 1024)
/* Rounds in which one call asks its client: clients give up after so many. */
#define CONVERSATION_MOST_ROUNDS 50

/* A request of the server's that waits for the client's answer. */
struct server_question {
    struct list node;
    char key[32];          /* "r<round>.<number>" */
    struct buffer id;      /* the server's, JSON text */
    struct buffer request; /* a value of inputRequests */
    enum legacy_question kind;
    bool is_asked; /* the client has been shown it */
};

/* A notification that waits for the next leg. */
struct held_message {
    struct list node;
    struct buffer text;
};

struct conversation {
    uint32_t magic;   /* CONVERSATION_MAGIC */
    struct list node; /* in worker.conversations */
    struct gateway_worker *worker;
    struct snapshot *snapshot;
    struct legacy_session *session;
    struct exchange *exchange; /* first the log level's, then the call's */
    struct buffer body;        /* of the call, until it is sent */
    struct buffer request_id;  /* JSON text of the id that the server sees */
    struct headers headers;    /* that the call is sent with */
    struct buffer declared;    /* clientCapabilities of the first leg, or empty: nothing is asked */
    struct trace_context trace; /* of the call; with has_trace, as the next */
    struct buffer trace_state;
    bool has_trace;
    int64_t silence_ms;
    char leg[RANDOM_UUID_BYTES]; /* "" while the client has no request open */
    char handle[TASK_ID_BYTES];  /* "" before the first round */
    int64_t round;
    struct question asked; /* the round, in the table of questions with the first one */
    struct list questions;
    size_t question_count, numbered;
    struct list held;
    size_t held_bytes;
    struct loop_timer gather;   /* servers ask several things at once */
    struct loop_timer patience; /* with a client that was asked, and who is told of its end */
    void (*unanswered)(struct conversation *conversation);
    struct buffer answer; /* the server's response, when no leg is there for it */
    bool is_answered;
    enum relay_failure failure; /* with is_answered, without `answer` */
};
#define CONVERSATION_MAGIC 0x47574255

static inline struct conversation *conversation_from(void *context)
{
    return MAGIC_CAST(struct conversation, CONVERSATION_MAGIC, context);
}

/* ---- conversation.c ---- */
/* Sends a notification of the server's to the leg. */
void conversation_pass(struct conversation *conversation, struct str message);
/* Answers the leg with what the server has answered, and ends. */
void conversation_send_outcome(struct conversation *conversation);
/* Ends it: gives the session back, frees it. */
void conversation_end(struct conversation *conversation);
/* Ends it before the server has answered: the server is told. */
void conversation_cancel(struct conversation *conversation, const char *reason);

/* ---- conversation_questions.c ---- */
/* `unanswered` ends it: the server has been told that its questions have no answers. */
void conversation_questions_init(struct conversation *conversation,
                                 void (*unanswered)(struct conversation *conversation));
void conversation_questions_finish(struct conversation *conversation);
/* A request of the server's, on the call's stream or its session's. */
void conversation_take_request(struct conversation *conversation, struct str message);
/* The server does not want an answer any more. */
void conversation_drop_question(struct conversation *conversation, struct str request_id);
/* Gives the answers up. Whether all that was asked is answered now. */
bool conversation_take_answers(struct conversation *conversation, struct str answers);
/* Asks the client what is open, on its leg. */
void conversation_ask(struct conversation *conversation);
