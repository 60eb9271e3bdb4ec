/*
 * The questions of one round, in the table of questions: what a server asks the client of a task
 * while its call runs, under keys of the gateway's own, and the answers so far. A key names its
 * round and is never used again.
 *
 * Any thread; questions are put, taken and forgotten on the loop of the call only.
 */
#pragma once

#include "question_table.h"
#include "taskgate/core/buffer.h"

struct server_link;

/* The requests of one round (JSON object, at least one member, at most QUESTIONS_PER_ROUND) take
 * the place of earlier ones. Those of a number that is there already keep their keys and answers,
 * and lose what is asked no more. false: they are the same as before. Requests for which the table
 * has no room are not asked, and the log says so. */
bool rounds_put(struct question_table *table, struct str task, int64_t number, struct str requests,
                int64_t now_ms);
/* One request of a round. */
struct round_request {
    uint64_t round;
    const char *name, *raw_key; /* of its answer: the gateway's, and as rounds_take() has it */
    struct str id, request;     /* at the server, JSON texts */
};
/* Adds it. false: the table has no room. */
bool rounds_add(struct question_table *table, struct str task, const struct round_request *added);
/* Takes out that of this key; NULL: there is none. */
struct question *rounds_pull(struct question_table *table, struct str task, struct str raw_key);
/* Takes out the first of the rounds up to `last` whose answer among `answers` (by name) is an
 * object; `answer` gets it. NULL: there is none. */
struct question *rounds_pull_answered(struct question_table *table, struct str task, uint64_t last,
                                      struct str answers, struct str *answer);
/* Gives the server of `up`, which has asked it there, the answer to one that was taken out, and
 * frees it. `result` is an object; empty: the client has not answered. */
void rounds_respond(struct server_link *up, struct question *question, struct str result);
/* Does so, without an answer, with all whose answers nobody has taken. */
void rounds_refuse(struct server_link *up, struct str task);
/* The server does not want an answer to what it has asked with this id. false: to nothing. */
bool rounds_withdraw(struct question_table *table, struct str task, struct str id);
/* Those that are neither withdrawn nor answered to the server; `open` (may be NULL): of these, the
 * ones whose answer nobody has taken. */
size_t rounds_count(struct question_table *table, struct str task, size_t *open);
/* Appends the open requests, a JSON object. false: nothing is asked. */
bool rounds_show(struct question_table *table, struct str task, struct buffer *requests,
                 int64_t *changed_ms);
/* Takes the answers (JSON object) to open requests; other keys count for nothing. true: it was the
 * answer to one at least. */
bool rounds_answer(struct question_table *table, struct str task, struct str answers,
                   int64_t now_ms);
/* JSON objects by the server's keys, in one order; empty at first. */
struct rounds_taken {
    struct buffer answers, questions;
};
void rounds_taken_finish(struct rounds_taken *taken);
/* Takes all the answers, each once. false: some are still missing, or nothing was asked. */
bool rounds_take(struct question_table *table, struct str task, struct rounds_taken *taken);
/* The same with the answers that there are. false: there is none. */
bool rounds_take_some(struct question_table *table, struct str task, struct rounds_taken *taken);
/* false: there were none. */
bool rounds_forget(struct question_table *table, struct str task);
