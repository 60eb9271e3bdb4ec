/* taskgate tasks: list, next, show, result, approve, reject, cancel, watch, over the admin
 * endpoint. */
#include "tasks.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/json/visible.h"

#include "admin_client.h"
#include "options.h"
#include "subcommands.h"
#include "tasks_confirm.h"
#include "tasks_list.h"
#include "tasks_next.h"
#include "tasks_pages.h"
#include "terminal.h"

#define ARGUMENTS_MAX_BYTES ((size_t)4 * 1024 * 1024) /* as the endpoint takes at most */

/* The options of all subcommands, once read. */
struct arguments {
    const char *id;
    const char *state, *source, *tool, *limit, *cursor;
    const char *reason, *wait;
    const char *grant_for, *grant_calls;
    const char *file; /* with other arguments for the call */
    struct tasks_confirmation confirmation;
    bool emergency;
    bool json;
};

struct subcommand {
    struct subcommand_text text;
    int (*run)(struct admin_client *client, const struct subcommand *self,
               const struct arguments *arguments);
    enum {
        WITH_NO_OPTION,
        WITH_NOTHING,
        WITH_FILTERS,
        WITH_ID,
        WITH_DECISION,
        WITH_REJECTION,
        WITH_APPROVAL,
        WITH_WAIT
    } with;
};

static int tasks_run_list(struct admin_client *client, const struct subcommand *self,
                          const struct arguments *arguments);
static int tasks_run_show(struct admin_client *client, const struct subcommand *self,
                          const struct arguments *arguments);
static bool tasks_read_file(const char *path, struct buffer *text, struct error *error)
{
    FILE *file = fopen(path, "re");
    char part[4096];
    size_t count = 0;
    while (file && text->length <= ARGUMENTS_MAX_BYTES &&
           (count = fread(part, 1, sizeof part, file)) > 0)
        buffer_append(text, str_slice(part, count));
    bool is_good = file && !ferror(file) && text->length <= ARGUMENTS_MAX_BYTES;
    if (!is_good)
        error_set(error, "%s",
                  text->length > ARGUMENTS_MAX_BYTES ? "is larger than 4 MiB" : strerror(errno));
    if (file)
        fclose(file);
    return is_good;
}

/* The endpoint judges the content; what is no JSON at all would make a body that is none. */
static bool append_file(struct buffer *decision, const char *path)
{
    struct buffer text;
    struct error error = {""};
    if (!path)
        return true;
    buffer_init(&text);
    bool is_good = tasks_read_file(path, &text, &error) && json_check(buffer_str(&text), &error);
    if (is_good) {
        json_add_key(decision, "arguments");
        buffer_append(decision, str_trim(buffer_str(&text)));
    } else {
        options_complain("--arguments %s: %s", path, error.message);
    }
    buffer_finish(&text);
    return is_good;
}

static int run_decision(struct admin_client *client, const struct subcommand *self,
                        const struct arguments *arguments);
static int run_watch(struct admin_client *client, const struct subcommand *self,
                     const struct arguments *arguments);
static int run_result(struct admin_client *client, const struct subcommand *self,
                      const struct arguments *arguments);
static int run_next(struct admin_client *client, const struct subcommand *self,
                    const struct arguments *arguments);

static const struct subcommand subcommands[] = {
    {{"list", "[FILTERS]", "list tasks, the most urgent ones first"}, tasks_run_list, WITH_FILTERS},
    {{"next", "", "decide what waits, one by one, by single keys"}, run_next, WITH_NO_OPTION},
    {{"show", "ID", "show one task with its arguments"}, tasks_run_show, WITH_ID},
    {{"result", "ID [--wait D]", "print the result of the call"}, run_result, WITH_WAIT},
    {{"approve", "ID [OPTIONS]", "vote for the call; the last vote lets it run"},
     run_decision,
     WITH_APPROVAL},
    {{"reject", "ID [OPTIONS]", "refuse the call; the agent gets the reason"},
     run_decision,
     WITH_REJECTION},
    {{"withdraw", "ID [--reason TEXT]", "take your vote back"}, run_decision, WITH_DECISION},
    {{"cancel", "ID [--reason TEXT]", "cancel a task that has not ended"},
     run_decision,
     WITH_DECISION},
    {{"watch", "", "print changes as they happen"}, run_watch, WITH_NOTHING},
};

/* ---- the subcommands ---- */

static int print_json(const struct buffer *body)
{
    struct buffer text;
    buffer_init(&text);
    visible_append_json(&text, buffer_str(body));
    buffer_append_char(&text, '\n');
    bool written = terminal_write(&text);
    buffer_finish(&text);
    return written ? CLI_DONE : CLI_FAILURE;
}

static int print_text(struct buffer *text)
{
    bool written = terminal_write(text);
    buffer_finish(text);
    return written ? CLI_DONE : CLI_FAILURE;
}

