/* The names of the eras: their versions, and the extension that has tasks. */
#pragma once

/* Bits: a source may serve both. */
enum mcp_era { MCP_ERA_LEGACY = 1, MCP_ERA_MODERN = 2 };

/* The modern revision that the gateway speaks, and the last legacy one. */
#define MCP_VERSION_MODERN "2026-07-28"
#define MCP_VERSION_LEGACY "2025-11-25"

#define MODERN_TASKS_EXTENSION "io.modelcontextprotocol/tasks"
