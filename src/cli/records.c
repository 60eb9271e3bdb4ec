/* The commands for what operators list, show and end over the admin endpoint: whoami, grants,
 * block, blocks and definitions. A record of the answer is printed by a table of its fields. */

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

/* The options of all commands, once read. */
struct arguments {
    const char *operand;
    const char *source, *kind, *state, *duration, *reason, *scope, *cursor;
    bool all, json;
};

struct record_command {
    struct subcommand_text text;
    unsigned self; /* its bit among the options' */
    const char *usage, *synopsis;
    const char *operand_name; /* NULL: it has none */
    const char *path;
    listing_append append; /* of the answer */
    int (*run)(struct admin_client *client, const struct record_command *self,
               const struct arguments *arguments);
};

enum {
    WHOAMI = 1U << 0,
    GRANTS = 1U << 1,
    REVOKE = 1U << 2,
    BLOCK = 1U << 3,
    BLOCKS = 1U << 4,
    LIFT = 1U << 5,
    DEFINITIONS = 1U << 6,
    DEFINITION = 1U << 7,
};

/* Returns an exit code: CLI_DONE when the arguments are good. */
static int records_check(const struct record_command *self, const struct arguments *arguments)
{
    /* It is of small letters and digits. */
    for (const char *c = self->self == GRANTS ? arguments->cursor : NULL; c && *c; c++) {
        if (!((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9')))
            return options_complain("--cursor wants what a list has ended with");
    }
    if (self->self == REVOKE && !*arguments->operand)
        return options_complain("the grant's ID is empty");
    if (self->self == BLOCK && (!arguments->duration || !arguments->reason))
        return options_complain("a block needs --for and --reason");
    return CLI_DONE;
}

static int records_run(const void *row, int argc, char **argv)
{
    const struct record_command *self = row;
    struct arguments arguments = {NULL};
    const struct option options[] = {
        {"source", "ID", "of this source alone", &arguments.source, .of = DEFINITIONS | DEFINITION},
        {"kind", "KIND", "tool, prompt or skill", &arguments.kind, .of = DEFINITIONS | DEFINITION},
        {"state", "STATE", "changed or flagged", &arguments.state, .of = DEFINITIONS},
        {"for", "DURATION", "from 1m to 30d", &arguments.duration, .of = BLOCK},
        {"reason", "TEXT", "the agent gets it", &arguments.reason, .of = BLOCK},
        {"reason", "TEXT", "stored with the grant", &arguments.reason, .of = REVOKE},
        {"scope", "SCOPE", "owner (the default), client or source", &arguments.scope, .of = BLOCK},
        {"all", NULL, "those that have ended, too", .flag = &arguments.all, .of = GRANTS | BLOCKS},
        {"cursor", "CURSOR", "continue the last list", &arguments.cursor,
         .of = GRANTS | BLOCKS | DEFINITIONS},
        {"json", NULL, "print JSON", .flag = &arguments.json},
    };
    const struct command command = {
        .usage = self->usage,
        .synopsis = self->synopsis,
        COMMAND_OPTIONS(options),
        .self = self->self,
        .insecure = &admin_client_is_insecure,
        .operands_min = self->operand_name != NULL,
        .operands_max = self->operand_name != NULL,
        .operand_name = self->operand_name,
    };
    enum options_outcome outcome = options_read(&command, argc, argv, &arguments.operand);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    if (records_check(self, &arguments) != CLI_DONE)
        return CLI_USAGE;
    OWNED_ADMIN_CLIENT(client);
    return client ? self->run(client, self, &arguments) : CLI_USAGE;
}

static void records_add_parameter(struct buffer *path, const char *key, const char *value)
{
    if (!value)
        return;
    OWNED char *encoded = admin_client_encode(NULL, value);
    buffer_append_format(path, "&%s=%s", key, encoded);
}

/* GET `path`. */
static int records_run_get(struct admin_client *client, const struct record_command *self,
                           const struct arguments *arguments)
{
    const struct admin_request request = {.method = "GET", .path = self->path};
    return listing_ask(client, &request, arguments->json, self->append);
}

/* A page of grants or blocks. */
static int records_run_list(struct admin_client *client, const struct record_command *self,
                            const struct arguments *arguments)
{
    OWNED_BUFFER(path);
    buffer_append_format(&path, "%s?limit=100", self->path);
    records_add_parameter(&path, "state", arguments->all ? NULL : "active");
    records_add_parameter(&path, "cursor", arguments->cursor);
    buffer_append_char(&path, '\0');
    const struct admin_request request = {.method = "GET", .path = path.bytes};
    return listing_ask(client, &request, arguments->json, self->append);
}

/* POST `path`/ID/NAME, for one that ends. */
static int records_run_end(struct admin_client *client, const struct record_command *self,
                           const struct arguments *arguments)
{
    OWNED char *encoded = admin_client_encode(NULL, arguments->operand);
    OWNED char *path = memory_format("%s/%s/%s", self->path, encoded, self->text.name);
    OWNED_BUFFER(body);
    buffer_append_char(&body, '{');
    if (arguments->reason)
        json_add_text(&body, "reason", arguments->reason);
    buffer_append_char(&body, '}');
    const struct admin_request request = {
        .method = "POST", .path = path, .body = buffer_str(&body)};
    return listing_ask(client, &request, arguments->json, self->append);
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
    static const struct record_command whoami = {
        .self = WHOAMI,
        .usage = "taskgate whoami [--json]",
        .synopsis = "Shows your name and rights at a running gateway.",
        .path = "/api/v1/whoami",
        .append = whoami_append,
        .run = records_run_get,
    };
    return records_run(&whoami, argc, argv);
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

int cli_grants(int argc, char **argv)
{
    static const struct record_command subcommands[] = {
        {{"list", "[--all]", "list grants in force"},
         GRANTS,
         "taskgate grants list [--all] [--cursor CURSOR] [--json]",
         "Lists grants: calls that run again without a question.",
         NULL,
         "/api/v1/grants",
         grants_append_list,
         records_run_list},
        {{"revoke", "ID [--reason TEXT]", "end one at once"},
         REVOKE,
         "taskgate grants revoke ID [--reason TEXT] [--json]",
         "Ends a grant at once.",
         "ID",
         "/api/v1/grants",
         grants_append_grant,
         records_run_end},
    };
    static const struct subcommands set = {
        .command = "grants",
        .head =
            "Usage: taskgate grants SUBCOMMAND [OPTIONS]\n\n"
            "Lists and revokes grants, over the admin endpoint of a running gateway. An\n"
            "approval gives them: taskgate tasks approve ID --grant-for 1h --grant-calls 20\n\n",
        .foot = "\nEach has --json. The variables are those of taskgate tasks.\n",
        SUBCOMMAND_ROWS(subcommands),
        .run = records_run,
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

static int block_make(struct admin_client *client, const struct record_command *self,
                      const struct arguments *arguments)
{
    OWNED_BUFFER(body);
    OWNED char *task = NULL;
    int code = tasks_find(client, arguments->operand, &task);
    if (code != CLI_DONE)
        return code;
    buffer_append_char(&body, '{');
    json_add_text(&body, "task", task);
    json_add_text(&body, "for", arguments->duration);
    json_add_text(&body, "reason", arguments->reason);
    if (arguments->scope)
        json_add_text(&body, "scope", arguments->scope);
    buffer_append_char(&body, '}');
    const struct admin_request request = {
        .method = "POST", .path = self->path, .body = buffer_str(&body)};
    return listing_ask(client, &request, arguments->json, self->append);
}

int cli_block(int argc, char **argv)
{
    static const struct record_command block = {
        .self = BLOCK,
        .usage = "taskgate block TASK --for DURATION --reason TEXT [--scope SCOPE] [--json]",
        .synopsis = "Stops the caller of a task for a while: its calls are refused, and what waits "
                    "is rejected.",
        .operand_name = "TASK",
        .path = "/api/v1/blocks",
        .append = blocks_append_block,
        .run = block_make,
    };
    return records_run(&block, argc, argv);
}

int cli_blocks(int argc, char **argv)
{
    static const struct record_command subcommands[] = {
        {{"list", "[--all]", "list blocks in force"},
         BLOCKS,
         "taskgate blocks list [--all] [--cursor CURSOR] [--json]",
         "Lists blocks: callers whose calls are refused.",
         NULL,
         "/api/v1/blocks",
         blocks_append_list,
         records_run_list},
        {{"lift", "ID", "end one at once"},
         LIFT,
         "taskgate blocks lift ID [--json]",
         "Ends a block at once.",
         "ID",
         "/api/v1/blocks",
         blocks_append_block,
         records_run_end},
    };
    static const struct subcommands set = {
        .command = "blocks",
        .head = "Usage: taskgate blocks SUBCOMMAND [OPTIONS]\n\n"
                "Lists and lifts blocks, over the admin endpoint of a running gateway. One is\n"
                "made by: taskgate block TASK --for 1h --reason TEXT\n\n",
        .foot = "\nEach has --json. The variables are those of taskgate tasks.\n",
        SUBCOMMAND_ROWS(subcommands),
        .run = records_run,
    };
    return subcommands_run(&set, argc, argv);
}

/* ---- definitions ---- */

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

/* Those of the options' source, kind and state; and of the operand, their name. */
static int definitions_fetch(struct admin_client *client, const struct arguments *wanted,
                             struct buffer *answer)
{
    OWNED_BUFFER(path);
    buffer_append_text(&path, "/api/v1/definitions?limit=100");
    records_add_parameter(&path, "source", wanted->source);
    records_add_parameter(&path, "kind", wanted->kind);
    records_add_parameter(&path, "name", wanted->operand);
    records_add_parameter(&path, "state", wanted->state);
    records_add_parameter(&path, "cursor", wanted->cursor);
    buffer_append_char(&path, '\0');
    const struct admin_request request = {.method = "GET", .path = path.bytes};
    return admin_client_send(client, &request, answer);
}

/* The one definition of the name. */
static int definitions_find(struct admin_client *client, const struct arguments *wanted,
                            struct buffer *answer, struct str *definition)
{
    size_t position = 0;
    int code = definitions_fetch(client, wanted, answer);
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

static int definitions_run_one(struct admin_client *client, const struct record_command *self,
                               const struct arguments *arguments)
{
    OWNED_BUFFER(answer);
    struct str definition = STR_EMPTY;
    int code = definitions_find(client, arguments, &answer, &definition);
    return code == CLI_DONE ? listing_print(definition, arguments->json, self->append) : code;
}

static int definitions_run_accept(struct admin_client *client, const struct record_command *self,
                                  const struct arguments *arguments)
{
    static const char *const members[] = {"source", "kind", "name", "digest"};
    OWNED_BUFFER(answer);
    OWNED_BUFFER(body);
    struct str definition = STR_EMPTY;
    int code = definitions_find(client, arguments, &answer, &definition);
    if (code != CLI_DONE)
        return code;
    buffer_append_char(&body, '{');
    for (size_t i = 0; i < COUNT_OF(members); i++)
        json_add_value(&body, members[i], json_member(definition, members[i]));
    buffer_append_char(&body, '}');
    const struct admin_request request = {
        .method = "POST", .path = self->path, .body = buffer_str(&body)};
    return listing_ask(client, &request, arguments->json, self->append);
}

static int definitions_run_list(struct admin_client *client, const struct record_command *self,
                                const struct arguments *arguments)
{
    OWNED_BUFFER(answer);
    int code = definitions_fetch(client, arguments, &answer);
    return code == CLI_DONE ? listing_print(buffer_str(&answer), arguments->json, self->append)
                            : code;
}

int cli_definitions(int argc, char **argv)
{
    static const struct record_command subcommands[] = {
        {{"list", "[--state changed]", "list definitions"},
         DEFINITIONS,
         "taskgate definitions list [--source ID] [--kind KIND] [--state STATE]\n"
         "                                 [--cursor CURSOR] [--json]",
         "Lists what servers define: accepted, changed, flagged.",
         NULL,
         NULL,
         definitions_append_list,
         definitions_run_list},
        {{"show", "NAME", "show one, and what has changed"},
         DEFINITION,
         "taskgate definitions show NAME [--source ID] [--kind KIND] [--json]",
         "Shows a definition, and how it differs from the accepted one.",
         "NAME",
         NULL,
         definitions_append_definition,
         definitions_run_one},
        {{"accept", "NAME", "accept it as it is now"},
         DEFINITION,
         "taskgate definitions accept NAME [--source ID] [--kind KIND] [--json]",
         "Accepts the definition that the server gives now.",
         "NAME",
         "/api/v1/definitions/accept",
         definitions_append_definition,
         definitions_run_accept},
    };
    static const struct subcommands set = {
        .command = "definitions",
        .head = "Usage: taskgate definitions SUBCOMMAND [OPTIONS]\n\n"
                "Lists, shows and accepts the tools, prompts and skills that servers define,\n"
                "over the admin endpoint of a running gateway.\n\n",
        .foot = "\nEach has --json. The variables are those of taskgate tasks.\n",
        SUBCOMMAND_ROWS(subcommands),
        .run = records_run,
    };
    return subcommands_run(&set, argc, argv);
}
