/* taskgate block, and blocks: list, lift, over the admin endpoint. */
#include <stdlib.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"

#include "admin_client.h"
#include "listing.h"
#include "options.h"
#include "subcommands.h"
#include "tasks_pages.h"
#include "tasks_show.h"

/* ---- as text ---- */

static void blocks_append_word(struct buffer *out, const char *label, struct str block,
                               const char *name)
{
    buffer_append_format(out, "  %-9s ", label);
    tasks_append_member(out, block, name);
    buffer_append_char(out, '\n');
}

static void blocks_append_block(struct buffer *out, struct str block)
{
    tasks_append_member(out, block, "id");
    buffer_append_char(out, '\n');
    blocks_append_word(out, "scope", block, "scope");
    blocks_append_word(out, "server", block, "source");
    blocks_append_word(out, "caller", block, "principal");
    blocks_append_word(out, "task", block, "task");
    blocks_append_word(out, "reason", block, "reason");
    blocks_append_word(out, "by", block, "by");
    blocks_append_word(out, "until", block, "until");
    if (json_type(json_member(block, "endedAt")) != JSON_STRING)
        return;
    bool is_lifted = json_type(json_member(block, "endedBy")) == JSON_STRING;
    buffer_append_format(out, "  %-9s ", is_lifted ? "lifted" : "expired");
    tasks_append_member(out, block, "endedAt");
    if (is_lifted) {
        buffer_append_text(out, " by ");
        tasks_append_member(out, block, "endedBy");
    }
    buffer_append_char(out, '\n');
}

static void blocks_append_list(struct buffer *out, struct str list)
{
    listing_append_page(out, list, "blocks", blocks_append_block);
}

/* ---- taskgate block ---- */

struct wish {
    const char *task, *scope, *duration, *reason;
    bool json;
};

static int make(struct admin_client *client, const struct wish *wish)
{
    struct buffer body;
    char *task = NULL;
    int code = tasks_find(client, wish->task, &task);
    if (code != CLI_DONE)
        return code;
    buffer_init(&body);
    buffer_append_char(&body, '{');
    json_add_text(&body, "task", task);
    json_add_text(&body, "for", wish->duration);
    json_add_text(&body, "reason", wish->reason);
    if (wish->scope)
        json_add_text(&body, "scope", wish->scope);
    buffer_append_char(&body, '}');
    const struct admin_request request = {
        .method = "POST", .path = "/api/v1/blocks", .body = buffer_str(&body)};
    code = listing_ask(client, &request, wish->json, blocks_append_block);
    buffer_finish(&body);
    free(task);
    return code;
}

int cli_block(int argc, char **argv)
{
    struct wish wish = {NULL};
    const struct option options[] = {
        {"for", "DURATION", "from 1m to 30d", &wish.duration, NULL},
        {"reason", "TEXT", "the agent gets it", &wish.reason, NULL},
        {"scope", "SCOPE", "owner (the default), client or source", &wish.scope, NULL},
        {"json", NULL, "print JSON", NULL, &wish.json},
    };
    const struct command command = {
        .usage = "taskgate block TASK --for DURATION --reason TEXT [--scope SCOPE] [--json]",
        .synopsis = "Stops the caller of a task for a while: its calls are refused, and what waits "
                    "is rejected.",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .insecure = &admin_client_is_insecure,
        .operands_min = 1,
        .operands_max = 1,
        .operand_name = "TASK",
    };
    enum options_outcome outcome = options_read(&command, argc, argv, &wish.task);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    if (!wish.duration || !wish.reason)
        return options_complain("a block needs --for and --reason");
    struct admin_client *client = admin_client_create();
    if (!client)
        return CLI_USAGE;
    int code = make(client, &wish);
    admin_client_destroy(client);
    return code;
}

/* ---- taskgate blocks ---- */

static int blocks_run_list(int argc, char **argv)
{
    bool json = false, all = false;
    const char *cursor = NULL;
    const struct option options[] = {
        {"all", NULL, "those that have ended, too", NULL, &all},
        {"cursor", "CURSOR", "continue the last list", &cursor, NULL},
        {"json", NULL, "print JSON", NULL, &json},
    };
    const struct command command = {
        .usage = "taskgate blocks list [--all] [--cursor CURSOR] [--json]",
        .synopsis = "Lists blocks: callers whose calls are refused.",
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
    char *place = cursor ? admin_client_encode(client, cursor) : NULL;
    char *path = memory_format("/api/v1/blocks?limit=100%s%s%s", all ? "" : "&state=active",
                               place ? "&cursor=" : "", place ? place : "");
    const struct admin_request request = {.method = "GET", .path = path};
    int code = listing_ask(client, &request, json, blocks_append_list);
    free(path);
    free(place);
    admin_client_destroy(client);
    return code;
}

static int blocks_run_lift(int argc, char **argv)
{
    bool json = false;
    const char *id = NULL;
    const struct option options[] = {
        {"json", NULL, "print JSON", NULL, &json},
    };
    const struct command command = {
        .usage = "taskgate blocks lift ID [--json]",
        .synopsis = "Ends a block at once.",
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
    struct admin_client *client = admin_client_create();
    if (!client)
        return CLI_USAGE;
    char *encoded = admin_client_encode(client, id);
    char *path = memory_format("/api/v1/blocks/%s/lift", encoded);
    const struct admin_request request = {.method = "POST", .path = path, .body = STR("{}")};
    int code = listing_ask(client, &request, json, blocks_append_block);
    free(path);
    free(encoded);
    admin_client_destroy(client);
    return code;
}

static const struct subcommand_main subcommands[] = {
    {{"list", "[--all]", "list blocks in force"}, blocks_run_list},
    {{"lift", "ID", "end one at once"}, blocks_run_lift},
};

int cli_blocks(int argc, char **argv)
{
    static const struct subcommands set = {
        .command = "blocks",
        .head = "Usage: taskgate blocks SUBCOMMAND [OPTIONS]\n\n"
                "Lists and lifts blocks, over the admin endpoint of a running gateway. One is\n"
                "made by: taskgate block TASK --for 1h --reason TEXT\n\n",
        .foot = "\nEach has --json. The variables are those of taskgate tasks.\n",
        .rows = subcommands,
        .row_bytes = sizeof *subcommands,
        .count = sizeof subcommands / sizeof *subcommands,
    };
    return subcommands_run(&set, argc, argv);
}
