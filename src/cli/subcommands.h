/* The choice of a subcommand by its name, for commands that only have commands below them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A subcommand in the usage of its command. */
struct subcommand_text {
    const char *name, *operands; /* "" without operands */
    const char *help;            /* a few words */
};

struct subcommands {
    const char *command;     /* "tasks" */
    const char *head, *foot; /* of the usage, around its list */
    const void *rows;        /* each begins with a struct subcommand_text */
    size_t row_bytes, count;
};

/* In its initializer: the table. */
#define SUBCOMMAND_ROWS(table)                                                                     \
    .rows = (table), .row_bytes = sizeof *(table), .count = sizeof(table) / sizeof *(table)

/* Chooses the subcommand that argv[1] names, and returns its row. NULL: --help or --version was
 * answered, or there is no such subcommand, which is said on stderr; then `*code` is the exit
 * code. */
const void *subcommands_choose(const struct subcommands *set, int argc, char **argv, int *code);

/* A row of a command whose subcommands read their options each by itself. */
struct subcommand_main {
    struct subcommand_text text;
    int (*run)(int argc, char **argv);
};
/* Chooses among such rows, and returns the exit code. */
int subcommands_run(const struct subcommands *set, int argc, char **argv);
