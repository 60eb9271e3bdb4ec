/* taskgate call: a tool is called through a running gateway, by an operator's token. */
#include <inttypes.h>
#include <stdio.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"

#include "admin_client.h"
#include "listing.h"
#include "options.h"
#include "tasks_result.h"
#include "tasks_show.h"

struct arguments {
    const char *operands[2]; /* the tool; its arguments, or NULL */
    const char *source, *ttl, *wait;
    bool json;
    int64_t ttl_ms, wait_ms;
};

static int call_read_arguments(struct arguments *arguments)
{
    struct error error = {""};
    const char *json = arguments->operands[1];
    if (!arguments->operands[0][0])
        return options_complain("the tool's name is empty");
    if (json && !json_check(str_from(json), &error))
        return options_complain("the arguments are not JSON: %s", error.message);
    if (json && json_type(str_from(json)) != JSON_OBJECT)
        return options_complain("the arguments must be a JSON object, such as '{\"id\": 1}'");
    if (!tasks_read_duration("ttl", arguments->ttl, &arguments->ttl_ms) ||
        !tasks_read_duration("wait", arguments->wait, &arguments->wait_ms))
        return CLI_USAGE;
    if (arguments->ttl && arguments->ttl_ms == 0)
        return options_complain("--ttl must be longer than 0");
    return CLI_DONE;
}

static void call_write_body(struct buffer *body, const struct arguments *arguments)
{
    buffer_append_char(body, '{');
    json_add_text(body, "tool", arguments->operands[0]);
    json_add_value(body, "arguments", str_from(arguments->operands[1]));
    if (arguments->source)
        json_add_text(body, "source", arguments->source);
    if (arguments->ttl)
        json_add_number(body, "ttl", arguments->ttl_ms);
    buffer_append_char(body, '}');
}

/* The id goes to stderr first, so that a user who stops waiting can still fetch the result. */
static int await_result(struct admin_client *client, const struct arguments *arguments,
                        struct str task)
{
    OWNED_BUFFER(line);
    OWNED_BUFFER(id);
    tasks_append_member(&line, task, "id");
    fprintf(stderr, "taskgate: task %.*s\n", STR_ARGS(buffer_str(&line)));
    json_decode_string(json_member(task, "id"), &id);
    buffer_append_char(&id, '\0');
    return tasks_result(client, id.bytes, arguments->wait_ms, arguments->json);
}

static int call_send_call(struct admin_client *client, const struct arguments *arguments)
{
    OWNED_BUFFER(call);
    OWNED_BUFFER(task);
    call_write_body(&call, arguments);
    struct admin_request request = {
        .method = "POST", .path = "/api/v1/calls", .body = buffer_str(&call)};
    int code = admin_client_send(client, &request, &task);
    if (code == CLI_DONE && arguments->wait)
        code = await_result(client, arguments, buffer_str(&task));
    else if (code == CLI_DONE)
        code = listing_print(buffer_str(&task), arguments->json, tasks_append_change);
    return code;
}

int cli_call(int argc, char **argv)
{
    struct arguments arguments = {0};
    const struct option options[] = {
        {"source", "ID", "the source of the tool, if there are several", &arguments.source},
        {"ttl", "DURATION", "how long the task may wait for a decision, such as 10m",
         &arguments.ttl},
        {"wait", "DURATION", "wait at most so long for the result, and print it", &arguments.wait},
        {"json", NULL, "print JSON", .flag = &arguments.json},
    };
    const struct command command = {
        .usage = "taskgate call TOOL [JSON] [--source ID] [--ttl DURATION]\n"
                 "       [--wait DURATION] [--json]",
        .synopsis = "Calls a tool through a running gateway, with a token of the role caller. The\n"
                    "rules for agents hold. Prints the task of the call.",
        COMMAND_OPTIONS(options),
        .insecure = &admin_client_is_insecure,
        .operands_min = 1,
        .operands_max = 2,
        .operand_name = "TOOL",
    };
    enum options_outcome outcome = options_read(&command, argc, argv, arguments.operands);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    if (call_read_arguments(&arguments) != CLI_DONE)
        return CLI_USAGE;
    OWNED_ADMIN_CLIENT(client);
    return client ? call_send_call(client, &arguments) : CLI_USAGE;
}
