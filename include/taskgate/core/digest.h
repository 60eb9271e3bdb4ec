/*
 * SHA-256 and HMAC-SHA-256, by OpenSSL. Any thread.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/str.h"

#define DIGEST_HEX_BYTES 65

/* base64url without padding, NUL-terminated. */
#define DIGEST_BASE64URL_BYTES 44
void digest_sha256_base64url(struct str data, char text[DIGEST_BASE64URL_BYTES]);
/* Lower-case hex, NUL-terminated. */
void digest_sha256_hex(struct str data, char hex[DIGEST_HEX_BYTES]);
/* Of several texts, one behind the other. */
void digest_sha256_hex_of(const struct str *parts, size_t count, char hex[DIGEST_HEX_BYTES]);
/* HMAC-SHA-256 (RFC 2104) of `data` with `key`: lower-case hex, NUL-terminated. */
void digest_hmac_sha256_hex(struct str key, struct str data, char hex[DIGEST_HEX_BYTES]);

/* The key of the process, before there are other threads, and the one before it; NULL: none. */
#define DIGEST_KEY_BYTES 32
void digest_use_keys(const unsigned char key[DIGEST_KEY_BYTES],
                     const unsigned char earlier[DIGEST_KEY_BYTES]);
/* Readers get this in place of the digest of a text that they must not see: equal for equal texts,
 * and no use to somebody who tries texts. */
void digest_keyed_hex(const char *digest, char hex[DIGEST_HEX_BYTES]);
/* True if `shown` is the keyed one of `digest`, by either key. */
bool digest_is_keyed(const char *digest, const char *shown);
