/* taskgate policy parse: everything that is wrong with the text of Cedar policies. */
#include "policy.h"

#include "taskgate/cli/cli.h"

#include "options.h"

int cli_policy_parse(int argc, char **argv)
{
    const char *path = NULL;
    const struct command command = {
        .usage = "taskgate policy parse FILE",
        .synopsis =
            "Reads Cedar policies and says everything that is wrong with them, on stderr, as\n"
            "FILE:LINE:COLUMN with what was expected. Exit code 2 if anything is.\n"
            "Whether they fit the gateway is another question: taskgate check.",
        .operands_min = 1,
        .operands_max = 1,
        .operand_name = "FILE",
    };
    switch (options_read(&command, argc, argv, &path)) {
    case OPTIONS_HELPED:
        return CLI_DONE;
    case OPTIONS_WRONG:
        return CLI_USAGE;
    case OPTIONS_READ:
        break;
    }
    struct cedar_policies *policies = policy_files_policies(path);
    int code = policies ? CLI_DONE : CLI_USAGE;
    cedar_policies_destroy(policies);
    return code;
}
