/* One piece of spare memory for each call, taken from its front to its end; then the heap. */
#include "call_memory.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

/* A held call needs less, but for a long `_meta`. */
#define WANTED_BYTES 1280

static size_t round_up(size_t size)
{
    return (size + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
}

static void find_spare(struct call *call)
{
    struct call_spare *spare = &call->spare;
    size_t size = WANTED_BYTES;
    if (spare->is_known || !call->exchange)
        return;
    spare->is_known = true;
    spare->bytes = http_take_spare(call->exchange, &size);
    spare->size = spare->bytes ? size : 0;
}

void *call_memory_take(struct call *call, size_t size)
{
    struct call_spare *spare = &call->spare;
    size_t rounded = round_up(size);
    find_spare(call);
    if (rounded > spare->size - spare->used)
        return memory_alloc(size);
    void *memory = spare->bytes + spare->used;
    spare->used += rounded;
    return memset(memory, 0, size);
}

char *call_memory_copy(struct call *call, struct str text)
{
    char *copy = call_memory_take(call, text.length + 1);
    if (text.length > 0)
        memcpy(copy, text.bytes, text.length);
    return copy;
}

static bool is_spare(const struct call *call, const void *memory)
{
    uintptr_t at = (uintptr_t)memory, begin = (uintptr_t)call->spare.bytes;
    return at >= begin && at - begin < call->spare.size;
}

void call_memory_give(struct call *call, void *memory)
{
    if (!is_spare(call, memory))
        free(memory);
#ifdef __SANITIZE_ADDRESS__
    else
        ASAN_POISON_MEMORY_REGION(memory, _Alignof(max_align_t)); /* the least that it was */
#endif
}
