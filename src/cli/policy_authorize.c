/* taskgate policy authorize: decisions of any Cedar policy set, one line of JSON each. */
#include "policy.h"

#include "taskgate/cli/cli.h"

#include "options.h"
#include "terminal.h"

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
    struct buffer out;
    struct cedar_response response;
    buffer_init(&out);
    cedar_response_init(&response);
    for (size_t i = 0; i < cedar_requests_count(ground->requests); i++) {
        struct cedar_request request = *cedar_requests_at(ground->requests, i);
        request.budget = UINT64_MAX; /* a command may take its time */
        cedar_authorize(ground->policies, ground->entities, &request, &response);
        append_response(&out, &response);
    }
    bool written = terminal_write(&out);
    cedar_response_finish(&response);
    buffer_finish(&out);
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

int cli_policy_authorize(int argc, char **argv)
{
    const char *policies = NULL, *entities = NULL, *requests = NULL;
    const struct option options[] = {
        {"policies", "FILE", "Cedar policies", &policies, NULL},
        {"entities", "FILE", "entities, in Cedar's JSON form", &entities, NULL},
        {"requests", "FILE", "requests: a JSON array, or an object with \"requests\"", &requests,
         NULL},
    };
    const struct command command = {
        .usage = "taskgate policy authorize --policies FILE --entities FILE --requests FILE",
        .synopsis =
            "Decides requests by any set of Cedar policies, also those of other programs.\n"
            "Prints one line of JSON for each: {\"decision\", \"reason\": the policies that\n"
            "decided, \"errors\": those that could not be evaluated}. Policies are called\n"
            "policy0, policy1, … by place.",
        .options = options,
        .option_count = sizeof options / sizeof *options,
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
