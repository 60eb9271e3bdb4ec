/*
 * Allocation that does not fail: a gateway without memory stops at once rather than decide
 * without it (fail closed). Any thread.
 */
#pragma once

#include <stddef.h>

#include "taskgate/core/str.h"

/* Logs and aborts; for libraries that report that there is no memory. */
_Noreturn void memory_exhausted(void);
/* Zeroed memory; logs and aborts when there is none. Free with free(). */
void *memory_alloc(size_t size);
void *memory_alloc_array(size_t count, size_t size);
/* As realloc, aborting on failure or overflow; the grown part is not zeroed. */
void *memory_grow_array(void *array, size_t count, size_t size);
/* NUL-terminated copies, the caller frees. memory_copy_text(NULL) is NULL. */
char *memory_copy_text(const char *text);
char *memory_copy_str(struct str s);
/* Frees a text that may be a secret, and leaves nothing of it in memory. NULL is allowed. */
void memory_forget_text(char *text);
/* Formatted text, the caller frees. */
char *memory_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
