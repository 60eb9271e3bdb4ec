/* Random bytes and UUIDs from getrandom(2). */
#include "taskgate/core/random.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

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

void random_uuid(char text[RANDOM_UUID_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char b[16];
    random_bytes(b, sizeof b);
    b[6] = (unsigned char)((b[6] & 0x0F) | 0x40); /* version 4 */
    b[8] = (unsigned char)((b[8] & 0x3F) | 0x80); /* RFC 4122 variant */
    for (size_t i = 0; i < sizeof b; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *text++ = '-';
        *text++ = digits[b[i] >> 4];
        *text++ = digits[b[i] & 15];
    }
    *text = '\0';
}
