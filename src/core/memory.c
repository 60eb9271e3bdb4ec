/* Allocation that aborts instead of failing. */
#include "taskgate/core/memory.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SMALL_BYTES ((size_t)1024)

_Noreturn void memory_exhausted(void)
{
    /* The log allocates; this line must not. */
    static const char line[] = "{\"level\":\"error\",\"msg\":\"Out of memory, stopping\"}\n";
    ssize_t ignored = write(STDERR_FILENO, line, sizeof line - 1);
    (void)ignored;
    abort();
}

/* A function of its own: the compiler makes calloc() of malloc() and memset() side by side. */
static __attribute__((noinline)) void *take(size_t size)
{
    void *memory = malloc(size);
    if (!memory)
        memory_exhausted();
    return memory;
}

/* As calloc() would give it; but that does not look into the thread's cache of small blocks. */
void *memory_alloc(size_t size)
{
    if (size == 0 || size > SMALL_BYTES)
        return memory_alloc_array(1, size);
    return memset(take(size), 0, size);
}

void *memory_alloc_array(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size ? size : 1);
    if (!memory)
        memory_exhausted();
    return memory;
}

void *memory_grow_array(void *array, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size)
        memory_exhausted();
    size_t bytes = count * size;
    void *memory = realloc(array, bytes ? bytes : 1);
    if (!memory)
        memory_exhausted();
    return memory;
}

char *memory_copy_text(const char *text)
{
    return text ? memory_copy_str(str_from(text)) : NULL;
}

char *memory_copy_str(struct str s)
{
    char *copy = memory_alloc(s.length + 1);
    if (s.length)
        memcpy(copy, s.bytes, s.length);
    return copy;
}

void memory_forget_text(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

char *memory_format(const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        memory_exhausted();
    return text;
}
