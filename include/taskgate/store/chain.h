/*
 * The chain of the audit trail. Each row has a hash: SHA-256, in hexadecimal, of the hash before it
 * and the row's canonical JSON without `hash`. The first one follows 64 zeros. Behaviour 15.1. Any
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/error.h"
#include "taskgate/core/signature.h"
#include "taskgate/core/str.h"

/* The place behind the row `sequence`. */
struct store_chain {
    int64_t sequence;
    char hash[DIGEST_HEX_BYTES];
};

/* Before the first row. */
void store_chain_init(struct store_chain *chain);
/* The hash of a row that follows `previous`; `row` is its canonical JSON. */
void store_chain_hash(const char previous[DIGEST_HEX_BYTES], struct str row,
                      char hash[DIGEST_HEX_BYTES]);
/* Moves on by one row. false: a row is missing before it, or it does not have the hash that it
 * must have; `error` says which, and the chain stays where it is. */
bool store_chain_next(struct store_chain *chain, int64_t sequence, struct str row, struct str hash,
                      struct error *error);

/* A place of the chain that somebody keeps elsewhere. */
struct store_anchor {
    struct store_chain place;
    int64_t at_ms;
    char signature[SIGNATURE_TEXT_BYTES]; /* or "" */
};
/* Signs "SEQUENCE HASH TIME", the time as RFC 3339; a NULL key leaves the signature empty. */
void store_anchor_sign(struct store_anchor *anchor, const struct signature_key *key);
/* {"sequence", "hash", "time", "signature"}, the last one if it is signed. */
void store_anchor_write(struct buffer *out, const struct store_anchor *anchor);
bool store_anchor_verify(const struct store_anchor *anchor, const struct signature_key *key);
