/*
 * Texts that speak of the gateway's own tools. A text is written once, for a client that is offered
 * every tool; tool_names_fill() makes of it what one client is told:
 *
 *   {get_task}     the name under which the tool is offered
 *   [[a||b||c]]    the first of the pieces that names only tools that are offered; nothing if each
 *                  names one that is not
 *
 * Everything else stands for itself. Pure; any thread.
 */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"

struct tool_names {
    const char *prefix;         /* borrowed: of tools whose plain name upstream has taken */
    unsigned offered, prefixed; /* bits of enum config_pseudo_tool */
};

static inline bool tool_names_offer(const struct tool_names *names, enum config_pseudo_tool tool)
{
    return (names->offered & 1U << tool) != 0;
}

/* False, and no text, for a tool that is not offered. */
bool tool_names_write(const struct tool_names *names, enum config_pseudo_tool tool,
                      struct buffer *out);
void tool_names_fill(const struct tool_names *names, struct str text, struct buffer *out);
