/* The commands for what operators list, show and end over the admin endpoint: whoami, grants,
 * block, blocks and definitions. A record of the answer is printed by a table of its fields. */
#include <stdlib.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/visible.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/json/visible.h"

#include "admin_client.h"
#include "listing.h"
#include "options.h"
#include "subcommands.h"
#include "tasks_pages.h"
#include "tasks_show.h"

#define COUNT_OF(table) (sizeof(table) / sizeof *(table))

/* ---- fields ---- */

struct field {
    const char *label, *member;
    /* NULL: a text. */
    void (*append)(struct buffer *out, struct str record, const char *member);
};

/* A line for each field; a label has `width` columns. */
static void fields_append(struct buffer *out, struct str record, const char *indent, int width,
                          const struct field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buffer_append_format(out, "%s%-*s ", indent, width, fields[i].label);
        (fields[i].append ? fields[i].append : tasks_append_member)(out, record, fields[i].member);
        buffer_append_char(out, '\n');
    }
}

static void field_append_json(struct buffer *out, struct str record, const char *member)
{
    visible_append_json_for_people(out, json_member(record, member));
}

static void field_append_asker(struct buffer *out, struct str record, const char *member)
{
    (void)member;
    tasks_append_asker(out, record);
}

static bool is_text(struct str record, const char *member)
{
    return json_type(json_member(record, member)) == JSON_STRING;
}

/* ---- the same steps of all of them ---- */

struct list_command {
    const char *usage, *synopsis, *path;
    listing_append append;
    bool has_plain_cursors; /* of small letters and digits, which is checked here */
};

