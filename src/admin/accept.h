/* The metric format that a scraper prefers. */
#pragma once

#include <stdbool.h>

#include "taskgate/core/str.h"

/* Whether the Accept header names OpenMetrics, and likes it no less than plain text. */
bool accept_open_metrics(struct str accept);
