/* Cuts a long name between two characters, and adds a digest that tells it from others. */
#include "taskgate/task/recorded_name.h"

#include <stdio.h>

struct str recorded_name(struct str name, char out[RECORDED_NAME_BYTES])
{
    char digest[DIGEST_HEX_BYTES];
    size_t end = RECORDED_NAME_BYTES_MAX;
    if (name.length <= RECORDED_NAME_BYTES_MAX)
        return name;
    while (end > 0 && ((unsigned char)name.bytes[end] & 0xC0) == 0x80)
        end--;
    digest_sha256_hex(name, digest);
    int length = snprintf(out, RECORDED_NAME_BYTES, "%.*s... (%zu bytes, sha256 %s)", (int)end,
                          name.bytes, name.length, digest);
    return str_slice(out, (size_t)length);
}
