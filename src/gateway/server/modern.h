/* Servers of the modern era (MCP 2026-07-28), which get a request again for each round of
 * questions, and may run it as a task of their own. */
#pragma once

#include "protocol.h"

extern const struct server_protocol server_modern;
