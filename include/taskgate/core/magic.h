/*
 * Magic numbers in long-lived objects that travel as `void *`: contexts of callbacks, user data of
 * libraries. Each type has a number of its own and one function that casts to it:
 *
 *     struct inbox {
 *         uint32_t magic; // INBOX_MAGIC while it lives
 *         …
 *     };
 *     #define INBOX_MAGIC 0x1bb0c5e7
 *
 *     static struct inbox *inbox_from(void *context)
 *     {
 *         return MAGIC_CAST(struct inbox, INBOX_MAGIC, context);
 *     }
 *
 * The object's maker writes MAGIC_SET(inbox, INBOX_MAGIC), its end MAGIC_CLEAR(inbox) before
 * free(). A pointer to something else, to an object that has ended, or to nothing stops the
 * process with a line in the log, in every build: to go on would be to write into foreign memory.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MAGIC_SET(object, number) ((void)((object)->magic = (number)))
/* Volatile, because a compiler leaves out a write just before free(). */
#define MAGIC_CLEAR(object) ((void)(*(volatile uint32_t *)&(object)->magic = 0))

/* `pointer`, a void *, as a `type *`; never NULL. */
#define MAGIC_CAST(type, number, pointer)                                                          \
    ((type *)magic_check(pointer, offsetof(type, magic), number, #type))

_Noreturn void magic_mismatch(const char *type, uint32_t wanted, uint32_t found);

/* Behind MAGIC_CAST(). */
static inline void *magic_check(void *object, size_t offset, uint32_t wanted, const char *type)
{
    uint32_t found = object != NULL ? *(const uint32_t *)((const char *)object + offset) : 0;
    if (__builtin_expect(object == NULL || found != wanted, 0))
        magic_mismatch(type, wanted, found);
    return object;
}
