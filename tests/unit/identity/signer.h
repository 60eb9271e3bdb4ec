/*
 * An issuer's key that signs tokens, by OpenSSL alone: the library under test does not judge
 * itself.
 */
#pragma once

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

struct signer;

/* A new key for RS256, PS256, ES256, ES384 or EdDSA. `kid` is borrowed. */
struct signer *signer_create(const char *algorithm, const char *kid);
/* RSA of another size. */
struct signer *signer_create_rsa(unsigned bits, const char *kid);
void signer_destroy(struct signer *signer);
/* The public key as a member of a set; `more` are further members, each with a comma in front. */
void signer_write_jwk(const struct signer *signer, const char *more, struct buffer *out);
/* The two texts in base64url, and the signature over them, by `algorithm`. */
void signer_write_token(const struct signer *signer, const char *algorithm, struct str header,
                        struct str claims, struct buffer *out);
