/*
 * The one door to the library for JOSE (libcjose), and to OpenSSL for Ed25519, which the library
 * does not know. A key never changes and may be used by several threads at once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

/* The algorithms that are accepted (behaviour 13.2); all others are unknown here, so that `none`
 * and HMAC need no case of their own. */
enum jose_algorithm {
    JOSE_RS256,
    JOSE_PS256,
    JOSE_ES256,
    JOSE_ES384,
    JOSE_EDDSA,
    JOSE_ALGORITHM_COUNT
};

enum jose_key_type { JOSE_KEY_RSA, JOSE_KEY_P256, JOSE_KEY_P384, JOSE_KEY_ED25519 };

/* False for every other name. Names are compared byte for byte. */
bool jose_algorithm_parse(struct str name, enum jose_algorithm *algorithm);
enum jose_key_type jose_algorithm_key_type(enum jose_algorithm algorithm);

struct jose_key;

/* Big-endian numbers. NULL for a modulus below 2,048 or above 8,192 bits, for an exponent that is
 * even, below 3 or longer than 32 bits, and for what the library refuses. */
struct jose_key *jose_key_create_rsa(struct str modulus, struct str exponent);
/* JOSE_KEY_P256 or JOSE_KEY_P384; NULL for coordinates of another length or off the curve. */
struct jose_key *jose_key_create_ec(enum jose_key_type type, struct str x, struct str y);
/* The 32 bytes of the public key. */
struct jose_key *jose_key_create_ed25519(struct str x);
void jose_key_destroy(struct jose_key *key); /* NULL is allowed */
enum jose_key_type jose_key_type(const struct jose_key *key);

/* Whether the signature of a compact token, whose header names `algorithm`, is this key's.
 * `signature_text` is its third part, `signature` that part decoded. */
bool jose_verify(const struct jose_key *key, enum jose_algorithm algorithm, struct str token,
                 struct str signature_text, struct str signature);

/*
 * Base64url as JOSE writes it (RFC 7515 §2): no padding, no white space, and one spelling for each
 * value. Any thread.
 */

/* Appends the decoded bytes. False, with nothing appended, for a character that is none of the
 * alphabet, a length that no value has, or bits left over that are not zero: a second spelling of
 * one token would be a second token to a cache. */
bool base64url_decode(struct str text, struct buffer *out);
void base64url_encode(struct str bytes, struct buffer *out);
