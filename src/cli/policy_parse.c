/* taskgate policy parse: everything that is wrong with the text of Cedar policies, or with
 * --print the same policies in one layout. */
#include "policy.h"

#include "taskgate/cli/cli.h"
#include "taskgate/policy/cedar_print.h"

#include "options.h"
#include "terminal.h"

static bool print(const struct cedar_policies *policies)
{
    struct buffer out;
    buffer_init(&out);
    cedar_policies_print(policies, &out);
    bool written = terminal_write(&out);
    buffer_finish(&out);
    return written;
}

static int policy_parse_parse(const char *path, bool prints)
{
    struct cedar_policies *policies = policy_files_policies(path);
    if (!policies)
        return CLI_USAGE;
    int code = !prints || print(policies) ? CLI_DONE : CLI_FAILURE;
    cedar_policies_destroy(policies);
    return code;
}

int cli_policy_parse(int argc, char **argv)
{
    const char *path = NULL;
    bool prints = false;
    const struct option options[] = {
        {"print", NULL, "write them to stdout in one layout; comments are lost", NULL, &prints},
    };
    const struct command command = {
        .usage = "taskgate policy parse [--print] FILE",
        .synopsis =
            "Reads Cedar policies and reports every mistake on stderr, as FILE:LINE:COLUMN\n"
            "with the expected text. A mistake gives exit code 2. To check whether policies\n"
            "fit the gateway, use taskgate check.",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .operands_min = 1,
        .operands_max = 1,
        .operand_name = "FILE",
    };
    enum options_outcome outcome = options_read(&command, argc, argv, &path);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    return policy_parse_parse(path, prints);
}
