/*
 * Options of a command: one table. Arguments are read by it, and --help is written from it.
 * Every command has --help and --version, and no table has them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* As the last argument: asks what could stand in its place, for the shells' completion. Nothing is
 * run. The answer is a line for each word: NAME|VALUE|HELP. NAME is empty for an operand. */
#define OPTIONS_COMPLETE "--complete"
/* One such line. Each may be NULL. */
void options_write_word(const char *name, const char *value, const char *help);

struct option {
    const char *name;       /* without "--" */
    const char *value_name; /* "FILE"; NULL for a flag */
    const char *help;
    const char **value; /* the destination of the value; for a flag NULL */
    bool *flag;
    unsigned of; /* bits of the commands that have it, of those that share the table; 0: all */
};

struct command {
    const char *usage;    /* "taskgate explain TOOL [--source ID] [--config FILE] [--json]" */
    const char *synopsis; /* one paragraph for --help */
    const struct option *options;
    size_t option_count;
    unsigned self; /* its bit among those that share the table */
    size_t operands_min, operands_max;
    bool *insecure;           /* flag of --insecure, which the table has not; NULL: there is none */
    const char *operand_name; /* "TOOL": the missing operand for a message */
};

/* In a command's initializer: its table. */
#define COMMAND_OPTIONS(table) .options = (table), .option_count = sizeof(table) / sizeof *(table)

enum options_outcome {
    OPTIONS_READ,
    OPTIONS_HELPED, /* --help or --version was asked for and is written to stdout: exit 0 */
    OPTIONS_WRONG,  /* said on stderr: exit 2 */
};

/* Options and operands may stand in any order; "--" ends the options. `operands` has room for
 * operands_max. */
enum options_outcome options_read(const struct command *command, int argc, char **argv,
                                  const char **operands);
/* The exit code of a command whose options were not OPTIONS_READ. */
int options_exit_code(enum options_outcome outcome);
/* For a command that only has commands below it: true when its first argument asks for help or
 * for the version, which is then written to stdout. */
bool options_answer(const char *argument, void (*write_usage)(FILE *out));
/* The two halves of it. */
bool options_asks_help(const char *argument);
bool options_answer_version(const char *argument);
/* "taskgate: MESSAGE; HINT" on stderr. Returns CLI_USAGE. */
int options_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
