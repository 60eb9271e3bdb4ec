/* taskgate grants: list, revoke, over the admin endpoint. */
#include <stdlib.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/json/visible.h"

#include "admin_client.h"
#include "listing.h"
#include "options.h"
#include "subcommands.h"
#include "tasks_show.h"

/* ---- as text ---- */

static void grants_append_word(struct buffer *out, const char *label, struct str grant,
                               const char *name)
{
    buffer_append_format(out, "  %-9s ", label);
    tasks_append_member(out, grant, name);
    buffer_append_char(out, '\n');
}

static void grants_append_grant(struct buffer *out, struct str grant)
{
    bool has_ended = json_type(json_member(grant, "endedAt")) == JSON_STRING;
    tasks_append_member(out, grant, "id");
    buffer_append_text(out, "\n");
    grants_append_word(out, "tool", grant, "tool");
    grants_append_word(out, "server", grant, "source");
    buffer_append_format(out, "  %-9s ", "caller");
    tasks_append_asker(out, grant);
    buffer_append_char(out, '\n');
    grants_append_word(out, "workflow", grant, "workflow");
    buffer_append_format(out, "  %-9s ", "arguments");
    visible_append_json_for_people(out, json_member(grant, "arguments"));
    buffer_append_text(out, "\n  may vary  ");
    visible_append_json_for_people(out, json_member(grant, "vary"));
    buffer_append_text(out, "\n  given by  ");
    visible_append_json_for_people(out, json_member(grant, "givers"));
    buffer_append_format(out, "\n  used      %.*s of %.*s\n", STR_ARGS(json_member(grant, "used")),
                         STR_ARGS(json_member(grant, "calls")));
    grants_append_word(out, "until", grant, "until");
    if (!has_ended)
        return;
    grants_append_word(out, "ended", grant, "endedAt");
    grants_append_word(out, "because", grant, "endCause");
}

static void grants_append_list(struct buffer *out, struct str list)
{
    listing_append_page(out, list, "grants", grants_append_grant);
}

/* ---- the subcommands ---- */

static int grants_ask(const struct admin_request *request, bool json, listing_append append)
{
    struct admin_client *client = admin_client_create();
    int code = client ? listing_ask(client, request, json, append) : CLI_USAGE;
    admin_client_destroy(client);
    return code;
}

static int grants_run_list(int argc, char **argv)
{
    bool json = false, all = false;
    const char *cursor = NULL;
    const struct option options[] = {
        {"all", NULL, "those that have ended, too", NULL, &all},
        {"cursor", "CURSOR", "continue the last list", &cursor, NULL},
        {"json", NULL, "print JSON", NULL, &json},
    };
    const struct command command = {
        .usage = "taskgate grants list [--all] [--cursor CURSOR] [--json]",
        .synopsis = "Lists grants: calls that run again without a question.",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .insecure = &admin_client_is_insecure,
    };
    enum options_outcome outcome = options_read(&command, argc, argv, NULL);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    for (const char *c = cursor; c && *c; c++) {
        if (!((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9')))
            return options_complain("--cursor wants what a list has ended with");
    }
    char *path = memory_format("/api/v1/grants?limit=100%s%s%s", all ? "" : "&state=active",
                               cursor ? "&cursor=" : "", cursor ? cursor : "");
    const struct admin_request request = {.method = "GET", .path = path};
    int code = grants_ask(&request, json, grants_append_list);
    free(path);
    return code;
}

static int revoke(const char *id, const char *reason, bool json)
{
    struct buffer body;
    struct admin_client *client = admin_client_create();
    if (!client)
        return CLI_USAGE;
    char *encoded = admin_client_encode(client, id);
    char *path = memory_format("/api/v1/grants/%s/revoke", encoded);
    admin_client_destroy(client);
    buffer_init(&body);
    buffer_append_char(&body, '{');
    if (reason)
        json_add_text(&body, "reason", reason);
    buffer_append_char(&body, '}');
    const struct admin_request request = {
        .method = "POST", .path = path, .body = buffer_str(&body)};
    int code = grants_ask(&request, json, grants_append_grant);
    buffer_finish(&body);
    free(path);
    free(encoded);
    return code;
}

static int grants_run_revoke(int argc, char **argv)
{
    bool json = false;
    const char *reason = NULL, *id = NULL;
    const struct option options[] = {
        {"reason", "TEXT", "stored with the grant", &reason, NULL},
        {"json", NULL, "print JSON", NULL, &json},
    };
    const struct command command = {
        .usage = "taskgate grants revoke ID [--reason TEXT] [--json]",
        .synopsis = "Ends a grant at once.",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .insecure = &admin_client_is_insecure,
        .operands_min = 1,
        .operands_max = 1,
        .operand_name = "ID",
    };
    enum options_outcome outcome = options_read(&command, argc, argv, &id);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    if (!*id)
        return options_complain("the grant's ID is empty");
    return revoke(id, reason, json);
}

/* ---- choosing ---- */

static const struct subcommand_main subcommands[] = {
    {{"list", "[--all]", "list grants in force"}, grants_run_list},
    {{"revoke", "ID [--reason TEXT]", "end one at once"}, grants_run_revoke},
};

int cli_grants(int argc, char **argv)
{
    static const struct subcommands set = {
        .command = "grants",
        .head =
            "Usage: taskgate grants SUBCOMMAND [OPTIONS]\n\n"
            "Lists and revokes grants, over the admin endpoint of a running gateway. An\n"
            "approval gives them: taskgate tasks approve ID --grant-for 1h --grant-calls 20\n\n",
        .foot = "\nEach has --json. The variables are those of taskgate tasks.\n",
        .rows = subcommands,
        .row_bytes = sizeof *subcommands,
        .count = sizeof subcommands / sizeof *subcommands,
    };
    return subcommands_run(&set, argc, argv);
}
