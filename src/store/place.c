/* URLs of databases without their secrets. */
#include "place.h"

#include <string.h>

#include "taskgate/core/memory.h"

/* A password that was not encoded may hold an @, so the last one ends it. */
char *place_shown(const char *place)
{
    const char *scheme = strstr(place, "://");
    if (!scheme)
        return memory_copy_text(place);
    const char *host = scheme + 3;
    size_t length = strcspn(host, "/");
    for (size_t i = length; i > 0; i--) {
        if (host[i - 1] == '@') {
            host += i;
            break;
        }
    }
    return memory_format("%.*s%.*s", (int)(scheme + 3 - place), place, (int)strcspn(host, "?"),
                         host);
}
