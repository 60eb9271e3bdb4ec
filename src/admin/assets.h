/* The page's files, made by embed.c. */
#pragma once

#include "taskgate/core/str.h"

struct asset {
    const char *path; /* "/" for index.html */
    const char *content_type;
    struct str bytes;
};
extern const struct asset assets[];
extern const size_t asset_count;
