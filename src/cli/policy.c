/* taskgate policy: commands that check policies before they are in force. */
#include "policy.h"

#include <stdio.h>
#include <string.h>

#include "taskgate/cli/cli.h"

#include "options.h"
#include "subcommands.h"

static const struct subcommand_main subcommands[] = {
    {{"authorize", "", "decide requests by any set of Cedar policies"}, cli_policy_authorize},
    {{"parse", "", "read Cedar policies and report every mistake"}, cli_policy_parse},
    {{"simulate", "", "judge recorded calls by a changed configuration"}, cli_policy_simulate},
    {{"test", "", "run the cases beside rules and policies"}, cli_policy_test},
};

int cli_policy(int argc, char **argv)
{
    static const struct subcommands set = {
        .command = "policy",
        .head = "Usage: taskgate policy SUBCOMMAND [OPTIONS]\n\n"
                "Tries rules and policies before they are in force. Needs no running gateway.\n\n",
        .foot = "\nEach has its own --help.\n",
        .rows = subcommands,
        .row_bytes = sizeof *subcommands,
        .count = sizeof subcommands / sizeof *subcommands,
    };
    return subcommands_run(&set, argc, argv);
}
