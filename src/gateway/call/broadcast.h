/*
 * A message from one worker to all of them, its own included. Each kind is a struct of its own;
 * borrowed parts are copied for each worker. Any thread may send.
 */
#pragma once

#include <stdatomic.h>

#include "worker.h"

struct broadcast_kind {
    size_t bytes; /* of the message's struct; 0: there is none, and `message` is NULL everywhere */
    size_t texts; /* so many struct str, with which it begins, are copied for each worker */
    /* Copies what else the message has borrowed. NULL: it borrows nothing else. */
    void (*own)(void *message);
    /* Frees the copies of `own`. NULL if `own` is. */
    void (*finish)(void *message);
    /* On the loop of each worker. */
    void (*deliver)(struct gateway_worker *worker, const void *message);
};

/* Delivers a copy of `message` to every worker, later. `kind` must live as long as the process. */
void broadcast_send(struct gateway *gateway, const struct broadcast_kind *kind,
                    const void *message);

/* Calls `deliver` on every worker with the task and a copy of the text, which may be empty. */
void broadcast_task(struct gateway *gateway, struct task *task, struct str text,
                    void (*deliver)(struct gateway_worker *worker, struct task *task,
                                    struct str text));
/* The same with the client_key_of_call() of a client. */
void broadcast_client(struct gateway *gateway, struct str key,
                      void (*deliver)(struct gateway_worker *worker, struct str key));

/* A copy of the text, for an `own`; broadcast_release() frees it. */
struct str broadcast_copy(struct str text);
void broadcast_release(struct str copy);

/*
 * A question of one worker to all of them. One that knows the answer gives it: a call's credentials
 * are at the worker that got the call, and the asker does not know which one that is.
 *
 * The asker waits for a message, never for a thread, and not for ever. The maker of an inquiry
 * embeds it as the first member `base` of an object. All workers share that object until the last
 * of them has looked. `answer` alone writes to it, and `done` comes after `answer`.
 */

/* The time that the workers have. Each needs a fraction of a millisecond, behind what its loop is
 * doing already. */
#define INQUIRY_PATIENCE_MS 1000

enum inquiry_end {
    INQUIRY_ANSWERED, /* by one worker, and no more than one */
    INQUIRY_UNKNOWN,  /* all have looked, and none knows */
    INQUIRY_LATE,     /* a worker has not looked in time; from now on none answers */
};

struct inquiry;

/* One constant for each kind. */
struct inquiry_kind {
    /* Whether this worker knows the answer. It changes nothing. On the loop of each worker. */
    bool (*knows)(struct gateway_worker *worker, struct inquiry *inquiry);
    /* Writes the answer into the object. On the loop of a worker that knows it, at most once. */
    void (*answer)(struct gateway_worker *worker, struct inquiry *inquiry);
    /* On the asker's loop, once. */
    void (*done)(struct inquiry *inquiry, enum inquiry_end end);
    /* Frees the object. On any thread, after all the others. */
    void (*destroy)(struct inquiry *inquiry);
};

struct inquiry {
    uint32_t magic; /* INQUIRY_MAGIC */
    const struct inquiry_kind *kind;
    struct gateway_worker *asker;
    atomic_int state; /* of broadcast.c */
    atomic_size_t still_to_look;
    atomic_int references;      /* the asker's until `done`, and that of each message under way */
    struct loop_timer patience; /* the asker's */
};
#define INQUIRY_MAGIC 0x47576171

static inline struct inquiry *inquiry_from(void *context)
{
    return MAGIC_CAST(struct inquiry, INQUIRY_MAGIC, context);
}

/* Begins the inquiry in zeroed memory, which it owns from now on. The asker itself is asked first:
 * where it knows, or is alone, `done` comes before this returns. On the asker's loop. */
void inquiry_begin(struct inquiry *inquiry, const struct inquiry_kind *kind,
                   struct gateway_worker *asker);
