/*
 * Definitions of tools and lists of them, as servers gave them. Both are immutable and counted, and
 * equal ones are stored once: ten thousand owners with the same list share it. One thread at a
 * time: under the catalogue's lock.
 */
#pragma once

#include "taskgate/core/buffer.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/map.h"
#include "taskgate/mcp/lists.h"
#include "taskgate/policy/policy.h"

/* Tools of one list beyond these are judged and relayed, but not remembered. */
#define LIST_TOOLS_MOST 20000

/* Of a description, as people are shown it. */
#define CATALOG_DESCRIPTION_BYTES 4000

/* By whose list a tool is known. */
enum catalog_word {
    CATALOG_UNKNOWN,
    CATALOG_TOLD,     /* the owner's own */
    CATALOG_GATEWAYS, /* the gateway's own, and those of others */
    CATALOG_OTHERS,   /* those of others alone */
};

/* A copy of what is known of one tool for one owner. If the owner did not get the tool, the
 * strictest of all lists counts: destructive before not destructive, not read-only before read-
 * only, `required` before `optional`. */
struct catalog_tool {
    enum catalog_word word;
    bool known;      /* not CATALOG_UNKNOWN */
    bool has_list;   /* the owner got a whole list, with the tool or without it */
    bool is_current; /* and the server has not announced other tools since */
    bool has_own;
    enum policy_annotation own;
    bool has_output_schema; /* results must have structured content */
    bool wraps_output;      /* of another type than an object, which legacy clients do not know */
    struct policy_hints hints;
    /* Canonical, of the definition. "" when it is unknown, or when only other owners got it: an
     * approval is not bound to a definition that somebody else can change. */
    char digest[DIGEST_HEX_BYTES];
    /* Of the members that are pinned (mcp/definition.h); "" as above. */
    char definition[DIGEST_HEX_BYTES];
};

/* One definition. */
struct known_tool {
    size_t references;
    uint64_t hash; /* of the name */
    struct catalog_tool facts;
    struct parameter_headers *parameters; /* arguments that headers repeat; NULL: none */
    char *described;                      /* as catalog_describe_tool() appends it */
    bool has_text;                        /* the key has the definition's text */
    char *input_schema; /* of a long definition; NULL when it is even longer than is kept */
    size_t input_schema_length;
    unsigned flags; /* of its definition alone */
    char *text;     /* of a long definition, for people; NULL */
    size_t name_length, key_length;
    char key[]; /* the name, a NUL, and the definition's text or, of a long one, its digest */
};

struct known_tools; /* all of them */
struct known_tools *known_tools_create(void);
void known_tools_destroy(struct known_tools *tools);
/* The memory that the tools and the lists take, nearly. */
size_t known_tools_bytes(const struct known_tools *tools);

/* Writes the key of a tool; any thread. */
void known_tool_write_key(struct buffer *key, const struct mcp_tool *tool);
struct str known_tool_name(const struct known_tool *tool);
size_t known_tool_bytes(const struct known_tool *tool);
/* The JSON text of its inputSchema; empty when there is none, or it is not kept. */
struct str known_tool_input_schema(const struct known_tool *tool);
/* With a reference for the caller; NULL when it is not known yet. */
struct known_tool *known_tool_find(struct known_tools *tools, struct str key);
/* As known_tool_find(); makes it, with the canonical digest of its definition, if it is not
 * known. */
struct mcp_definition;
struct known_tool *known_tool_obtain(struct known_tools *tools, struct str key,
                                     const struct mcp_tool *tool, const char *digest,
                                     const struct mcp_definition *definition);
/* Appends what people are shown of its definition. */
void known_tool_write_text(const struct known_tool *tool, struct buffer *out);
/* Whether any tool of the process has arguments that headers repeat: hardly any server has such.
 * Any thread. */
bool known_tools_have_parameters(void);
struct known_tool *known_tool_ref(struct known_tool *tool);
void known_tool_unref(struct known_tools *tools, struct known_tool *tool);

struct tool_list_item {
    struct known_tool *tool; /* counted */
    bool gone;               /* the last whole list was without it; the server may still run it */
};

struct tool_list {
    size_t references;
    uint64_t hash;    /* of its items, in whatever order */
    bool is_interned; /* the only one of these items in its map */
    size_t count, room, slot_count;
    uint32_t *slots; /* 1 + the place of an item, by the hash of its name; 0 is free */
    struct tool_list_item items[];
};

/* A list that is being made, with room for so many; gets one reference. */
struct tool_list *tool_list_create(struct known_tools *tools, size_t room);
/* Adds a tool, or replaces the one of the same name. Does nothing when there is no room. */
void tool_list_put(struct known_tools *tools, struct tool_list *list, struct known_tool *tool,
                   bool gone);
/* NULL when absent; `list` may be NULL. */
const struct tool_list_item *tool_list_find(const struct tool_list *list, struct str name,
                                            uint64_t hash);
/* Ends the making. Replaces `list` with the equal one of `interned` and takes a reference, or puts
 * `list` there. */
struct tool_list *tool_list_intern(struct known_tools *tools, struct map *interned,
                                   struct tool_list *list);
/* Takes it off `interned` with the last reference. */
void tool_list_unref(struct known_tools *tools, struct map *interned, struct tool_list *list);
