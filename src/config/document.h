/*
 * One YAML document as a tree; every node knows its place. The reader is stricter than YAML (no
 * aliases, no merge keys, no second document, no duplicate keys), and bounded.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"

/* ---- findings: each has its place; all are collected, and none is fatal by itself ---- */

/* The place of a finding; line 0 when it has none in a file. */
struct place {
    const char *file; /* or the variable's name; NULL when neither */
    int line, column;
};

/* `hint` may be NULL; everything is copied. */
void problems_error(struct config_problems *problems, struct place place, const char *key,
                    const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void problems_warning(struct config_problems *problems, struct place place, const char *key,
                      const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Whether the same has been found at the same place. */
bool problems_have(const struct config_problems *problems, bool is_warning, struct place place,
                   const char *message);

/* `text` in double quotes, escaped and cut to a length fit for a message. The caller frees. */
char *problems_quote(const char *text);

/* ---- the text of a file with ${VAR} and ${VAR:-default} replaced, and the way back from there to
 * the lines and columns that the person sees in the file ---- */

enum segment_kind {
    SEGMENT_PLAIN,
    SEGMENT_VALUE,   /* all of it stands for the one ${…} at original_start */
    SEGMENT_MISSING, /* likewise, and is but the variable's name: there is no value */
};

struct segment {
    enum segment_kind kind;
    size_t text_start;     /* in characters of the replaced text */
    size_t original_start; /* in characters of the file */
    char *problem;         /* of SEGMENT_MISSING */
};

struct source_text {
    const char *name;   /* of the file; borrowed */
    struct buffer text; /* the text that YAML is read from */
    struct segment *segments;
    size_t segment_count;
    size_t *line_starts; /* in characters of the file */
    size_t line_count;
};

/* Replaces over the raw text, comments included. A variable without a value leaves a segment with
 * the problem; the reader of the key reports it. Without an `environment` nothing is replaced.
 * `name` must outlive the result. */
void source_text_init(struct source_text *source, struct str original, const char *name,
                      config_getenv environment);
void source_text_finish(struct source_text *source);

/* The origin of the character `index` of the replaced text. */
struct place source_text_place(const struct source_text *source, size_t index);
/* Whether any of [start, end) is of that kind: a value may be a secret. */
bool source_text_holds(const struct source_text *source, size_t start, size_t end,
                       enum segment_kind kind);

/* ---- the tree ---- */

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
