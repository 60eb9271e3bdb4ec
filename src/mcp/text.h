/* The one length limit for texts that the gateway writes for people. */
#pragma once

#include "taskgate/core/str.h"

#define MCP_TEXT_MAX_BYTES 1024

/* The first MCP_TEXT_MAX_BYTES of `text`, cut before a UTF-8 character that would not fit. */
struct str mcp_text_cut(struct str text);
