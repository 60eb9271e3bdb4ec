/* SipHash-1-3 under a key of the process (Aumasson, Bernstein: "SipHash: a fast short-input
 * PRF"): keys of hash tables come from clients, who must not be able to choose collisions.
 *
 * Of a long text it hashes NH of each block (Black and others: "UMAC: fast and secure message
 * authentication", 64-bit words): two blocks collide under one of 2^64 keys, also if an attacker
 * chose them. */
#include <pthread.h>
#include <string.h>

#include "taskgate/core/random.h"
#include "taskgate/core/str.h"

#define BLOCK_WORDS 16
#define BLOCK_BYTES ((size_t)BLOCK_WORDS * 8)

static uint64_t hash_key[2], block_key[BLOCK_WORDS];

static void hash_choose_key(void)
{
    random_bytes(hash_key, sizeof hash_key);
    random_bytes(block_key, sizeof block_key);
}

static uint64_t hash_rotate(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}

static void hash_mix(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = hash_rotate(v[1], 13) ^ v[0];
    v[3] = hash_rotate(v[3], 16) ^ v[2];
    v[0] = hash_rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = hash_rotate(v[1], 17) ^ v[2];
    v[3] = hash_rotate(v[3], 21) ^ v[0];
    v[2] = hash_rotate(v[2], 32);
}

static void absorb(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    hash_mix(v);
    v[0] ^= word;
}

/* Not inline: there all words of the key would move to the stack first. */
static __attribute__((noinline)) unsigned __int128 hash_block(const char *block)
{
    unsigned __int128 sum = 0;
    for (size_t i = 0; i < BLOCK_WORDS; i += 2) {
        uint64_t pair[2];
        memcpy(pair, block + 8 * i, sizeof pair);
        sum += (unsigned __int128)(pair[0] + block_key[i]) * (pair[1] + block_key[i + 1]);
    }
    return sum;
}

uint64_t str_hash(struct str s)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, hash_choose_key);
    uint64_t v[4] = {
        hash_key[0] ^ UINT64_C(0x736f6d6570736575),
        hash_key[1] ^ UINT64_C(0x646f72616e646f6d),
        hash_key[0] ^ UINT64_C(0x6c7967656e657261),
        hash_key[1] ^ UINT64_C(0x7465646279746573),
    };
    size_t whole = s.length & ~(size_t)7, at = 0;
    uint64_t word;
    for (; s.length - at >= BLOCK_BYTES; at += BLOCK_BYTES) {
        unsigned __int128 sum = hash_block(s.bytes + at);
        absorb(v, (uint64_t)sum);
        absorb(v, (uint64_t)(sum >> 64));
    }
    for (; at < whole; at += 8) {
        memcpy(&word, s.bytes + at, 8);
        absorb(v, word);
    }
    word = 0;
    for (size_t i = s.length; i > whole; i--)
        word = word << 8 | (unsigned char)s.bytes[i - 1];
    absorb(v, word | (uint64_t)s.length << 56);
    v[2] ^= 0xFF;
    for (int i = 0; i < 3; i++)
        hash_mix(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
