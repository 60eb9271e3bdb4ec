/* Servers of the legacy era (MCP 2025-11-25), whose requests go in sessions. */
#pragma once

#include "protocol.h"

extern const struct server_protocol server_legacy;
