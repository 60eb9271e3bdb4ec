/*
 * The public keys of an issuer: a JWK set (RFC 7517), read once, then immutable. Any thread.
 */
#pragma once

#include <stddef.h>

#include "taskgate/core/error.h"
#include "taskgate/core/str.h"

#define KEY_SET_MAX_BYTES ((size_t)1024 * 1024)
#define KEY_SET_MAX_KEYS 100

struct key_set;

/*
 * NULL when the document is no JWK set, or beyond these bounds. Keys that can sign no token here
 * are left out: without `kid`, of another type or curve, symmetric or private ones, RSA below
 * 2,048 or above 8,192 bits, those for encryption (`use`, `key_ops`) or another algorithm (`alg`).
 * A set of which nothing is left is one that knows no key.
 */
struct key_set *key_set_parse(struct str document, struct error *error);
struct key_set *key_set_ref(struct key_set *set);
void key_set_unref(struct key_set *set);                 /* NULL is allowed */
size_t key_set_count(const struct key_set *set);         /* that can be used */
size_t key_set_ignored_count(const struct key_set *set); /* that were left out */
