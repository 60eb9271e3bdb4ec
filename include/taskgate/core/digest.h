/*
 * SHA-256, by OpenSSL. Any thread.
 */
#pragma once

#include "taskgate/core/str.h"

#define DIGEST_HEX_BYTES 65

/* Lower-case hex, NUL-terminated. */
void digest_sha256_hex(struct str data, char hex[DIGEST_HEX_BYTES]);
