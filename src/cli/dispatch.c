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
    {"serve", "run the gateway", cli_serve},
    {"check", "read the configuration and say everything that is wrong with it", cli_check},
    {"explain", "say what the rules come to for one tool, and why", cli_explain},
    {"policy", "try policies before they are in force", cli_policy},
    {"tasks", "list, show and decide the calls that wait for a human", cli_tasks},
    {"grants", "list and revoke grants: calls that run again without a question", cli_grants},
    {"block", "stop a caller for a while: its calls are refused", cli_block},
    {"blocks", "list and lift blocks", cli_blocks},
    {"definitions", "list, show and accept what servers define and have changed", cli_definitions},
    {"audit", "list, show, export and verify the audit trail", cli_audit},
    {"backup", "copy the store while the gateway runs", cli_backup},
    {"store", "copy the store, bring its schema up, accept a timeline", cli_store},
    {"call", "call a tool through a running gateway, under its rules", cli_call},
    {"completion", "print what completes commands in bash or zsh", cli_completion},
    {"login", "sign in at a running gateway's identity provider", cli_login},
    {"logout", "forget that sign-in", cli_logout},
    {"whoami", "say who you are to a running gateway, and what you may do", cli_whoami},
    {"health", "say whether a running gateway is alive, or ready for calls", cli_health},
    {"page", "print the address of the operators' page, with the local token", cli_page},
    {"schema", "print the JSON Schema of the configuration, for editors", cli_schema},
    {"version", "print the version, and those of the libraries", cli_version},
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
