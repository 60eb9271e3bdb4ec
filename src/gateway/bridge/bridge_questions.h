/*
 * The questions of modern servers to legacy clients while their calls wait: a request `tg:…` to the
 * client for each, whose answer may come to any worker. Shared by all workers behind one short
 * lock, and bounded. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "call/worker.h"
#include "taskgate/core/buffer.h"

enum bridge_question_kind { BRIDGE_ELICITATION, BRIDGE_SAMPLING, BRIDGE_ROOTS };
#define BRIDGE_QUESTION_KIND_COUNT 3

/* A question and whose it is; borrowed. */
struct bridge_question {
    struct gateway_worker *worker; /* of the call that waits */
    uint64_t call;                 /* its number */
    enum bridge_question_kind kind;
    struct str source, session; /* of the call */
    struct str key;             /* the server's, the raw text between the quotes */
};

struct bridge_questions;

struct bridge_questions *bridge_questions_create(void);
void bridge_questions_destroy(struct bridge_questions *questions); /* NULL is allowed */

/* A number for a call that asks. */
uint64_t bridge_questions_next_number(void);
/* Appends the id of the request to the client, without quotes. false: too many are open. */
bool bridge_questions_add(struct bridge_questions *questions,
                          const struct bridge_question *question, struct buffer *id);
/* The answer has come: takes the question out, once. `key` gets the server's key. false: there is
 * none of this id, or it is of another session. */
bool bridge_questions_take(struct bridge_questions *questions, struct str id,
                           const struct bridge_question *by, struct bridge_question *taken,
                           struct buffer *key);
/* The call asks nothing any more. */
void bridge_questions_forget(struct bridge_questions *questions, uint64_t call);
