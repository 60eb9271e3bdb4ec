/* Hashes that hold rows together, and anchors that hold the chain. */
#include "taskgate/store/chain.h"

#include <stdio.h>
#include <string.h>

#include "taskgate/core/clock.h"
#include "taskgate/json/members.h"

#define HASH_DIGITS (DIGEST_HEX_BYTES - 1)

void store_chain_init(struct store_chain *chain)
{
    chain->sequence = 0;
    memset(chain->hash, '0', HASH_DIGITS);
    chain->hash[HASH_DIGITS] = '\0';
}

void store_chain_hash(const char previous[DIGEST_HEX_BYTES], struct str row,
                      char hash[DIGEST_HEX_BYTES])
{
    struct str parts[] = {str_slice(previous, HASH_DIGITS), row};
    digest_sha256_hex_of(parts, 2, hash);
}

bool store_chain_next(struct store_chain *chain, int64_t sequence, struct str row, struct str hash,
                      struct error *error)
{
    char wanted[DIGEST_HEX_BYTES];
    if (sequence != chain->sequence + 1)
        return error_set(error, "row %lld is missing", (long long)chain->sequence + 1);
    store_chain_hash(chain->hash, row, wanted);
    if (!str_equal(hash, str_from(wanted)))
        return error_set(error, "row %lld was changed: its hash is not that of its content",
                         (long long)sequence);
    chain->sequence = sequence;
    memcpy(chain->hash, wanted, sizeof chain->hash);
    return true;
}

static struct str signed_text(const struct store_anchor *anchor, char text[160])
{
    char time[CLOCK_TEXT_BYTES];
    int length = snprintf(text, 160, "%lld %s %s", (long long)anchor->place.sequence,
                          anchor->place.hash, clock_format(anchor->at_ms, time));
    return str_slice(text, (size_t)length);
}

void store_anchor_sign(struct store_anchor *anchor, const struct signature_key *key)
{
    char text[160];
    *anchor->signature = '\0';
    if (key)
        signature_sign(key, signed_text(anchor, text), anchor->signature);
}

void store_anchor_write(struct buffer *out, const struct store_anchor *anchor)
{
    buffer_append_format(out, "{\"sequence\":%lld", (long long)anchor->place.sequence);
    json_add_text(out, "hash", anchor->place.hash);
    json_add_time(out, "time", anchor->at_ms);
    if (*anchor->signature)
        json_add_text(out, "signature", anchor->signature);
    buffer_append_char(out, '}');
}

bool store_anchor_verify(const struct store_anchor *anchor, const struct signature_key *key)
{
    char text[160];
    return signature_verify(key, signed_text(anchor, text), str_from(anchor->signature));
}
