/*
 * The text of a configuration file with ${VAR} and ${VAR:-default} replaced, and the way
 * back from there to the lines and columns that the person sees in the file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "problems.h"
#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"

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
