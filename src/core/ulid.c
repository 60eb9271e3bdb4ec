/* ULIDs: 48 bits of time, 80 of randomness, in Crockford's base 32; rising within the process. */
#include <pthread.h>
#include <stdint.h>

#include "taskgate/core/clock.h"
#include "taskgate/core/random.h"

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
static void step(void)
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

static void encode(char *text, uint64_t value, int digits)
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
        step();
    }
    uint64_t ms = last.ms, high = last.high, low = last.low;
    pthread_mutex_unlock(&last.lock);
    encode(text, ms, 10);
    /* 16 digits hold 80 bits: eight of the upper 40, eight of the lower 40. */
    encode(text + 10, high << 24 | low >> 40, 8);
    encode(text + 18, low & ((UINT64_C(1) << 40) - 1), 8);
    text[26] = '\0';
}
