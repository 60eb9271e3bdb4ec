/* taskgate definitions: list, show, accept, over the admin endpoint. */
#include <stdlib.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/visible.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/json/visible.h"

#include "admin_client.h"
#include "listing.h"
#include "options.h"
#include "subcommands.h"
#include "tasks_show.h"

/* The definitions that are asked for; NULL: any. */
struct wanted {
    const char *name, *source, *kind, *state, *cursor;
    bool json;
};

/* ---- as text ---- */

static void append_head(struct buffer *out, struct str definition)
{
    struct str flag;
    size_t position = 0;
    tasks_append_member(out, definition, "source");
    buffer_append_char(out, ' ');
    tasks_append_member(out, definition, "kind");
    buffer_append_char(out, ' ');
    tasks_append_member(out, definition, "name");
    buffer_append_text(out, ": ");
    tasks_append_member(out, definition, "state");
    while (json_next_element(json_member(definition, "flags"), &position, &flag)) {
        buffer_append_char(out, ' ');
        visible_append_json_for_people(out, flag);
    }
    buffer_append_char(out, '\n');
}

/* The lines of the difference stay lines; what they hold is shown as it is. */
static void definitions_append_definition(struct buffer *out, struct str definition)
{
    struct buffer text;
    struct str line, rest;
    append_head(out, definition);
    buffer_append_text(out, "  digest  ");
    tasks_append_member(out, definition, "digest");
    buffer_append_char(out, '\n');
    buffer_init(&text);
    json_decode_string(json_member(definition, "difference"), &text);
    for (rest = buffer_str(&text); rest.length > 0;) {
        str_cut(rest, '\n', &line, &rest);
        buffer_append_text(out, "  ");
        visible_append(out, line);
        buffer_append_char(out, '\n');
    }
    buffer_finish(&text);
}

static void definitions_append_list(struct buffer *out, struct str list)
{
    listing_append_page(out, list, "definitions", append_head);
}

/* ---- asking ---- */

static void definitions_add_parameter(struct admin_client *client, struct buffer *path,
                                      const char *key, const char *value)
{
    if (!value)
        return;
    char *encoded = admin_client_encode(client, value);
    buffer_append_format(path, "&%s=%s", key, encoded);
    free(encoded);
}

static int fetch(struct admin_client *client, const struct wanted *wanted, struct buffer *answer)
{
    struct buffer path;
    buffer_init(&path);
    buffer_append_text(&path, "/api/v1/definitions?limit=100");
    definitions_add_parameter(client, &path, "source", wanted->source);
    definitions_add_parameter(client, &path, "kind", wanted->kind);
    definitions_add_parameter(client, &path, "name", wanted->name);
    definitions_add_parameter(client, &path, "state", wanted->state);
    definitions_add_parameter(client, &path, "cursor", wanted->cursor);
    buffer_append_char(&path, '\0');
    const struct admin_request request = {.method = "GET", .path = path.bytes};
    int code = admin_client_send(client, &request, answer);
    buffer_finish(&path);
    return code;
}

/* The one definition of the name. */
static int definitions_find(struct admin_client *client, const struct wanted *wanted,
                            struct buffer *answer, struct str *definition)
{
    size_t position = 0;
    int code = fetch(client, wanted, answer);
    if (code != CLI_DONE)
        return code;
    struct str list = json_member(buffer_str(answer), "definitions");
    if (json_count(list) == 0)
        return options_complain("no server has defined this name");
    if (json_count(list) > 1)
        return options_complain("several definitions have this name; say --source and --kind");
    json_next_element(list, &position, definition);
    return CLI_DONE;
}

static int accept_one(struct admin_client *client, struct str definition, bool json)
{
    static const char *const members[] = {"source", "kind", "name", "digest"};
    struct buffer body;
    buffer_init(&body);
    buffer_append_char(&body, '{');
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_add_key(&body, members[i]);
        buffer_append(&body, json_member(definition, members[i]));
    }
    buffer_append_char(&body, '}');
    const struct admin_request request = {
        .method = "POST", .path = "/api/v1/definitions/accept", .body = buffer_str(&body)};
    int code = listing_ask(client, &request, json, definitions_append_definition);
    buffer_finish(&body);
    return code;
}

