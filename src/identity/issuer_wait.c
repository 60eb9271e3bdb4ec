/* Callers that wait for an issuer's keys. */
#include <stdlib.h>

#include "issuer_internal.h"
#include "taskgate/core/memory.h"

struct issuer_wait {
    uint32_t magic;   /* ISSUER_WAIT_MAGIC */
    struct list node; /* in the issuer, under its lock, until it is posted */
    struct loop *loop;
    loop_callback ready; /* of the loop's thread; NULL when nobody waits any more */
    void *context;
};
#define ISSUER_WAIT_MAGIC 0x49445705

static struct issuer_wait *issuer_wait_from(void *context)
{
    return MAGIC_CAST(struct issuer_wait, ISSUER_WAIT_MAGIC, context);
}

struct issuer_wait *issuer_wait_create(struct loop *loop, loop_callback ready, void *context)
{
    struct issuer_wait *wait = memory_alloc(sizeof(*wait));
    MAGIC_SET(wait, ISSUER_WAIT_MAGIC);
    wait->loop = loop;
    wait->ready = ready;
    wait->context = context;
    list_init(&wait->node);
    return wait;
}

/* On the caller's loop. */
static void deliver(void *context)
{
    struct issuer_wait *wait = issuer_wait_from(context);
    if (wait->ready)
        wait->ready(wait->context);
    MAGIC_CLEAR(wait);
    free(wait);
}

void issuer_wait_post(struct issuer_wait *wait)
{
    loop_post(wait->loop, deliver, wait);
}

void issuer_waits_add(struct issuer *issuer, struct issuer_wait *wait)
{
    list_append(&issuer->waits, &wait->node);
}

void issuer_waits_post_all(struct issuer *issuer)
{
    LIST_FOR_EACH_SAFE (node, next, &issuer->waits) {
        list_remove(node);
        issuer_wait_post(LIST_ENTRY(node, struct issuer_wait, node));
    }
}

void issuer_wait_cancel(struct issuer_wait *wait)
{
    if (wait)
        wait->ready = NULL;
}
