/* taskgate policy: commands that check policies before they are in force. */
#include "policy.h"

#include <stdio.h>
#include <string.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/owned.h"
#include "taskgate/policy/cedar.h"

#include "options.h"
#include "subcommands.h"
#include "terminal.h"

/* ---- policy authorize ---- */

/* taskgate policy authorize: decisions of any Cedar policy set, one line of JSON each. */

/* The data that requests are decided on. */
struct ground {
    struct cedar_policies *policies;
    struct cedar_entities *entities;
    struct cedar_requests *requests;
};

/* "policy0", "policy1", … by place, as Cedar's own tools call policies of a text. */
static void policy_authorize_append_name(struct buffer *out, size_t index,
                                         const struct cedar_policy *policy)
{
    buffer_append_text(out, index > 0 ? "," : "");
    buffer_append_json_string(out, cedar_policy_name(policy));
}

static void append_response(struct buffer *out, const struct cedar_response *response)
{
    buffer_append_format(out, "{\"decision\":\"%s\",\"reason\":[",
                         response->decision == CEDAR_ALLOW ? "allow" : "deny");
    for (size_t i = 0; i < response->reason_count; i++)
        policy_authorize_append_name(out, i, response->reasons[i]);
    buffer_append_text(out, "],\"errors\":[");
    for (size_t i = 0; i < response->failure_count; i++)
        policy_authorize_append_name(out, i, response->failures[i].policy);
    buffer_append_text(out, "]}\n");
}

static int authorize(const struct ground *ground)
{
    OWNED_BUFFER(out);
    struct cedar_response response;
    cedar_response_init(&response);
    for (size_t i = 0; i < cedar_requests_count(ground->requests); i++) {
        struct cedar_request request = *cedar_requests_at(ground->requests, i);
        request.budget = UINT64_MAX; /* a command may take its time */
        cedar_authorize(ground->policies, ground->entities, &request, &response);
        append_response(&out, &response);
    }
    bool written = terminal_write(&out);
    cedar_response_finish(&response);
    return written ? CLI_DONE : CLI_FAILURE;
}

/* All files are read even after a mistake, so that one run reports all mistakes. */
static int read_and_authorize(const char *policies, const char *entities, const char *requests)
{
    struct ground ground = {
        .policies = policy_files_policies(policies),
        .entities = policy_files_entities(entities),
        .requests = policy_files_requests(requests),
    };
    int code = CLI_USAGE;
    if (ground.policies && ground.entities && ground.requests)
        code = authorize(&ground);
    cedar_requests_destroy(ground.requests);
    cedar_entities_destroy(ground.entities);
    cedar_policies_destroy(ground.policies);
    return code;
}

/* argv[0] is the subcommand's own name. Each returns an exit code. */
static int cli_policy_authorize(int argc, char **argv)
{
    const char *policies = NULL, *entities = NULL, *requests = NULL;
    const struct option options[] = {
        {"policies", "FILE", "Cedar policies", &policies},
        {"entities", "FILE", "entities, in Cedar's JSON form", &entities},
        {"requests", "FILE", "requests: a JSON array, or an object with \"requests\"", &requests},
    };
    const struct command command = {
        .usage = "taskgate policy authorize --policies FILE --entities FILE --requests FILE",
        .synopsis =
            "Decides requests by any set of Cedar policies, also those of other programs.\n"
            "Prints one line of JSON for each: {\"decision\", \"reason\": the policies that\n"
            "decided, \"errors\": those that could not be evaluated}. Policies are called\n"
            "policy0, policy1, … by place.",
        COMMAND_OPTIONS(options),
    };
    enum options_outcome outcome = options_read(&command, argc, argv, NULL);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (!*options[i].value)
            return options_complain("--%s is missing; usage: %s", options[i].name, command.usage);
    }
    return read_and_authorize(policies, entities, requests);
}

/* ---- policy parse ---- */

/* taskgate policy parse: everything that is wrong with the text of Cedar policies, or with
 * --print the same policies in one layout. */

static bool print(const struct cedar_policies *policies)
{
    OWNED_BUFFER(out);
    cedar_policies_print(policies, &out);
    return terminal_write(&out);
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

static int cli_policy_parse(int argc, char **argv)
{
    const char *path = NULL;
    bool prints = false;
    const struct option options[] = {
        {"print", NULL, "write them to stdout in one layout; comments are lost", .flag = &prints},
    };
    const struct command command = {
        .usage = "taskgate policy parse [--print] FILE",
        .synopsis =
            "Reads Cedar policies and reports every mistake on stderr, as FILE:LINE:COLUMN\n"
            "with the expected text. A mistake gives exit code 2. To check whether policies\n"
            "fit the gateway, use taskgate check.",
        COMMAND_OPTIONS(options),
        .operands_min = 1,
        .operands_max = 1,
        .operand_name = "FILE",
    };
    enum options_outcome outcome = options_read(&command, argc, argv, &path);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    return policy_parse_parse(path, prints);
}

/* ---- the commands ---- */

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
        SUBCOMMAND_ROWS(subcommands),
    };
    return subcommands_run(&set, argc, argv);
}
