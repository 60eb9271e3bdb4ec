/*
 * A text that only the holder of a secret can read again: AES-256-GCM under a key that is derived
 * from the secret. The sealed text alone, such as that in a copy of the store, tells nothing.
 */
#pragma once

#include "taskgate/core/str.h"

/* `secret` has 256 random bits or more, and its digest may be known. The sealed text is
 * hexadecimal; the caller frees it. */
char *seal_close(struct str secret, struct str text);
/* The text, which the caller overwrites and frees; NULL when it was sealed with another secret, or
 * was changed. */
char *seal_open(struct str secret, struct str sealed);