static int tasks_run_list(struct admin_client *client, const struct subcommand *self,
                          const struct arguments *arguments)
{
    (void)self;
    const struct tasks_filters filters = {arguments->state,  arguments->source, arguments->tool,
                                          arguments->cursor, arguments->limit,  arguments->json};
    return tasks_print_list(client, &filters);
}

static int run_next(struct admin_client *client, const struct subcommand *self,
                    const struct arguments *arguments)
{
    (void)self;
    (void)arguments;
    return tasks_next(client);
}

static int tasks_run_show(struct admin_client *client, const struct subcommand *self,
                          const struct arguments *arguments)
{
    (void)self;
    struct buffer body, text;
    buffer_init(&body);
    buffer_init(&text);
    char *id = admin_client_encode(client, arguments->id);
    char *path = memory_format("/api/v1/tasks/%s", id);
    struct admin_request request = {.method = "GET", .path = path};
    int code = admin_client_send(client, &request, &body);
    if (code == CLI_DONE && arguments->json) {
        code = print_json(&body);
    } else if (code == CLI_DONE) {
        tasks_append_details(&text, buffer_str(&body));
        code = tasks_append_outcome(&text, client, arguments->id, buffer_str(&body));
        int printed = print_text(&text);
        code = code == CLI_DONE ? printed : code;
    }
    free(path);
    free(id);
    buffer_finish(&body);
    return code;
}

/* The endpoint judges the duration and the number. */
static bool tasks_append_grant(struct buffer *decision, const struct arguments *arguments)
{
    uint64_t calls;
    if (!arguments->grant_for && !arguments->grant_calls)
        return true;
    if (!arguments->grant_for || !arguments->grant_calls) {
        options_complain("--grant-for and --grant-calls go together");
        return false;
    }
    if (!str_to_u64(str_from(arguments->grant_calls), &calls) || calls == 0) {
        options_complain("--grant-calls wants a whole number from 1 on");
        return false;
    }
    json_add_key(decision, "grant");
    buffer_append_char(decision, '{');
    json_add_text(decision, "for", arguments->grant_for);
    buffer_append_format(decision, ",\"calls\":%s}", arguments->grant_calls);
    return true;
}

static int run_decision(struct admin_client *client, const struct subcommand *self,
                        const struct arguments *arguments)
{
    struct buffer decision, body, text;
    buffer_init(&decision);
    buffer_init(&body);
    buffer_init(&text);
    buffer_append(&decision, STR("{"));
    if (arguments->reason)
        json_add_text(&decision, "reason", arguments->reason);
    if (arguments->emergency) {
        json_add_key(&decision, "emergency");
        buffer_append_text(&decision, "true");
    }
    bool is_good =
        tasks_append_grant(&decision, arguments) && append_file(&decision, arguments->file);
    int code = is_good ? CLI_DONE : CLI_USAGE;
    if (is_good && (self->with == WITH_APPROVAL || self->with == WITH_REJECTION))
        code = tasks_confirm(client, arguments->id, self->text.name, &arguments->confirmation,
                             &decision);
    if (code != CLI_DONE) {
        buffer_finish(&decision);
        return code;
    }
    buffer_append(&decision, STR("}"));
    char *id = admin_client_encode(client, arguments->id);
    char *path = memory_format("/api/v1/tasks/%s/%s", id, self->text.name);
    struct admin_request request = {.method = "POST", .path = path, .body = buffer_str(&decision)};
    code = admin_client_send(client, &request, &body);
    if (code == CLI_DONE && arguments->json) {
        code = print_json(&body);
    } else if (code == CLI_DONE) {
        tasks_append_change(&text, buffer_str(&body));
        code = print_text(&text);
    }
    free(path);
    free(id);
    buffer_finish(&body);
    buffer_finish(&decision);
    return code;
}

static int run_watch(struct admin_client *client, const struct subcommand *self,
                     const struct arguments *arguments)
{
    (void)self;
    return tasks_watch(client, arguments->json);
}

static int run_result(struct admin_client *client, const struct subcommand *self,
                      const struct arguments *arguments)
{
    (void)self;
    int64_t wait_ms;
    if (!tasks_read_duration("wait", arguments->wait, &wait_ms))
        return CLI_USAGE;
    return tasks_result(client, arguments->id, wait_ms, arguments->json);
}

/* ---- finding and reading ---- */

/* An id may be cut to what begins no other. */
static int run_with_id(struct admin_client *client, const struct subcommand *self,
                       const struct arguments *arguments)
{
    struct arguments whole = *arguments;
    char *id = NULL;
    int code = arguments->id ? tasks_find(client, arguments->id, &id) : CLI_DONE;
    whole.id = id;
    if (code == CLI_DONE)
        code = self->run(client, self, &whole);
    free(id);
    return code;
}

