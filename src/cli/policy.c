/* taskgate policy: commands that check policies before they are in force. */
#include "policy.h"

#include <stdio.h>
#include <string.h>

#include "taskgate/cli/cli.h"

#include "distance.h"
#include "options.h"

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

static int refuse_unknown(const char *name)
{
    const char *names[SUBCOMMAND_COUNT];
    for (size_t i = 0; i < SUBCOMMAND_COUNT; i++)
        names[i] = subcommands[i].name;
    const char *nearest = distance_nearest(name, names, SUBCOMMAND_COUNT);
    if (nearest)
        return options_complain("there is no taskgate policy %s; did you mean %s?", name, nearest);
    options_complain("there is no taskgate policy %s", name);
    write_usage(stderr);
    return CLI_USAGE;
}

int cli_policy(int argc, char **argv)
{
    if (argc < 2) {
        write_usage(stderr);
        return CLI_USAGE;
    }
    if (options_answer(argv[1], write_usage))
        return CLI_DONE;
    for (size_t i = 0; i < SUBCOMMAND_COUNT; i++) {
        if (strcmp(argv[1], subcommands[i].name) == 0)
            return subcommands[i].run(argc - 1, argv + 1);
    }
    return refuse_unknown(argv[1]);
}
