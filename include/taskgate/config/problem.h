/*
 * The findings on a configuration: mistakes and warnings with their places. Source: behaviour 2.2.
 * Any thread; nothing is shared.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "taskgate/core/buffer.h"

struct config_file;

/* 1-based; 0 when there is no place. */
struct config_place {
    int line, column;
};

/* One thing that is wrong, or worth a warning, where it stands. */
struct config_problem {
    bool is_warning;
    char *file;       /* or the variable's name when the environment is at fault; or NULL */
    int line, column; /* 1-based; 0 when there is no place */
    char *key;        /* "governance.rules[2].action", or NULL */
    char *message;    /* with the rule's id where the reference gives one: "V-007 …" */
    char *hint;       /* or NULL */
};

struct config_problems {
    struct config_problem *items;
    size_t count, errors; /* errors: those that are no warnings */
    /* After a failed load: the files that it read, or did not find. */
    struct config_file *files;
    size_t file_count;
};

/* Adds a problem that another layer found in a file of the configuration, unless it is there
 * already: two configurations may name one file. `file` may be NULL if the message has the place.
 */
void config_problems_add(struct config_problems *problems, bool is_warning, const char *file,
                         int line, int column, const char *message);
void config_problems_finish(struct config_problems *problems);
/* "FILE:LINE:COLUMN: key.path: MESSAGE; HINT\n" for each, warnings with "warning: ". */
void config_problems_write(const struct config_problems *problems, struct buffer *out);
void config_problems_write_places(const struct config_problems *problems, struct buffer *out);
