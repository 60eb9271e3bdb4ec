/*
 * The questions of upstream's that wait for an answer, and for a while those that no longer do:
 * one table for all workers behind one short lock, bounded, found by whom they are for. Any
 * thread.
 *
 * A question's memory belongs to the loop that took it. Exactly one caller closes a question. This
 * caller may read it until it notifies that loop of the closing. All others see a question only in
 * a walk.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskgate/core/digest.h"
#include "taskgate/core/list.h"
#include "taskgate/core/random.h"
#include "taskgate/core/str.h"

/* "<source>/session:<digest>", "<source>/<owner>", or the task of an anonymous owner. */
#define QUESTION_KEY_BYTES 256
#define QUESTIONS_PER_KEY 100 /* open ones; four times as many are remembered */
#define QUESTIONS_MOST 10000
/* Of their texts, until they are forgotten. */
#define QUESTION_BYTES_PER_KEY ((size_t)4 * 1024 * 1024)
#define QUESTION_BYTES_MOST ((size_t)128 * 1024 * 1024)

/* Roots are asked by modern servers alone, of legacy clients that declare them: no tool of the
 * gateway's answers it. A round is all that a call at a legacy server asks its modern client at
 * once, which answers by a request that names the call (conversation.h). One in a round
 * is shown in its task, whatever it asks (rounds.h). */
enum question_kind {
    QUESTION_ELICITATION,
    QUESTION_SAMPLING,
    QUESTION_ROOTS,
    QUESTION_ROUND,
    QUESTION_IN_ROUND,
};
#define QUESTION_KIND_COUNT 3 /* of those that a client is sent as requests */
/* The most requests of one round. */
#define QUESTIONS_PER_ROUND QUESTIONS_PER_KEY

enum question_state {
    QUESTION_OPEN,
    QUESTION_ANSWERED_ON_STREAM, /* by the client's own JSON-RPC response */
    QUESTION_ANSWERED_IN_TASK,   /* by elicitation-response in tasks/get */
    QUESTION_ANSWERED_BY_TOOL,
    QUESTION_EXPIRED,
    QUESTION_WITHDRAWN, /* upstream wants no answer any more */
    QUESTION_REJECTED,  /* the call has ended, or the server or the session has gone */
};

struct question {
    struct list node; /* in its bucket */
    /* Set before it is added, never changed. */
    char id[RANDOM_UUID_BYTES];
    enum question_kind kind;
    char key[QUESTION_KEY_BYTES];
    char session[DIGEST_HEX_BYTES]; /* upstream's session, or "" */
    char *source;                   /* id */
    char *task;                     /* id of the task whose execution asks, or "" */
    char *upstream_id;              /* JSON text of the request's id */
    char *message;                  /* the whole request */
    uint64_t call;                  /* the relayed call that it belongs to, or its round's number */
    bool is_on_stream;              /* it came on the session's own stream */
    bool ends_with_session;         /* so it does, or in a call that the session owns */
    void *owner;                    /* the object on the loop that took it; NULL: a round's */
    char *name;     /* of one in a round: the key of its answer, JSON text; or NULL */
    char *asked_id; /* of one in a round: its id at a server that names it so, JSON text; or NULL */
    /* Under the lock. */
    int64_t asked_ms; /* wall clock */
    enum question_state state;
    int64_t closed_ms;
    bool has_ended;    /* the request has ended, or the server wants no answer any more: it opens no
                          more */
    uint64_t claimant; /* the stream that it was sent on; 0: none. Fixed once it is closed */
    bool sent_as_it_came; /* with upstream's own id, else with ours */
    char answer[DIGEST_HEX_BYTES];
    char *text;    /* the answer in a round, JSON text */
    bool is_taken; /* the call has it */
};

/* Selects questions. A member that is empty or 0 is not compared. */
struct question_match {
    bool has_kind;
    enum question_kind kind;
    struct str id;          /* ours, or the elicitationId of a form that is a URL */
    struct str upstream_id; /* JSON text */
    struct str session;     /* with upstream_id */
    struct str task;
    struct str name; /* decoded */
    uint64_t call;
    bool is_on_stream;
    bool ends_with_session;
};

struct question_table;

struct question_table *question_table_create(void);
/* The table must be empty, but for questions in rounds, which it frees. NULL is allowed. */
void question_table_destroy(struct question_table *table);
/* Of all clients, closed questions included; needs no lock. */
size_t question_table_count(const struct question_table *table);

enum question_added { QUESTION_ADDED, QUESTION_REPEATED, QUESTION_TOO_MANY };
/* Repeated: the same request of the same session, and of its task, waits already. */
enum question_added question_table_add(struct question_table *table, struct question *question);
void question_table_remove(struct question_table *table, struct question *question);

/* Those in a round of `key` make room for `fresh`, which has them afterwards and the caller frees.
 * An answer stays with the question of its name. false: some of `fresh` had no room, and are in it
 * still. */
bool question_table_replace(struct question_table *table, struct str key, struct list *fresh);
void question_free_in_round(struct question *question);

/* How to close a question. The last two members say what was found when no open one matches. */
struct question_closing {
    enum question_state state;
    const char *answer; /* its digest, or NULL */
    struct str text;    /* the answer itself in a round, which the table copies; or empty */
    int64_t now_ms;
    /* Of the oldest closed one that matches: QUESTION_OPEN when there is none either. */
    enum question_state was;
    char was_answer[DIGEST_HEX_BYTES];
};
/* Closes the oldest open question of `key` that matches, and returns it: the caller is the one
 * who closed it. NULL when none is open. */
struct question *question_table_close(struct question_table *table, struct str key,
                                      const struct question_match *match,
                                      struct question_closing *closing);

/* Opens a question again that the caller has closed. False when its request has ended meanwhile:
 * then it is QUESTION_REJECTED. A round is opened as the next one: its number is counted up. */
bool question_table_reopen(struct question_table *table, struct question *question);
/* The request of upstream's has ended: no closed question of `key` that matches opens again. */
void question_table_end(struct question_table *table, struct str key,
                        const struct question_match *match);

/* A walk over questions, which holds the lock until it is at its end: every walk must come there,
 * and be short. What the lock guards may change meanwhile. */
struct question_walk {
    struct question_table *table; /* NULL: it is at its end */
    const struct question_match *match;
    struct list *next, *end; /* in a bucket */
    bool is_over_all;
    size_t position; /* then in the map of ids */
    struct question *question;
};
/* Over those of `key` that match (NULL: all), oldest first; `match` is borrowed. */
struct question_walk question_walk(struct question_table *table, struct str key,
                                   const struct question_match *match);
/* Over the one question of this id, of any client. */
struct question_walk question_walk_id(struct question_table *table, struct str id);
/* Over every question there is. */
struct question_walk question_walk_all(struct question_table *table);
/* The next question; NULL: there is none, and the walk has ended. */
struct question *question_walk_next(struct question_walk *walk);
/* Takes the present question out of the table. */
void question_walk_remove(struct question_walk *walk);
/* A new number, for the calls that questions come in and the streams that claim them. Never 0. */
uint64_t question_next_number(void);
