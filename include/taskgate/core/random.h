/*
 * Randomness of the system's CSPRNG (getrandom). Aborts if the kernel has none: an id that
 * can be guessed is worse than no gateway. Any thread.
 */
#pragma once

#include <stddef.h>

#define RANDOM_UUID_BYTES 37
#define RANDOM_ULID_BYTES 27

void random_bytes(void *bytes, size_t count);
/* So many lower-case hexadecimal digits, an even number, NUL-terminated. */
void random_hex(char *text, size_t digits);
/* A version 4 UUID, lower case, NUL-terminated (122 random bits). */
void random_uuid(char text[RANDOM_UUID_BYTES]);
/* A ULID, NUL-terminated: the millisecond, then 80 random bits. Each sorts after the earlier ones
 * of the process, and does not reveal the next. */
void random_ulid(char text[RANDOM_ULID_BYTES]);
