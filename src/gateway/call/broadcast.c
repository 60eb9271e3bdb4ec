/* Messages from one worker to all of them. */
#include "broadcast.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"

/* A message on its way to one worker; its bytes follow. */
struct delivery {
    struct gateway_worker *worker;
    const struct broadcast_kind *kind;
    _Alignas(max_align_t) unsigned char message[];
};

struct str broadcast_copy(struct str text)
{
    return str_slice(memory_copy_str(text), text.length);
}

void broadcast_release(struct str copy)
{
    free((void *)(uintptr_t)copy.bytes);
}

static void broadcast_deliver(void *context)
{
    struct delivery *delivery = context;
    const struct broadcast_kind *kind = delivery->kind;
    kind->deliver(delivery->worker, kind->bytes > 0 ? delivery->message : NULL);
    if (kind->finish)
        kind->finish(delivery->message);
    for (size_t i = 0; i < kind->texts; i++)
        broadcast_release(((const struct str *)(void *)delivery->message)[i]);
    free(delivery);
}

void broadcast_send(struct gateway *gateway, const struct broadcast_kind *kind, const void *message)
{
    ASSERT_NUMBERS(kind->texts * sizeof(struct str), <=, kind->bytes);
    for (size_t i = 0; i < gateway->worker_count; i++) {
        struct delivery *delivery = memory_alloc(sizeof *delivery + kind->bytes);
        delivery->worker = gateway->workers[i];
        delivery->kind = kind;
        if (kind->bytes > 0)
            memcpy(delivery->message, message, kind->bytes);
        for (size_t at = 0; at < kind->texts; at++) {
            struct str *text = (struct str *)(void *)delivery->message + at;
            *text = broadcast_copy(*text);
        }
        if (kind->own)
            kind->own(delivery->message);
        loop_post(gateway->workers[i]->loop, broadcast_deliver, delivery);
    }
}

struct task_broadcast {
    struct str text;
    struct task *task;
    void (*deliver)(struct gateway_worker *worker, struct task *task, struct str text);
};

static void task_broadcast_own(void *message)
{
    task_ref(((struct task_broadcast *)message)->task);
}

static void task_broadcast_finish(void *message)
{
    task_unref(((struct task_broadcast *)message)->task);
}

static void task_broadcast_deliver(struct gateway_worker *worker, const void *message)
{
    const struct task_broadcast *broadcast = message;
    broadcast->deliver(worker, broadcast->task, broadcast->text);
}

void broadcast_task(struct gateway *gateway, struct task *task, struct str text,
                    void (*deliver)(struct gateway_worker *worker, struct task *task,
                                    struct str text))
{
    static const struct broadcast_kind kind = {.bytes = sizeof(struct task_broadcast),
                                               .texts = 1,
                                               .own = task_broadcast_own,
                                               .finish = task_broadcast_finish,
                                               .deliver = task_broadcast_deliver};
    broadcast_send(gateway, &kind, &(struct task_broadcast){text, task, deliver});
}

struct client_broadcast {
    struct str key;
    void (*deliver)(struct gateway_worker *worker, struct str key);
};

static void client_broadcast_deliver(struct gateway_worker *worker, const void *message)
{
    const struct client_broadcast *broadcast = message;
    broadcast->deliver(worker, broadcast->key);
}

void broadcast_client(struct gateway *gateway, struct str key,
                      void (*deliver)(struct gateway_worker *worker, struct str key))
{
    static const struct broadcast_kind kind = {
        .bytes = sizeof(struct client_broadcast), .texts = 1, .deliver = client_broadcast_deliver};
    broadcast_send(gateway, &kind, &(struct client_broadcast){key, deliver});
}

/* A question of one worker to all of them. */

/* One thread moves it on from ASKED, and that thread alone sees to the end. */
enum state { ASKED, ANSWERED, UNKNOWN, LATE };

static bool move_on(struct inquiry *inquiry, enum state to)
{
    int asked = ASKED;
    return atomic_compare_exchange_strong(&inquiry->state, &asked, (int)to);
}

static void broadcast_unref(struct inquiry *inquiry)
{
    if (atomic_fetch_sub(&inquiry->references, 1) > 1)
        return;
    MAGIC_CLEAR(inquiry);
    inquiry->kind->destroy(inquiry);
}

/* ---- the end ---- */

static void end(struct inquiry *inquiry)
{
    static const enum inquiry_end ends[] = {
        [ANSWERED] = INQUIRY_ANSWERED, [UNKNOWN] = INQUIRY_UNKNOWN, [LATE] = INQUIRY_LATE};
    loop_timer_stop(&inquiry->patience);
    inquiry->kind->done(inquiry, ends[atomic_load(&inquiry->state)]);
    broadcast_unref(inquiry);
}

static void on_end(void *context)
{
    end(inquiry_from(context));
}

static void broadcast_on_out_of_patience(void *context)
{
    struct inquiry *inquiry = inquiry_from(context);
    if (move_on(inquiry, LATE))
        end(inquiry); /* else the message of the end is under way */
}

/* ---- looking ---- */

/* The message to each worker. */
struct look {
    struct inquiry *inquiry;
};

static void broadcast_own(void *message)
{
    atomic_fetch_add(&((struct look *)message)->inquiry->references, 1);
}

static void release(void *message)
{
    broadcast_unref(((struct look *)message)->inquiry);
}

static bool answers(struct gateway_worker *worker, struct inquiry *inquiry)
{
    if (atomic_load(&inquiry->state) != ASKED || !inquiry->kind->knows(worker, inquiry) ||
        !move_on(inquiry, ANSWERED))
        return false;
    inquiry->kind->answer(worker, inquiry);
    return true;
}

static void inquiry_deliver(struct gateway_worker *worker, const void *message)
{
    struct inquiry *inquiry = ((const struct look *)message)->inquiry;
    bool is_over = answers(worker, inquiry);
    bool is_last = atomic_fetch_sub(&inquiry->still_to_look, 1) == 1;
    if (is_over || (is_last && move_on(inquiry, UNKNOWN)))
        loop_post(inquiry->asker->loop, on_end, inquiry);
}

static const struct broadcast_kind look_kind = {.bytes = sizeof(struct look),
                                                .own = broadcast_own,
                                                .finish = release,
                                                .deliver = inquiry_deliver};

void inquiry_begin(struct inquiry *inquiry, const struct inquiry_kind *kind,
                   struct gateway_worker *asker)
{
    MAGIC_SET(inquiry, INQUIRY_MAGIC);
    inquiry->kind = kind;
    inquiry->asker = asker;
    atomic_init(&inquiry->state, ASKED);
    atomic_init(&inquiry->still_to_look, asker->gateway->worker_count);
    atomic_init(&inquiry->references, 1);
    loop_timer_init(&inquiry->patience, asker->loop, broadcast_on_out_of_patience, inquiry);
    if (answers(asker, inquiry) ||
        (asker->gateway->worker_count == 1 && move_on(inquiry, UNKNOWN))) {
        end(inquiry);
        return;
    }
    loop_timer_start(&inquiry->patience, INQUIRY_PATIENCE_MS);
    broadcast_send(asker->gateway, &look_kind, &(struct look){inquiry});
}
