/* Ranges of code points, in their order. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct range {
    unsigned first, last;
};

/* The range that has the code point; `count` where none has it. */
static inline size_t range_find(const struct range *ranges, size_t count, unsigned c)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges[middle].last < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && ranges[low].first <= c ? low : count;
}

static inline bool range_has(const struct range *ranges, size_t count, unsigned c)
{
    return range_find(ranges, count, c) < count;
}
