/* Random bytes and UUIDs from getrandom(2). */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/random.h"
#include "taskgate/core/str.h"

void random_bytes(void *bytes, size_t count)
{
    unsigned char *at = bytes;
    while (count > 0) {
        ssize_t got = getrandom(at, count, 0);
        if (got < 0) {
            if (errno == EINTR)
                continue;
            abort();
        }
        at += got;
        count -= (size_t)got;
    }
}

#define HEX_MAX_BYTES 32

void random_hex(char *text, size_t digits)
{
    unsigned char bytes[HEX_MAX_BYTES];
    ASSERT_NUMBERS(digits / 2, <=, HEX_MAX_BYTES);
    random_bytes(bytes, digits / 2);
    *str_write_hex(bytes, digits / 2, text) = '\0';
    explicit_bzero(bytes, sizeof bytes);
}

void random_uuid(char text[RANDOM_UUID_BYTES])
{
    unsigned char b[16];
    random_bytes(b, sizeof b);
    b[6] = (unsigned char)((b[6] & 0x0F) | 0x40); /* version 4 */
    b[8] = (unsigned char)((b[8] & 0x3F) | 0x80); /* RFC 4122 variant */
    for (size_t i = 0; i < sizeof b; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *text++ = '-';
        text = str_write_hex(&b[i], 1, text);
    }
    *text = '\0';
}

/* ULIDs: 48 bits of time, 80 of randomness, in Crockford's base 32; rising within the process. */

#define RANDOM_HIGH_BITS 16 /* of the 80: above the low 64 */

static struct {
    pthread_mutex_t lock;
    uint64_t ms;
    uint64_t high, low; /* the 80 random bits of the last id */
} last = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The first id of a millisecond leaves the topmost bit free for those that follow. */
static void draw(void)
{
    uint16_t high;
    random_bytes(&last.low, sizeof last.low);
    random_bytes(&high, sizeof high);
    last.high = high & 0x7FFF;
}

/* A step of 48 random bits: ids of one millisecond rise, and none reveals the next. */
static void random_step(void)
{
    uint64_t by = 0;
    random_bytes(&by, 6);
    uint64_t before = last.low;
    last.low += by + 1;
    if (last.low < before && ++last.high >> RANDOM_HIGH_BITS) {
        last.ms++;
        draw();
    }
}

static void random_encode(char *text, uint64_t value, int digits)
{
    static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    for (int i = digits - 1; i >= 0; i--) {
        text[i] = alphabet[value & 31];
        value >>= 5;
    }
}

void random_ulid(char text[RANDOM_ULID_BYTES])
{
    uint64_t now_ms = (uint64_t)clock_now_ms();
    pthread_mutex_lock(&last.lock);
    if (now_ms > last.ms) {
        last.ms = now_ms;
        draw();
    } else {
        random_step();
    }
    uint64_t ms = last.ms, high = last.high, low = last.low;
    pthread_mutex_unlock(&last.lock);
    random_encode(text, ms, 10);
    /* 16 digits hold 80 bits: eight of the upper 40, eight of the lower 40. */
    random_encode(text + 10, high << 24 | low >> 40, 8);
    random_encode(text + 18, low & ((UINT64_C(1) << 40) - 1), 8);
    text[26] = '\0';
}