/* ---- the subcommands ---- */

static int with_one(const struct wanted *wanted, bool accepts)
{
    struct buffer answer;
    struct str definition = STR_EMPTY;
    struct admin_client *client = admin_client_create();
    if (!client)
        return CLI_USAGE;
    buffer_init(&answer);
    int code = definitions_find(client, wanted, &answer, &definition);
    if (code == CLI_DONE)
        code = accepts ? accept_one(client, definition, wanted->json)
                       : listing_print(definition, wanted->json, definitions_append_definition);
    buffer_finish(&answer);
    admin_client_destroy(client);
    return code;
}

static int run_one(int argc, char **argv, bool accepts)
{
    struct wanted wanted = {NULL};
    const struct option options[] = {
        {"source", "ID", "of this source alone", &wanted.source, NULL},
        {"kind", "KIND", "tool, prompt or skill", &wanted.kind, NULL},
        {"json", NULL, "print JSON", NULL, &wanted.json},
    };
    const struct command command = {
        .usage = accepts ? "taskgate definitions accept NAME [--source ID] [--kind KIND] [--json]"
                         : "taskgate definitions show NAME [--source ID] [--kind KIND] [--json]",
        .synopsis = accepts ? "Accepts the definition that the server gives now."
                            : "Shows a definition, and how it differs from the accepted one.",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .insecure = &admin_client_is_insecure,
        .operands_min = 1,
        .operands_max = 1,
        .operand_name = "NAME",
    };
    enum options_outcome outcome = options_read(&command, argc, argv, &wanted.name);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    return with_one(&wanted, accepts);
}

static int definitions_run_show(int argc, char **argv)
{
    return run_one(argc, argv, false);
}

static int definitions_run_accept(int argc, char **argv)
{
    return run_one(argc, argv, true);
}

static int definitions_run_list(int argc, char **argv)
{
    struct wanted wanted = {NULL};
    struct buffer answer;
    const struct option options[] = {
        {"source", "ID", "of this source alone", &wanted.source, NULL},
        {"kind", "KIND", "tool, prompt or skill", &wanted.kind, NULL},
        {"state", "STATE", "changed or flagged", &wanted.state, NULL},
        {"cursor", "CURSOR", "continue the last list", &wanted.cursor, NULL},
        {"json", NULL, "print JSON", NULL, &wanted.json},
    };
    const struct command command = {
        .usage = "taskgate definitions list [--source ID] [--kind KIND] [--state STATE]\n"
                 "                                 [--cursor CURSOR] [--json]",
        .synopsis = "Lists what servers define: accepted, changed, flagged.",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .insecure = &admin_client_is_insecure,
    };
    enum options_outcome outcome = options_read(&command, argc, argv, NULL);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    struct admin_client *client = admin_client_create();
    if (!client)
        return CLI_USAGE;
    buffer_init(&answer);
    int code = fetch(client, &wanted, &answer);
    if (code == CLI_DONE)
        code = listing_print(buffer_str(&answer), wanted.json, definitions_append_list);
    buffer_finish(&answer);
    admin_client_destroy(client);
    return code;
}

/* ---- choosing ---- */

static const struct subcommand_main subcommands[] = {
    {{"list", "[--state changed]", "list definitions"}, definitions_run_list},
    {{"show", "NAME", "show one, and what has changed"}, definitions_run_show},
    {{"accept", "NAME", "accept it as it is now"}, definitions_run_accept},
};

int cli_definitions(int argc, char **argv)
{
    static const struct subcommands set = {
        .command = "definitions",
        .head = "Usage: taskgate definitions SUBCOMMAND [OPTIONS]\n\n"
                "Lists, shows and accepts the tools, prompts and skills that servers define,\n"
                "over the admin endpoint of a running gateway.\n\n",
        .foot = "\nEach has --json. The variables are those of taskgate tasks.\n",
        .rows = subcommands,
        .row_bytes = sizeof *subcommands,
        .count = sizeof subcommands / sizeof *subcommands,
    };
    return subcommands_run(&set, argc, argv);
}
