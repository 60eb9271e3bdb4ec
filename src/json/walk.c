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

const char *walk_value(const char *at, const char *end)
{
    size_t depth = 0;
    const char *p = at;
    while (p < end) {
        char c = *p;
        if (c == '"')
            p = walk_string(p, end);
        else if (c == '{' || c == '[') {
            depth++;
            p++;
        } else if (depth == 0)
            return walk_scalar(p, end);
        else {
            depth -= c == '}' || c == ']';
            p++;
        }
        if (depth == 0)
            return p;
    }
    return end;
}
