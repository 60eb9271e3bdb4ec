/* The metric format that a scraper prefers, and the coding that a browser takes. */
#pragma once

#include <stdbool.h>

#include "taskgate/core/str.h"

/* Whether the Accept header names OpenMetrics, and likes it no less than plain text. */
bool accept_open_metrics(struct str accept);
/* Whether the Accept-Encoding header allows gzip. */
bool accept_gzip(struct str accept_encoding);