static int records_run_list(const struct list_command *list, int argc, char **argv)
{
    bool json = false, all = false;
    const char *cursor = NULL;
    const struct option options[] = {
        {"all", NULL, "those that have ended, too", NULL, &all},
        {"cursor", "CURSOR", "continue the last list", &cursor, NULL},
        {"json", NULL, "print JSON", NULL, &json},
    };
    const struct command command = {
        .usage = list->usage,
        .synopsis = list->synopsis,
        COMMAND_OPTIONS(options),
        .insecure = &admin_client_is_insecure,
    };
    enum options_outcome outcome = options_read(&command, argc, argv, NULL);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    for (const char *c = list->has_plain_cursors ? cursor : NULL; c && *c; c++) {
        if (!((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9')))
            return options_complain("--cursor wants what a list has ended with");
    }
    OWNED_ADMIN_CLIENT(client);
    if (!client)
        return CLI_USAGE;
    OWNED char *place = cursor ? admin_client_encode(client, cursor) : NULL;
    OWNED char *path = memory_format("%s?limit=100%s%s%s", list->path, all ? "" : "&state=active",
                                     place ? "&cursor=" : "", place ? place : "");
    const struct admin_request request = {.method = "GET", .path = path};
    return listing_ask(client, &request, json, list->append);
}

/* POST `collection`/`id`/`verb`. */
static int records_end(const char *collection, const char *id, const char *verb, struct str body,
                       bool json, listing_append append)
{
    OWNED_ADMIN_CLIENT(client);
    if (!client)
        return CLI_USAGE;
    OWNED char *encoded = admin_client_encode(client, id);
    OWNED char *path = memory_format("%s/%s/%s", collection, encoded, verb);
    const struct admin_request request = {.method = "POST", .path = path, .body = body};
    return listing_ask(client, &request, json, append);
}

/* ---- whoami ---- */

/* "dba, it" */
static void whoami_append_list(struct buffer *out, struct str who, const char *member)
{
    struct str item;
    size_t position = 0;
    for (const char *joint = ""; json_next_element(json_member(who, member), &position, &item);
         joint = ", ") {
        OWNED_BUFFER(text);
        json_decode_string(item, &text);
        buffer_append_text(out, joint);
        visible_append(out, buffer_str(&text));
    }
}

static void whoami_append(struct buffer *out, struct str who)
{
    static const struct field fields[] = {
        {"person:", "person", NULL},
        {"name:", "name", NULL},
        {"groups:", "groups", whoami_append_list},
        {"roles:", "roles", whoami_append_list},
        {"via:", "via", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        if (!fields[i].append || json_count(json_member(who, fields[i].member)) > 0)
            fields_append(out, who, "", 8, &fields[i], 1);
    }
}

int cli_whoami(int argc, char **argv)
{
    bool json = false;
    const struct option options[] = {{"json", NULL, "print JSON", NULL, &json}};
    const struct command command = {
        .usage = "taskgate whoami [--json]",
        .synopsis = "Shows your name and rights at a running gateway.",
        COMMAND_OPTIONS(options),
        .insecure = &admin_client_is_insecure,
    };
    enum options_outcome outcome = options_read(&command, argc, argv, NULL);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    const struct admin_request request = {.method = "GET", .path = "/api/v1/whoami"};
    OWNED_ADMIN_CLIENT(client);
    return client ? listing_ask(client, &request, json, whoami_append) : CLI_USAGE;
}

/* ---- grants ---- */

static void grant_append_used(struct buffer *out, struct str grant, const char *member)
{
    buffer_append_format(out, "%.*s of %.*s", STR_ARGS(json_member(grant, member)),
                         STR_ARGS(json_member(grant, "calls")));
}

static void grants_append_grant(struct buffer *out, struct str grant)
{
    static const struct field fields[] = {
        {"tool", "tool", NULL},
        {"server", "source", NULL},
        {"caller", "principal", field_append_asker},
        {"workflow", "workflow", NULL},
        {"arguments", "arguments", field_append_json},
        {"may vary", "vary", field_append_json},
        {"given by", "givers", field_append_json},
        {"used", "used", grant_append_used},
        {"until", "until", NULL},
        {"ended", "endedAt", NULL},
        {"because", "endCause", NULL},
    };
    tasks_append_member(out, grant, "id");
    buffer_append_char(out, '\n');
    fields_append(out, grant, "  ", 9, fields,
                  COUNT_OF(fields) - (is_text(grant, "endedAt") ? 0 : 2));
}

static void grants_append_list(struct buffer *out, struct str list)
{
    listing_append_page(out, list, "grants", grants_append_grant);
}

static int grants_run_list(int argc, char **argv)
{
    static const struct list_command list = {
        "taskgate grants list [--all] [--cursor CURSOR] [--json]",
        "Lists grants: calls that run again without a question.", "/api/v1/grants",
        grants_append_list, true};
    return records_run_list(&list, argc, argv);
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
        COMMAND_OPTIONS(options),
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
    OWNED_BUFFER(body);
    buffer_append_char(&body, '{');
    if (reason)
        json_add_text(&body, "reason", reason);
    buffer_append_char(&body, '}');
    return records_end("/api/v1/grants", id, "revoke", buffer_str(&body), json,
                       grants_append_grant);
}

int cli_grants(int argc, char **argv)
{
    static const struct subcommand_main subcommands[] = {
        {{"list", "[--all]", "list grants in force"}, grants_run_list},
        {{"revoke", "ID [--reason TEXT]", "end one at once"}, grants_run_revoke},
    };
    static const struct subcommands set = {
        .command = "grants",
        .head =
            "Usage: taskgate grants SUBCOMMAND [OPTIONS]\n\n"
            "Lists and revokes grants, over the admin endpoint of a running gateway. An\n"
            "approval gives them: taskgate tasks approve ID --grant-for 1h --grant-calls 20\n\n",
        .foot = "\nEach has --json. The variables are those of taskgate tasks.\n",
        SUBCOMMAND_ROWS(subcommands),
    };
    return subcommands_run(&set, argc, argv);
}

/* ---- block, blocks ---- */

static void block_append_end(struct buffer *out, struct str block, const char *member)
{
    tasks_append_member(out, block, member);
    if (!is_text(block, "endedBy"))
        return;
    buffer_append_text(out, " by ");
    tasks_append_member(out, block, "endedBy");
}

static void blocks_append_block(struct buffer *out, struct str block)
{
    const struct field fields[] = {
        {"scope", "scope", NULL},
        {"server", "source", NULL},
        {"caller", "principal", NULL},
        {"task", "task", NULL},
        {"reason", "reason", NULL},
        {"by", "by", NULL},
        {"until", "until", NULL},
        {is_text(block, "endedBy") ? "lifted" : "expired", "endedAt", block_append_end},
    };
    tasks_append_member(out, block, "id");
    buffer_append_char(out, '\n');
    fields_append(out, block, "  ", 9, fields,
                  COUNT_OF(fields) - (is_text(block, "endedAt") ? 0 : 1));
}

static void blocks_append_list(struct buffer *out, struct str list)
{
    listing_append_page(out, list, "blocks", blocks_append_block);
}

struct wish {
    const char *task, *scope, *duration, *reason;
    bool json;
};

static int block_make(struct admin_client *client, const struct wish *wish)
{
    OWNED_BUFFER(body);
    char *task = NULL;
    int code = tasks_find(client, wish->task, &task);
    if (code != CLI_DONE)
        return code;
    buffer_append_char(&body, '{');
    json_add_text(&body, "task", task);
    json_add_text(&body, "for", wish->duration);
    json_add_text(&body, "reason", wish->reason);
    if (wish->scope)
        json_add_text(&body, "scope", wish->scope);
    buffer_append_char(&body, '}');
    free(task);
    const struct admin_request request = {
        .method = "POST", .path = "/api/v1/blocks", .body = buffer_str(&body)};
    return listing_ask(client, &request, wish->json, blocks_append_block);
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
        COMMAND_OPTIONS(options),
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
    OWNED_ADMIN_CLIENT(client);
    return client ? block_make(client, &wish) : CLI_USAGE;
}

static int blocks_run_list(int argc, char **argv)
{
    static const struct list_command list = {
        "taskgate blocks list [--all] [--cursor CURSOR] [--json]",
        "Lists blocks: callers whose calls are refused.", "/api/v1/blocks", blocks_append_list,
        false};
    return records_run_list(&list, argc, argv);
}

static int blocks_run_lift(int argc, char **argv)
{
    bool json = false;
    const char *id = NULL;
    const struct option options[] = {{"json", NULL, "print JSON", NULL, &json}};
    const struct command command = {
        .usage = "taskgate blocks lift ID [--json]",
        .synopsis = "Ends a block at once.",
        COMMAND_OPTIONS(options),
        .insecure = &admin_client_is_insecure,
        .operands_min = 1,
        .operands_max = 1,
        .operand_name = "ID",
    };
    enum options_outcome outcome = options_read(&command, argc, argv, &id);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    return records_end("/api/v1/blocks", id, "lift", STR("{}"), json, blocks_append_block);
}

int cli_blocks(int argc, char **argv)
{
    static const struct subcommand_main subcommands[] = {
        {{"list", "[--all]", "list blocks in force"}, blocks_run_list},
        {{"lift", "ID", "end one at once"}, blocks_run_lift},
    };
    static const struct subcommands set = {
        .command = "blocks",
        .head = "Usage: taskgate blocks SUBCOMMAND [OPTIONS]\n\n"
                "Lists and lifts blocks, over the admin endpoint of a running gateway. One is\n"
                "made by: taskgate block TASK --for 1h --reason TEXT\n\n",
        .foot = "\nEach has --json. The variables are those of taskgate tasks.\n",
        SUBCOMMAND_ROWS(subcommands),
    };
    return subcommands_run(&set, argc, argv);
}

/* ---- definitions ---- */

/* The definitions that are asked for; NULL: any. */
struct wanted {
    const char *name, *source, *kind, *state, *cursor;
    bool json;
};

static void definition_append_head(struct buffer *out, struct str definition)
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
    OWNED_BUFFER(text);
    struct str line, rest;
    definition_append_head(out, definition);
    buffer_append_text(out, "  digest  ");
    tasks_append_member(out, definition, "digest");
    buffer_append_char(out, '\n');
    json_decode_string(json_member(definition, "difference"), &text);
    for (rest = buffer_str(&text); rest.length > 0;) {
        str_cut(rest, '\n', &line, &rest);
        buffer_append_text(out, "  ");
        visible_append(out, line);
        buffer_append_char(out, '\n');
    }
}

static void definitions_append_list(struct buffer *out, struct str list)
{
    listing_append_page(out, list, "definitions", definition_append_head);
}

static void definitions_add_parameter(struct admin_client *client, struct buffer *path,
                                      const char *key, const char *value)
{
    if (!value)
        return;
    OWNED char *encoded = admin_client_encode(client, value);
    buffer_append_format(path, "&%s=%s", key, encoded);
}

static int fetch(struct admin_client *client, const struct wanted *wanted, struct buffer *answer)
{
    OWNED_BUFFER(path);
    buffer_append_text(&path, "/api/v1/definitions?limit=100");
    definitions_add_parameter(client, &path, "source", wanted->source);
    definitions_add_parameter(client, &path, "kind", wanted->kind);
    definitions_add_parameter(client, &path, "name", wanted->name);
    definitions_add_parameter(client, &path, "state", wanted->state);
    definitions_add_parameter(client, &path, "cursor", wanted->cursor);
    buffer_append_char(&path, '\0');
    const struct admin_request request = {.method = "GET", .path = path.bytes};
    return admin_client_send(client, &request, answer);
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
    OWNED_BUFFER(body);
    buffer_append_char(&body, '{');
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        json_add_value(&body, members[i], json_member(definition, members[i]));
    }
    buffer_append_char(&body, '}');
    const struct admin_request request = {
        .method = "POST", .path = "/api/v1/definitions/accept", .body = buffer_str(&body)};
    return listing_ask(client, &request, json, definitions_append_definition);
}

static int with_one(const struct wanted *wanted, bool accepts)
{
    OWNED_BUFFER(answer);
    struct str definition = STR_EMPTY;
    OWNED_ADMIN_CLIENT(client);
    if (!client)
        return CLI_USAGE;
    int code = definitions_find(client, wanted, &answer, &definition);
    if (code == CLI_DONE)
        code = accepts ? accept_one(client, definition, wanted->json)
                       : listing_print(definition, wanted->json, definitions_append_definition);
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
        COMMAND_OPTIONS(options),
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
    OWNED_BUFFER(answer);
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
        COMMAND_OPTIONS(options),
        .insecure = &admin_client_is_insecure,
    };
    enum options_outcome outcome = options_read(&command, argc, argv, NULL);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    OWNED_ADMIN_CLIENT(client);
    if (!client)
        return CLI_USAGE;
    int code = fetch(client, &wanted, &answer);
    if (code == CLI_DONE)
        code = listing_print(buffer_str(&answer), wanted.json, definitions_append_list);
    return code;
}

int cli_definitions(int argc, char **argv)
{
    static const struct subcommand_main subcommands[] = {
        {{"list", "[--state changed]", "list definitions"}, definitions_run_list},
        {{"show", "NAME", "show one, and what has changed"}, definitions_run_show},
        {{"accept", "NAME", "accept it as it is now"}, definitions_run_accept},
    };
    static const struct subcommands set = {
        .command = "definitions",
        .head = "Usage: taskgate definitions SUBCOMMAND [OPTIONS]\n\n"
                "Lists, shows and accepts the tools, prompts and skills that servers define,\n"
                "over the admin endpoint of a running gateway.\n\n",
        .foot = "\nEach has --json. The variables are those of taskgate tasks.\n",
        SUBCOMMAND_ROWS(subcommands),
    };
    return subcommands_run(&set, argc, argv);
}
