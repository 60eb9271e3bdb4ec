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

struct segment {
    size_t text_start;     /* in characters of the replaced text */
    size_t original_start; /* in characters of the file */
    bool is_substituted;   /* all of it stands for the one ${…} at original_start */
};

struct source_text {
    const char *name;   /* of the file; borrowed */
    struct buffer text; /* what YAML is read from */
    struct segment *segments;
    size_t segment_count;
    size_t *line_starts; /* in characters of the file */
    size_t line_count;
};

/* Replaces over the raw text, comments included (reference §1.3), and reports every variable
 * that is missing (V-014). `name` must outlive it. Finish it whatever comes of it. */
void source_text_init(struct source_text *source, struct str original, const char *name,
                      config_getenv environment, struct config_problems *problems);
void source_text_finish(struct source_text *source);

/* Where the character `index` of the replaced text comes from. */
struct place source_text_place(const struct source_text *source, size_t index);
/* Whether any of [start, end) came out of a variable, so that it may be a secret. */
bool source_text_is_substituted(const struct source_text *source, size_t start, size_t end);
