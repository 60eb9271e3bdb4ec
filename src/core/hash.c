/* SipHash-1-3 under a key of the process (Aumasson, Bernstein: "SipHash: a fast short-input
 * PRF"): keys of hash tables come from clients, who must not be able to choose collisions. */
#include <pthread.h>
#include <string.h>

#include "taskgate/core/random.h"
#include "taskgate/core/str.h"

static uint64_t hash_key[2];

static void choose_key(void)
{
    random_bytes(hash_key, sizeof hash_key);
}

static uint64_t rotate(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}

static void mix(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

static void absorb(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    mix(v);
    v[0] ^= word;
}

uint64_t str_hash(struct str s)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose_key);
    uint64_t v[4] = {
        hash_key[0] ^ UINT64_C(0x736f6d6570736575),
        hash_key[1] ^ UINT64_C(0x646f72616e646f6d),
        hash_key[0] ^ UINT64_C(0x6c7967656e657261),
        hash_key[1] ^ UINT64_C(0x7465646279746573),
    };
    size_t whole = s.length & ~(size_t)7;
    uint64_t word;
    for (size_t i = 0; i < whole; i += 8) {
        memcpy(&word, s.bytes + i, 8);
        absorb(v, word);
    }
    word = 0;
    for (size_t i = s.length; i > whole; i--)
        word = word << 8 | (unsigned char)s.bytes[i - 1];
    absorb(v, word | (uint64_t)s.length << 56);
    v[2] ^= 0xFF;
    for (int i = 0; i < 3; i++)
        mix(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
