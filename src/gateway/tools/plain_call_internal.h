/* A plain call that is a task, for the files that run and answer it. */
#pragma once

#include "call/call.h"
#include "call/client_profile.h"
#include "call/request_state.h"
#include "inbox/repeated_calls.h"
#include "plain_call.h"
#include "state/tool_catalog.h"

struct plain_call {
    struct call_part part;
    struct gateway *gateway;
    struct policy_decision decision;
    struct catalog_tool tool;
    char *key;              /* call_memory.h: of the client; "": nobody can be told from another */
    struct task *task;      /* until the wait begins, and once it has ended without an outcome */
    int64_t began_ms;       /* by the loop's clock */
    int64_t decide_by_ms;   /* of it, when it was read last */
    char id[TASK_ID_BYTES]; /* of it; "" before there is one */
    char digest[DIGEST_HEX_BYTES];
    bool accelerated;
    bool is_held;    /* nothing is left to ask its user, or to be recorded of that */
    bool is_waiting; /* the body is forgotten */
    bool is_pending; /* the task was, when it was read last */
    bool is_joined;  /* an earlier call made it */
    bool is_late;    /* it had been decided when this call came */
    bool is_told;    /* the client has the outcome */
    bool has_state;  /* the client has sent back what it was given; `state` has it opened */
    int attempts;
    struct request_state state;
    call_step confirmed; /* the next step when the user's word has been recorded */
    call_step forward; /* of a call that is forwarded unless it joins: how it goes up; else NULL */
};

/* ---- plain_call_part.c ---- */
extern const struct call_part_kind plain_call_kind;
/* The call's. */
struct plain_call *plain_call_of(const struct call *call);
/* Shows the task as it is now; takes a reference. */
void plain_call_set_task(struct plain_call *plain, struct task *task);
/* Its wait has ended without the outcome, which the same call made again gets. */
void plain_call_leave(const struct call *call, const struct plain_call *plain);
/* As which it can be joined by the same call made again. */
struct repeated_call plain_call_join(const struct plain_call *plain);

/* ---- plain_call_questions.c ---- */
/* Hands on what the repeated call answers to the server. */
void plain_call_take_answers(struct call *call, const struct plain_call *plain);
/* True: the call is answered with what the server asks now. */
bool plain_call_asks(struct call *call, const struct plain_call *plain);

/* ---- plain_call_answer.c ---- */
/* The task has ended. */
void plain_call_answer_outcome(struct call *call, const struct plain_call *plain,
                               const struct task *task);
/* It has not, and the client is asked to repeat the call: modern ones do so at once. */
void plain_call_answer_state(struct call *call, const struct plain_call *plain);
/* The same with requests that the client answers first (JSON object). */
void plain_call_answer_asking(struct call *call, const struct plain_call *plain,
                              struct str requests, enum request_state_kind kind);
/* It has not; `working` holds the client's tasks that have not. */
void plain_call_answer_pending(struct call *call, const struct plain_call *plain,
                               const struct store_reply *working);
