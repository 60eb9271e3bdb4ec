/* taskgate policy: commands that check policies before they are in force. */
#include "policy.h"

#include <stdio.h>
#include <string.h>

#include "taskgate/cli/cli.h"

#include "options.h"
#include "subcommands.h"

static const struct {
    const char *name, *help;
    int (*run)(int argc, char **argv);
} subcommands[] = {
    {"authorize", "decide requests by any set of Cedar policies", cli_policy_authorize},
    {"parse", "read Cedar policies and report every mistake", cli_policy_parse},
    {"simulate", "judge recorded calls by a changed configuration", cli_policy_simulate},
    {"test", "run the cases beside rules and policies", cli_policy_test},
};
#define SUBCOMMAND_COUNT (sizeof subcommands / sizeof *subcommands)

static void write_usage(FILE *out)
{
    fputs("Usage: taskgate policy SUBCOMMAND [OPTIONS]\n\n"
          "Tries rules and policies before they are in force. Needs no running gateway.\n\n",
          out);
    for (size_t i = 0; i < SUBCOMMAND_COUNT; i++)
        fprintf(out, "  %-9s %s\n", subcommands[i].name, subcommands[i].help);
    fputs("\nEach has its own --help.\n", out);
}

static const char *name_of(size_t index)
{
    return subcommands[index].name;
}

static const char *help_of(size_t index)
{
    return subcommands[index].help;
}

int cli_policy(int argc, char **argv)
{
    static const struct subcommands set = {"policy", SUBCOMMAND_COUNT, name_of, help_of,
                                           write_usage};
    size_t chosen;
    int code;
    if (!subcommands_choose(&set, argc, argv, &chosen, &code))
        return code;
    return subcommands[chosen].run(argc - 1, argv + 1);
}
