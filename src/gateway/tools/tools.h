/*
 * The tools that the gateway itself offers, beside upstream's, to clients that know no tasks
 * (behaviour 11.6). One table (tools_table.h) has what a model reads of them, their parameters, and
 * who handles them.
 */
#pragma once

#include "call/call.h"
#include "state/tool_catalog.h"
#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"
#include "taskgate/mcp/lists.h"

#define PSEUDO_TOOL_MOST_PARAMETERS 6

enum pseudo_type { PSEUDO_TOOL_TEXT, PSEUDO_TOOL_NUMBER, PSEUDO_TOOL_BOOLEAN, PSEUDO_TOOL_OBJECT };

#define PSEUDO_TOOL_MOST_CHOICES 8

struct pseudo_parameter {
    const char *name; /* NULL ends a table */
    enum pseudo_type type;
    bool is_required;
    const char *description;
    const char *choices[PSEUDO_TOOL_MOST_CHOICES]; /* of a text; NULL ends them; none: any text */
    int64_t minimum, maximum; /* of a number; more than `maximum` counts as that */
    const char *default_json; /* for the reader; NULL: none */
};

/* The hint for hosts that ask their human first. */
enum pseudo_tool_effect {
    PSEUDO_TOOL_READS,
    PSEUDO_TOOL_CHANGES, /* state that the gateway keeps for this client, or questions to it */
    PSEUDO_TOOL_CALLS,   /* does whatever upstream's tools do */
};

struct pseudo_tool {
    enum config_pseudo_tool id;
    const char *title, *description; /* names of tools are in them as in tools.h */
    enum pseudo_tool_effect effect;
    struct pseudo_parameter parameters[PSEUDO_TOOL_MOST_PARAMETERS + 1];
};

/* client_own_tool_called(); NULL for none. */
const struct pseudo_tool *pseudo_tool_called(struct call *call);

/* The tools that this client is offered, and their names, by its owner's list. */
struct tool_names pseudo_tools_names(const struct call *call);
/* The entries of tools/list: JSON objects with a comma between them. */
void pseudo_tools_write(const struct call *call, const struct tool_names *names,
                        struct buffer *out);
/* Fills in the names of our tools as this client is offered them (below). */
void pseudo_tools_write_text(const struct call *call, const char *text, struct buffer *out);

/* How the tools of a list say whether they take `task`: to a tasks client by behaviour 5.5; to
 * a plain client where its version of the protocol has a place for it. */
enum mcp_announcing pseudo_tools_announcing(const struct call *call);

/* Official clients refuse a result without the structured content that the tool's definition
 * promises, unless it is an error. A plain call may be answered with what is pending. Its client is
 * therefore not told of the output schema of a tool that a rule gives to a human. */
bool pseudo_tools_hide_output(const struct call *call, const struct policy_decision *decision);

/* A JSON object for an error about the task field: the tool of ours that makes the same call, and
 * those that go with it. Writes nothing when it is not offered. */
void pseudo_tools_write_alternative(const struct call *call, struct buffer *out);

/* ---- the handlers, one file for what belongs together ----
 * `arguments` is JSON text that fits the table; may be empty. Each answers the call. */
#define TOOL(symbol, title, effect, handler, ...)                                                  \
    void handler(struct call *call, struct str arguments);
#include "tools_table.h"
#undef TOOL

/* ---- parameters: what a model reads of them, and the check of what it sends ---- */
/* A JSON Schema of an object with these members. */
void pseudo_write_schema(struct buffer *out, const struct pseudo_parameter *parameters);
/* Whether `arguments` (JSON text of an object, or empty) fits. If it does not, `problem` tells a
 * model why. Members that the table lacks are ignored. A null counts as not given. */
bool pseudo_check_arguments(struct str arguments, const struct pseudo_parameter *parameters,
                            struct buffer *problem);

/* ---- of arguments that have been checked ---- */
/* Decoded; false when it is not given. */
bool pseudo_argument_text(struct str arguments, const char *name, struct buffer *out);
int64_t pseudo_argument_number(struct str arguments, const char *name, int64_t most,
                               int64_t fallback);
bool pseudo_argument_is_true(struct str arguments, const char *name);

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
