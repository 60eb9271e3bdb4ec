/* The choice of a subcommand by its name, for commands that only have commands below them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct subcommands {
    const char *command; /* "tasks" */
    size_t count;
    const char *(*name)(size_t index);
    const char *(*help)(size_t index); /* a few words */
    void (*write_usage)(FILE *out);
};

/* Chooses the subcommand that argv[1] names. false: --help or --version was answered, or there is
 * no such subcommand, which is said on stderr; then `*code` is the exit code. */
bool subcommands_choose(const struct subcommands *set, int argc, char **argv, size_t *chosen,
                        int *code);
