/* Looking at JSON bytes a word at a time: what every reader of this layer steps with. */
#pragma once

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define EVERY_BYTE(byte) (UINT64_C(0x0101010101010101) * (uint64_t)(byte))
#define HIGH_BITS EVERY_BYTE(0x80)

/* The next eight bytes, the first one lowest whatever the machine's order. */
static inline uint64_t load_word(const char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return le64toh(word);
}

/* Non-zero bytes become 0x00..0x7F less one, a zero byte turns its high bit on. Borrows only
 * run upwards from such a byte, so the lowest high bit is always a true one; bytes of 0x80 and
 * more are flagged by all of these masks. */
static inline uint64_t zero_bytes(uint64_t word)
{
    return word - EVERY_BYTE(1);
}

#ifdef __SSE2__
/* All bits are set in the bytes that plain_end() passes. */
static inline __m128i are_plain(const char *p)
{
    __m128i block = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i special = _mm_or_si128(_mm_cmpeq_epi8(block, _mm_set1_epi8('"')),
                                   _mm_cmpeq_epi8(block, _mm_set1_epi8('\\')));
    /* Signed: bytes of 0x80 and more are below the space too. */
    return _mm_andnot_si128(special, _mm_cmpgt_epi8(block, _mm_set1_epi8(0x1f)));
}

/* A bit for each of the others. */
static inline unsigned others_of(__m128i plain)
{
    return (unsigned)_mm_movemask_epi8(plain) ^ 0xffffU;
}
#endif

/* plain_end() of a long text. Out of the way of short ones, which are most. */
static __attribute__((noinline, unused)) const char *plain_end_far(const char *p, const char *end)
{
#ifdef __SSE2__
    while (end - p >= 64 &&
           others_of(_mm_and_si128(_mm_and_si128(are_plain(p), are_plain(p + 16)),
                                   _mm_and_si128(are_plain(p + 32), are_plain(p + 48)))) == 0)
        p += 64;
    for (; end - p >= 16; p += 16) {
        unsigned mask = others_of(are_plain(p));
        if (mask)
            return p + __builtin_ctz(mask);
    }
#endif
    for (; end - p >= 8; p += 8) {
        uint64_t word = load_word(p);
        uint64_t special =
            (zero_bytes(word ^ EVERY_BYTE('"')) | zero_bytes(word ^ EVERY_BYTE('\\')) |
             (word - EVERY_BYTE(0x20)) | word) &
            HIGH_BITS;
        if (special)
            return p + __builtin_ctzll(special) / 8;
    }
    while (p < end && *p != '"' && *p != '\\' && (unsigned char)*p >= 0x20 &&
           (unsigned char)*p < 0x80)
        p++;
    return p;
}

/* The first quote, backslash, control character or non-ASCII byte from `p` on; `end` if none. */
static inline const char *plain_end(const char *p, const char *end)
{
#ifdef __SSE2__
    if (end - p >= 16) {
        unsigned mask = others_of(are_plain(p));
        if (mask)
            return p + __builtin_ctz(mask);
        p += 16;
    }
#endif
    return plain_end_far(p, end);
}

/* The first quote or backslash from `p` on; `end` if none. */
static inline const char *quote_end(const char *p, const char *end)
{
#ifdef __SSE2__
    for (; end - p >= 16; p += 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i special = _mm_or_si128(_mm_cmpeq_epi8(block, _mm_set1_epi8('"')),
                                       _mm_cmpeq_epi8(block, _mm_set1_epi8('\\')));
        unsigned mask = (unsigned)_mm_movemask_epi8(special);
        if (mask)
            return p + __builtin_ctz(mask);
    }
#endif
    for (; end - p >= 8; p += 8) {
        uint64_t word = load_word(p);
        uint64_t special =
            (zero_bytes(word ^ EVERY_BYTE('"')) | zero_bytes(word ^ EVERY_BYTE('\\'))) & ~word &
            HIGH_BITS;
        if (special)
            return p + __builtin_ctzll(special) / 8;
    }
    while (p < end && *p != '"' && *p != '\\')
        p++;
    return p;
}

/* The first quote, brace or bracket from `p` on; `end` if none. */
static inline const char *structure_end(const char *p, const char *end)
{
#ifdef __SSE2__
    for (; end - p >= 16; p += 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i folded = _mm_or_si128(block, _mm_set1_epi8(0x20)); /* brackets become braces */
        __m128i special = _mm_or_si128(_mm_cmpeq_epi8(block, _mm_set1_epi8('"')),
                                       _mm_or_si128(_mm_cmpeq_epi8(folded, _mm_set1_epi8('{')),
                                                    _mm_cmpeq_epi8(folded, _mm_set1_epi8('}'))));
        unsigned mask = (unsigned)_mm_movemask_epi8(special);
        if (mask)
            return p + __builtin_ctz(mask);
    }
#endif
    while (p < end && *p != '"' && (*p | 0x20) != '{' && (*p | 0x20) != '}')
        p++;
    return p;
}

/* JSON's white space only. */
static inline bool is_space(char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

static inline const char *skip_space(const char *p, const char *end)
{
    while (p < end && (unsigned char)*p <= ' ' && is_space(*p)) /* nearly always it is none */
        p++;
    return p;
}

/* The value of four hex digits, or -1. */
static inline int hex_quad(const char *p)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        if (c >= '0' && c <= '9')
            value = value << 4 | (c - '0');
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            value = value << 4 | ((c | 0x20) - 'a' + 10);
        else
            return -1;
    }
    return value;
}
