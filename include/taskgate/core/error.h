/*
 * An error as a value: one sentence for the person who must act.
 */
#pragma once

#include <stdbool.h>

#define ERROR_MESSAGE_BYTES 512

struct error {
    char message[ERROR_MESSAGE_BYTES]; /* NUL-terminated, cut when longer; "" is no error */
};

/* Fills `error` (NULL is allowed) and returns false, so that a caller can write
 * `return error_set(error, …)`. */
bool error_set(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Puts "what: " in front of the message. Returns false. */
bool error_prefix(struct error *error, const char *what);
/* Appends "; HINT", a remedy that only the caller knows. Returns false. */
bool error_suffix(struct error *error, const char *hint);
