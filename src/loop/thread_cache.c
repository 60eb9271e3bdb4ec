/*
 * h2o's caches of a thread: the size of its read buffers, and memory for reuse, which is freed when
 * the thread ends.
 *
 * h2o 2.2.5 has no call for either. A thread that ends would leave its caches behind.
 */
#include <stdlib.h>

#include "loop_internal.h"
#include "taskgate/core/memory.h"

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

/* The caches are chains: the first word of a chunk points to the next. */
static void free_chain(void *first)
{
    while (first != NULL) {
        void *next = *(void **)first;
        free(first);
        first = next;
    }
}

static void release(void *unused)
{
    h2o_mem_recycle_t *buffers = &h2o_socket_buffer_prototype.allocator;
    free_chain(buffers->_link);
    buffers->_link = NULL;
    buffers->cnt = 0;

    /* The pools' cache is private: fill a pool from it and free the pool's chunks instead of
     * clearing the pool, which would put them back. Each step takes most of a quarter of a
     * chunk, the most that is not allocated on its own; the cache holds 16 chunks. */
    h2o_mem_pool_t pool;
    h2o_mem_init_pool(&pool);
    for (int i = 0; i < 17 * 4; i++)
        h2o_mem_alloc_pool(&pool, 1000);
    free_chain(pool.chunks);
}

static void create_key(void)
{
    if (pthread_key_create(&key, release) != 0)
        memory_exhausted(); /* or 1024 keys are in use, which nothing here makes */
}

/* The least that h2o's next read asks for. Its own choice is twice as much, and the requests
 * of thousands of open streams lie in such buffers for hours. */
#define READ_BUFFER_BYTES 4096

void thread_cache_prepare(void)
{
    static char in_use; /* any pointer but NULL */
    h2o_socket_buffer_prototype._initial_buf.capacity = READ_BUFFER_BYTES;
    pthread_once(&key_once, create_key);
    pthread_setspecific(key, &in_use);
}
