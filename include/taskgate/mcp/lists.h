/*
 * tools/list, resources/list and prompts/list replies: reading the items, writing the list anew
 * without hidden items and with what each tool is announced as. Everything else stays byte for
 * byte. Source: behaviour 5.1, 5.5; the demands of clients: tests/unit/mcp/clients_test.c.
 *
 * Any thread; nothing is owned.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"
#include "taskgate/policy/policy.h"

struct mcp_tool {
    struct str name; /* decoded; valid during the call of the judge */
    struct str raw;  /* the tool's JSON text */
    bool has_own;    /* upstream says taskSupport, in execution (first) or annotations */
    enum policy_annotation own;
    bool has_output_schema;
    struct policy_hints hints; /* annotations.readOnlyHint …, where they are true or false */
};

/* Judges one item: false hides it. For tools `announce` is filled; it is
 * ANNOTATION_FORBIDDEN before. */
typedef bool (*mcp_tool_judge)(void *context, const struct mcp_tool *tool,
                               enum policy_annotation *announce);
/* Asked of each tool with an outputSchema that is shown. */
typedef bool (*mcp_tool_hider)(void *context, const struct mcp_tool *tool);
/* `entry` is the one that has the name itself; empty: a name below it. */
typedef bool (*mcp_name_judge)(void *context, struct str name, struct str entry);

/* Writes entries that come behind the last one: JSON values with commas between them, or nothing.
 * Called once, when each item has been judged. */
typedef void (*mcp_items_writer)(void *context, struct buffer *out);

/* A list reply whose members have been found in one walk. */
struct mcp_list {
    struct str result;
    const char *name;
    struct str items;       /* empty when there are none; need be no array */
    struct str next_cursor; /* JSON text; empty when absent, may be null */
};
/* `result` is a list reply's JSON text that json_check() has accepted, here and below; `name` that
 * of its list. */
struct mcp_list mcp_list_find(struct str result, const char *name);
bool mcp_list_is_last(const struct mcp_list *list);

/* How `taskSupport` is written. */
enum mcp_announcing {
    MCP_ANNOUNCE_TWICE, /* in `annotations` and `execution`, which is the older form */
    MCP_ANNOUNCE_ONCE,  /* in `execution`, which is left out for ANNOTATION_FORBIDDEN */
    MCP_ANNOUNCE_NOT,   /* `execution` is left out */
};

/* Writes the reply with every tool judged in order, duplicates each. An item without a readable
 * name is hidden, as is a whole list that is no array. A null nextCursor is left out (clients
 * reject it). An own taskSupport in upstream's item is replaced in both places. */
void mcp_tools_rewrite(struct buffer *out, struct str result, mcp_tool_judge judge, void *context);
/* The same without the outputSchema of the tools of which `hides` says so, and with more at the end
 * of the list, which is begun where there is none. */
/* Writes another inputSchema for the tool that was judged last; false: it stays as it is. */
typedef bool (*mcp_schema_writer)(void *context, const struct mcp_tool *tool, struct buffer *out);
struct mcp_tools_rewriting {
    mcp_tool_judge judge;
    mcp_tool_hider hides;     /* or NULL */
    mcp_schema_writer schema; /* or NULL */
    mcp_items_writer more;    /* or NULL */
    void *context;
    enum mcp_announcing announcing;
};
void mcp_tools_rewrite_with(struct buffer *out, const struct mcp_list *list,
                            const struct mcp_tools_rewriting *rewriting);
/* Reads only: calls `judge` for each tool, its answer ignored. False when there is no list. */
bool mcp_tools_read(struct str result, mcp_tool_judge judge, void *context);
/* `list` is "resources" or "prompts", `key` "uri" or "name". */
void mcp_list_filter(struct buffer *out, struct str result, const char *list, const char *key,
                     mcp_name_judge judge, void *context);
/* Whether `judge` lets the `uri` of an entry pass, and that of each of its `resources` where it has
 * some. An entry without a readable one does not pass, nor does one whose `resources` are neither a
 * list nor a text. */
bool mcp_entry_passes(struct str entry, mcp_name_judge judge, void *context);
/* Writes `result` with the entries of its list that pass, each as it is. */
void mcp_entries_filter(struct buffer *out, struct str result, const char *list,
                        mcp_name_judge judge, void *context);
/* Writes `result` with `items` (JSON values with commas between them) at the end of its list,
 * which is begun where there is none. */
void mcp_list_append(struct buffer *out, struct str result, const char *list, struct str items);
/* result.nextCursor as JSON text; empty when absent or null. */
struct str mcp_next_cursor(struct str result);
