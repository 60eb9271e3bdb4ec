/* Single values: from their text, checked as the key's row says, to where they are kept. */
#include "scalar.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "taskgate/config/duration.h"
#include "taskgate/core/memory.h"

static void *at(void *target, size_t offset)
{
    return (char *)target + offset;
}

void scalar_store_number(const struct key *key, void *target, int64_t value)
{
    int small = (int)value;
    bool truth = value != 0;
    if (key->size == sizeof value)
        memcpy(at(target, key->offset), &value, sizeof value);
    else if (key->size == sizeof small)
        memcpy(at(target, key->offset), &small, sizeof small);
    else if (key->size == sizeof truth)
        memcpy(at(target, key->offset), &truth, sizeof truth);
}

static bool check_range(const struct key *key, int64_t value, struct error *error)
{
    char low[64], high[64];
    if (value >= key->minimum && value <= key->maximum)
        return true;
    if (key->type == KEY_DURATION) {
        duration_format(key->minimum, low);
        duration_format(key->maximum, high);
    } else {
        snprintf(low, sizeof low, "%" PRId64, key->minimum);
        snprintf(high, sizeof high, "%" PRId64, key->maximum);
    }
    return value < key->minimum ? error_set(error, "the minimum is %s", low)
                                : error_set(error, "the maximum is %s", high);
}

static bool parse_real(const struct key *key, struct str text, struct error *error)
{
    char *copy = memory_copy_str(text), *end;
    double value = strtod(copy, &end);
    bool is_number = end != copy && *end == '\0' && isfinite(value);
    free(copy);
    if (!is_number)
        return error_set(error, "this is no number");
    if (value < (double)key->minimum || value > (double)key->maximum)
        return error_set(error, "must be from %" PRId64 " to %" PRId64, key->minimum, key->maximum);
    return true;
}

static bool parse_number(const struct key *key, struct str text, int64_t *value,
                         struct error *error)
{
    bool truth;
    switch (key->type) {
    case KEY_BOOL:
        if (!parse_bool(text, &truth))
            return error_set(error, "must be true or false");
        *value = truth;
        return true;
    case KEY_BYTES:
        return parse_bytes(text, value, error) && check_range(key, *value, error);
    case KEY_DURATION:
        return duration_parse(text, value, error) && check_range(key, *value, error);
    default:
        if (!parse_integer(text, value))
            return error_set(error, "must be a whole number");
        return check_range(key, *value, error);
    }
}

bool scalar_store(const struct key *key, struct str text, void *target, struct error *error)
{
    int64_t number = 0;
    if (key->type == KEY_REAL)
        return parse_real(key, text, error);
    if (key->type != KEY_TEXT) {
        if (!parse_number(key, text, &number, error))
            return false;
        scalar_store_number(key, target, number);
        return true;
    }
    if (key->check && !key->check(text, error))
        return false;
    if (key->size) {
        char *copy = memory_copy_str(text);
        memcpy(at(target, key->offset), &copy, sizeof copy);
    }
    return true;
}
