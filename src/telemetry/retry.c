/* Back-off. */
#include "retry.h"

#include "taskgate/core/random.h"

#define FIRST_MS INT64_C(500)
#define MOST_DOUBLINGS 6 /* 32 s */

bool retry_is_useful(int status)
{
    return status == 0 || status == 429 || status == 502 || status == 503 || status == 504;
}

int64_t retry_pause_ms(unsigned failures, int64_t asked_ms)
{
    unsigned doublings = failures > 0 ? failures - 1 : 0;
    unsigned chance;
    if (asked_ms > 0)
        return asked_ms;
    int64_t pause_ms = FIRST_MS << (doublings < MOST_DOUBLINGS ? doublings : MOST_DOUBLINGS);
    random_bytes(&chance, sizeof chance);
    /* Between three quarters and all of it, so that many gateways do not come at once. */
    return pause_ms - (int64_t)(chance % (unsigned)(pause_ms / 4));
}
