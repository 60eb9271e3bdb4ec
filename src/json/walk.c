/* Skipping strings and whole values without looking into them. */
#include "walk.h"

#include <stddef.h>

#include "bytes.h"

const char *walk_string(const char *at, const char *end)
{
    const char *p = at + 1;
    while (p < end) {
        p = quote_end(p, end);
        if (p < end && *p == '"')
            return p + 1;
        p += 2; /* a backslash and what it escapes */
    }
    return end;
}

static const char *walk_scalar(const char *at, const char *end)
{
    const char *p = at;
    while (p < end && *p != ',' && *p != '}' && *p != ']' && skip_space(p, p + 1) == p)
        p++;
    return p;
}

/* `at` is the first byte of an object or array. */
static const char *walk_nested(const char *at, const char *end)
{
    size_t depth = 0;
    const char *p = at;
    while (p < end) {
        if (*p == '"') {
            p = walk_string(p, end);
        } else {
            bool opens = (*p | 0x20) == '{';
            depth += opens ? 1 : (size_t)-1;
            p++;
            if (depth == 0)
                return p;
        }
        p = structure_end(p, end);
    }
    return end;
}

const char *walk_value(const char *at, const char *end)
{
    if (at < end && *at == '"')
        return walk_string(at, end);
    if (at < end && (*at == '{' || *at == '['))
        return walk_nested(at, end);
    return walk_scalar(at, end);
}
