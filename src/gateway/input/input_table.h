/*
 * The questions of upstream's that wait for an answer, and for a while those that no longer do:
 * one table for all workers behind one short lock, bounded, found by whom they are for. Any
 * thread.
 *
 * A question's memory belongs to the loop that took it. Exactly one caller closes a question. This
 * caller may read it until it tells that loop of the closing. All others see a question only from
 * inside a visit.
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
#define INPUT_KEY_BYTES 256
#define INPUTS_PER_KEY 100 /* open ones; four times as many are remembered */
#define INPUTS_MOST 10000
/* Of their texts, until they are forgotten. */
#define INPUT_BYTES_PER_KEY ((size_t)4 * 1024 * 1024)
#define INPUT_BYTES_MOST ((size_t)128 * 1024 * 1024)

/* The last is asked by modern servers alone, of legacy clients that declare roots: no tool of the
 * gateway's answers it. */
enum input_kind { INPUT_ELICITATION, INPUT_SAMPLING, INPUT_ROOTS };
#define INPUT_KIND_COUNT 3

enum input_state {
    INPUT_OPEN,
    INPUT_ANSWERED_ON_STREAM, /* by the client's own JSON-RPC response */
    INPUT_ANSWERED_IN_TASK,   /* by elicitation-response in tasks/get */
    INPUT_ANSWERED_BY_TOOL,
    INPUT_EXPIRED,
    INPUT_WITHDRAWN, /* upstream wants no answer any more */
    INPUT_REJECTED,  /* the call has ended, or the server or the session has gone */
};

struct input_request {
    struct list node; /* in its bucket */
    /* Set before it is added, never changed. */
    char id[RANDOM_UUID_BYTES];
    enum input_kind kind;
    char key[INPUT_KEY_BYTES];
    char session[DIGEST_HEX_BYTES]; /* upstream's session, or "" */
    char *source;                   /* id */
    char *task;                     /* id of the task whose execution asks, or "" */
    char *upstream_id;              /* JSON text of the request's id */
    char *message;                  /* the whole request */
    uint64_t call;                  /* the relayed call that it belongs to; 0: none */
    bool is_on_stream;              /* it came on the session's own stream */
    bool ends_with_session;         /* so it does, or in a call that the session owns */
    int64_t asked_ms;               /* wall clock */
    void *owner;                    /* the object on the loop that took it */
    /* Under the lock. */
    enum input_state state;
    int64_t closed_ms;
    bool has_ended;    /* the request has ended, or the server wants no answer any more: it opens no
                          more */
    uint64_t claimant; /* the stream that it was sent on; 0: none. Fixed once it is closed */
    bool sent_as_it_came; /* with upstream's own id, else with ours */
    char answer[DIGEST_HEX_BYTES];
};

/* Selects inputs. A member that is empty or 0 is not compared. */
struct input_match {
    bool has_kind;
    enum input_kind kind;
    struct str id;          /* ours, or the elicitationId of a form that is a URL */
    struct str upstream_id; /* JSON text */
    struct str session;     /* with upstream_id */
    struct str task;
    uint64_t call;
    bool is_on_stream;
    bool ends_with_session;
};

struct input_table;

struct input_table *input_table_create(void);
/* The table must be empty. NULL is allowed. */
void input_table_destroy(struct input_table *table);
/* Of all clients, closed inputs included; needs no lock. */
size_t input_table_count(const struct input_table *table);

enum input_added { INPUT_ADDED, INPUT_REPEATED, INPUT_TOO_MANY };
/* Repeated: the same request of the same session waits already. */
enum input_added input_table_add(struct input_table *table, struct input_request *input);
void input_table_remove(struct input_table *table, struct input_request *input);

/* How to close an input. The last two members say what was found when no open one matches. */
struct input_closing {
    enum input_state state;
    const char *answer; /* its digest, or NULL */
    int64_t now_ms;
    /* Of the oldest closed one that matches: INPUT_OPEN when there is none either. */
    enum input_state was;
    char was_answer[DIGEST_HEX_BYTES];
};
/* Closes the oldest open question of `key` that matches, and returns it: the caller is the one
 * who closed it. NULL when none is open. */
struct input_request *input_table_close(struct input_table *table, struct str key,
                                        const struct input_match *match,
                                        struct input_closing *closing);

/* Opens an input again that the caller has closed. False when its request has ended meanwhile: then
 * it is INPUT_REJECTED. */
bool input_table_reopen(struct input_table *table, struct input_request *input);
/* The request of upstream's has ended: no closed input of `key` that matches opens again. */
void input_table_end(struct input_table *table, struct str key, const struct input_match *match);

/* Calls `visit` under the lock for every question of `key` that matches (NULL: all), oldest
 * first; it may change what stands under the lock but must be short. */
typedef void (*input_visit)(void *context, struct input_request *input);
void input_table_visit(struct input_table *table, struct str key, const struct input_match *match,
                       input_visit visit, void *context);
/* As input_table_visit(), for the one input of this id, of any client. */
void input_table_visit_id(struct input_table *table, struct str id, input_visit visit,
                          void *context);
/* Calls `visit` under the lock for every question there is. */
void input_table_visit_all(struct input_table *table, input_visit visit, void *context);
/* Takes out one input that `is_own` accepts; NULL when none is left. */
struct input_request *input_table_take(struct input_table *table,
                                       bool (*is_own)(const void *context,
                                                      const struct input_request *),
                                       const void *context);
/* A new number, for the calls that inputs come in and the streams that claim them. Never 0. */
uint64_t input_next_number(void);
