/* The memory of a span, which the exporter frees. */
#include "span_internal.h"

#include <stdlib.h>

void span_destroy(struct span *span)
{
    if (!span)
        return;
    for (size_t i = 0; i < ATTRIBUTE_COUNT; i++)
        free(span->values[i].text);
    free(span->state);
    free(span->name);
    free(span->message);
    free(span);
}