static int read_and_run(const struct subcommand *self, int argc, char **argv,
                        struct arguments *arguments, const struct option *options,
                        size_t option_count)
{
    bool has_id = self->with > WITH_FILTERS;
    char *usage = memory_format("taskgate tasks %s %s%s%s", self->text.name, self->text.operands,
                                *self->text.operands ? " " : "",
                                self->with == WITH_NO_OPTION ? "" : "[--json]");
    char *synopsis =
        memory_format("%c%s.", toupper((unsigned char)*self->text.help), self->text.help + 1);
    const struct command command = {
        .usage = usage,
        .synopsis = synopsis,
        .options = options,
        .option_count = option_count,
        .insecure = &admin_client_is_insecure,
        .operands_min = has_id,
        .operands_max = has_id,
        .operand_name = "ID",
    };
    enum options_outcome outcome = options_read(&command, argc, argv, &arguments->id);
    free(synopsis);
    free(usage);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    if (has_id && !*arguments->id)
        return options_complain("the task's ID is empty");
    struct admin_client *client = admin_client_create();
    int code = client ? run_with_id(client, self, arguments) : CLI_USAGE;
    admin_client_destroy(client);
    return code;
}

static int tasks_run_subcommand(const struct subcommand *self, int argc, char **argv)
{
    struct arguments arguments = {0};
    const struct option json = {"json", NULL, "print JSON", NULL, &arguments.json};
    const struct option filters[] = {
        {"state", "STATE", "only tasks in this state (or several: pending,approved)",
         &arguments.state, NULL},
        {"source", "ID", "only tasks of this server", &arguments.source, NULL},
        {"tool", "NAME", "only tasks of this tool", &arguments.tool, NULL},
        {"limit", "N", "at most N tasks, 1 to 100 (20)", &arguments.limit, NULL},
        {"cursor", "CURSOR", "continue the last list", &arguments.cursor, NULL},
        json,
    };
    const struct option reason = {"reason", "TEXT", "stored with the decision", &arguments.reason,
                                  NULL};
    const struct option digest = {"digest", "HEX", "only if the request has this digest",
                                  &arguments.confirmation.digest, NULL};
    const struct option yes = {"yes", NULL, "do not ask on a terminal", NULL,
                               &arguments.confirmation.yes};
    const struct option decision[] = {reason, json};
    const struct option rejection[] = {reason, digest, yes, json};
    const struct option approval[] = {
        reason,
        digest,
        {"typed", "TEXT", "the value that an approval of high risk needs",
         &arguments.confirmation.typed, NULL},
        yes,
        {"emergency", NULL, "decide alone; needs --reason", NULL, &arguments.emergency},
        {"grant-for", "DURATION", "let the same call run again, so long, such as 1h",
         &arguments.grant_for, NULL},
        {"grant-calls", "N", "and so often", &arguments.grant_calls, NULL},
        {"arguments", "FILE", "run the call with the JSON object in this file", &arguments.file,
         NULL},
        json,
    };
    const struct option wait[] = {
        {"wait", "DURATION", "wait at most so long, such as 30s", &arguments.wait, NULL}, json};
    const struct {
        const struct option *options;
        size_t count;
    } sets[] = {
        [WITH_NO_OPTION] = {NULL, 0},
        [WITH_NOTHING] = {&json, 1},
        [WITH_ID] = {&json, 1},
        [WITH_FILTERS] = {filters, sizeof filters / sizeof *filters},
        [WITH_DECISION] = {decision, sizeof decision / sizeof *decision},
        [WITH_REJECTION] = {rejection, sizeof rejection / sizeof *rejection},
        [WITH_APPROVAL] = {approval, sizeof approval / sizeof *approval},
        [WITH_WAIT] = {wait, sizeof wait / sizeof *wait},
    };
    return read_and_run(self, argc, argv, &arguments, sets[self->with].options,
                        sets[self->with].count);
}

int cli_tasks(int argc, char **argv)
{
    static const struct subcommands set = {
        .command = "tasks",
        .head = "Usage: taskgate tasks SUBCOMMAND [OPTIONS]\n\n"
                "Lists, shows and decides calls that wait for a human, over the admin\n"
                "endpoint of a running gateway.\n\n",
        .foot = "\nAn ID may be cut to what begins no other. Each but next has --json. Variables:\n"
                "  THOUGHTGATE_ADMIN_URL      default http://127.0.0.1:7469\n"
                "  TASKGATE_TOKEN             the operator's token, else\n"
                "  THOUGHTGATE_ADMIN_TOKEN\n"
                "  TASKGATE_CA                for https: the authority to believe, a file\n"
                "  TASKGATE_CERT, TASKGATE_KEY  the certificate to show, files\n",
        .rows = subcommands,
        .row_bytes = sizeof *subcommands,
        .count = sizeof subcommands / sizeof *subcommands,
    };
    int code;
    const struct subcommand *chosen = subcommands_choose(&set, argc, argv, &code);
    return chosen ? tasks_run_subcommand(chosen, argc - 1, argv + 1) : code;
}
