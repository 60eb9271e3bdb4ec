/* The page's files, made by embed.c. */
#pragma once

#include "taskgate/core/str.h"

struct asset {
    const char *path; /* "/" for index.html */
    const char *content_type;
    struct str bytes;
    struct str gzip; /* the same, compressed */
    /* Strong validators of the two (RFC 9110 §8.8.3), with their quotes. */
    struct str tag, gzip_tag;
};
extern const struct asset assets[];
extern const size_t asset_count;
/* The value of a header Link by which a browser loads all scripts at once. It would find each by
 * the one that imports it: a way to the gateway and back for each step. */
extern const struct str asset_modules;
