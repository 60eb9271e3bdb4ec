/* SHA-256 as hex. */
#include "taskgate/core/digest.h"

#include <openssl/sha.h>
#include <stdio.h>

#include "taskgate/core/memory.h"

void digest_sha256_hex(struct str data, char hex[DIGEST_HEX_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char sum[SHA256_DIGEST_LENGTH];
    if (!SHA256((const unsigned char *)(data.length ? data.bytes : ""), data.length, sum))
        memory_exhausted(); /* nothing else can be missing */
    for (size_t i = 0; i < sizeof sum; i++) {
        hex[2 * i] = digits[sum[i] >> 4];
        hex[2 * i + 1] = digits[sum[i] & 15];
    }
    hex[DIGEST_HEX_BYTES - 1] = '\0';
}
