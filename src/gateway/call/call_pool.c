/* A chain of calls that nobody uses, for each thread. */
#include "call_pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"

/* The sanitizer's build keeps none, so that it sees the use of a call that has ended. */
#ifdef __SANITIZE_ADDRESS__
#define KEEPS_NONE true
#else
#define KEEPS_NONE false
#endif
#define MOST_SPARE 64

union spare {
    union spare *next;
    struct call call;
};

static _Thread_local struct chain {
    union spare *first;
    size_t count;
    bool is_watched; /* it is freed when the thread ends */
} chain;
static pthread_key_t thread_end;
static pthread_once_t thread_end_once = PTHREAD_ONCE_INIT;

static void free_chain(void *context)
{
    struct chain *ending = context;
    while (ending->first) {
        union spare *spare = ending->first;
        ending->first = spare->next;
        free(spare);
    }
    *ending = (struct chain){0};
}

static void watch_thread_ends(void)
{
    if (pthread_key_create(&thread_end, free_chain) != 0)
        abort();
}

struct call *call_pool_take(void)
{
    union spare *spare = chain.first;
    if (!spare)
        return memory_alloc(sizeof *spare);
    chain.first = spare->next;
    chain.count--;
    return memset(spare, 0, sizeof *spare);
}

void call_pool_give(struct call *call)
{
    union spare *spare = (union spare *)call;
    if (KEEPS_NONE || chain.count >= MOST_SPARE) {
        free(spare);
        return;
    }
    if (!chain.is_watched) {
        pthread_once(&thread_end_once, watch_thread_ends);
        pthread_setspecific(thread_end, &chain);
        chain.is_watched = true;
    }
    spare->next = chain.first;
    chain.first = spare;
    chain.count++;
}
