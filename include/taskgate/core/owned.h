/*
 * Values that end with the block that declares them, on each way out of it: a function with
 * several exits needs no line at each. What is given away before, as by buffer_take(), leaves an
 * empty value behind, and so nothing is freed.
 */
#pragma once

#include <stdlib.h>

#include "taskgate/core/buffer.h"

/* An empty buffer: OWNED_BUFFER(text); */
#define OWNED_BUFFER(name) __attribute__((cleanup(buffer_finish))) struct buffer name = {NULL, 0, 0}

static inline void owned_free(void *variable)
{
    free(*(void **)variable);
}
/* Memory of malloc(), or NULL: OWNED char *path = memory_format(…); */
#define OWNED __attribute__((cleanup(owned_free)))
