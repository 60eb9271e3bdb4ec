/* The extent of a member with its comma. */
#include "splice.h"

#include "bytes.h"

struct str splice_member(struct str text, struct str member)
{
    const char *from = member.bytes, *to = member.bytes + member.length;
    const char *next = skip_space(to, text.bytes + text.length);
    if (*next == ',') {
        to = skip_space(next + 1, text.bytes + text.length);
        return str_slice(from, (size_t)(to - from));
    }
    /* The last one: the comma stands before it, unless it is the only one. */
    while (skip_space(from - 1, from) == from)
        from--;
    if (from[-1] == ',') {
        from--;
        while (skip_space(from - 1, from) == from)
            from--;
    }
    return str_slice(from, (size_t)(to - from));
}
