/* Reading a token's claims. */
#include "claims.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"

#define LATEST_MS INT64_C(253402300799000) /* the end of the year 9999 */

struct str claim_find(struct str claims, const char *name)
{
    struct str value = json_member(claims, name);
    struct str rest = str_from(name), step;
    if (value.length || !strchr(name, '.'))
        return value;
    value = claims;
    while (rest.length && value.length) {
        str_cut(rest, '.', &step, &rest);
        OWNED char *key = memory_copy_str(step);
        value = json_member(value, key);
    }
    return value;
}

bool claim_time(struct str value, int64_t *ms)
{
    if (json_type(value) != JSON_NUMBER)
        return false;
    OWNED char *text = memory_copy_str(value);
    double seconds = strtod(text, NULL);
    if (seconds <= 0)
        *ms = 0;
    else
        *ms = seconds >= (double)LATEST_MS / 1000 ? LATEST_MS : (int64_t)(seconds * 1000);
    return true;
}
