/*
 * One YAML document as a tree; every node knows its place. The reader is stricter than YAML (no
 * aliases, no merge keys, no second document, no duplicate keys), and bounded.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "source_text.h"

enum node_kind { NODE_TEXT, NODE_LIST, NODE_MAPPING };

struct node {
    enum node_kind kind;
    size_t start, end;    /* in characters of the replaced text */
    char *text;           /* NODE_TEXT; NUL-terminated, holds no other NUL */
    bool is_plain;        /* NODE_TEXT without quotes */
    struct node **keys;   /* NODE_MAPPING; NODE_TEXT each */
    struct node **values; /* of a mapping, or a list's items */
    size_t count;
};

/* The receiver of findings, and the text that their places refer to. */
struct report {
    const struct source_text *source;
    struct config_problems *problems;
    const char *beginning; /* hint for an empty document; may be NULL */
};

/* NULL with at least one error reported; the variables that are missing are reported, too. */
struct node *document_parse(const struct report *report);
void node_destroy(struct node *node); /* NULL is allowed */

/* The value of `key`, or NULL; also NULL when `mapping` is no mapping or is NULL. */
const struct node *node_get(const struct node *mapping, const char *key);
/* No value, or YAML's null: an optional key that is written but left empty. */
bool node_is_null(const struct node *node);

/* The single value, unless it is null; else NULL. */
const char *node_text(const struct node *node);
/* "path.name", with the name in quotes where it would not read as one. The caller frees. */
char *document_join(const char *path, const char *name);

/* Reports at `node`; path and hint may be NULL. A value that a missing variable was to give
 * is passed over: that the variable is missing says it all. */
void report_error(const struct report *report, const struct node *node, const char *path,
                  const char *hint, const char *format, ...) __attribute__((format(printf, 5, 6)));
void report_warning(const struct report *report, const struct node *node, const char *path,
                    const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void report_by(const struct report *report, bool is_warning, const struct node *node,
               const char *path, const char *hint, const char *format, va_list arguments);
/* The node's text in quotes for a message; text of a variable is not shown, because it may be a
 * secret. The caller frees. */
char *report_quote(const struct report *report, const struct node *node);
