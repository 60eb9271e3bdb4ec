/* News of replicas as JSON. Any thread. */
#pragma once

#include "news.h"
#include "taskgate/core/buffer.h"

const char *news_name(enum news_kind kind);
void news_write(struct buffer *out, const struct news *news);
/* The texts are views of `text`. false: it is of a kind that this version does not know, or has
 * another form. */
bool news_read(struct str text, struct news *news);
