/* From the first argument to the command. */
#include "taskgate/cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "distance.h"
#include "options.h"

static const struct {
    const char *name, *help;
    int (*run)(int argc, char **argv);
} commands[] = {
#define COMMAND_ROW(name, help) {#name, help, cli_##name},
    CLI_COMMANDS(COMMAND_ROW)
#undef COMMAND_ROW
};
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

static void dispatch_write_usage(FILE *out)
{
    fputs("Usage: taskgate COMMAND [OPTIONS]\n"
          "       taskgate --version | --help\n\n"
          "A policy gateway for MCP servers: forwards calls, denies them, or has a human\n"
          "approve them.\n\n",
          out);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-11s %s\n", commands[i].name, commands[i].help);
    fputs("\nEach command has its own --help, and --version. Exit codes: 0 done, 1 failure,\n"
          "2 usage or configuration, 3 admin endpoint unreachable or refused, 4 not found,\n"
          "5 conflict.\n",
          out);
}

static int dispatch_refuse_unknown(const char *name)
{
    const char *names[COMMAND_COUNT];
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        names[i] = commands[i].name;
    const char *nearest = distance_nearest(name, names, COMMAND_COUNT);
    if (nearest)
        return options_complain("there is no command %s; did you mean %s?", name, nearest);
    options_complain("there is no command %s", name);
    dispatch_write_usage(stderr);
    return CLI_USAGE;
}

int cli_main(int argc, char **argv)
{
    if (argc < 2) {
        dispatch_write_usage(stderr);
        return CLI_USAGE;
    }
    if (options_answer(argv[1], dispatch_write_usage))
        return CLI_DONE;
    if (strcmp(argv[1], OPTIONS_COMPLETE) == 0) {
        for (size_t i = 0; i < COMMAND_COUNT; i++)
            options_write_word(commands[i].name, NULL, commands[i].help);
        return CLI_DONE;
    }
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    }
    return dispatch_refuse_unknown(argv[1]);
}
