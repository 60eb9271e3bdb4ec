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
    /* Runs a row; argv[0] is its name. NULL: each is a struct subcommand_main. */
    int (*run)(const void *row, int argc, char **argv);
};

/* In its initializer: the table. */
#define SUBCOMMAND_ROWS(table)                                                                     \
    .rows = (table), .row_bytes = sizeof *(table), .count = sizeof(table) / sizeof *(table)

/* A row of a command whose subcommands read their options each by itself. */
struct subcommand_main {
    struct subcommand_text text;
    int (*run)(int argc, char **argv);
};
/* Runs the subcommand that argv[1] names, and returns its exit code. --help and --version are
 * answered; an unknown name is said on stderr. */
int subcommands_run(const struct subcommands *set, int argc, char **argv);
