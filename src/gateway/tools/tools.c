/* The gateway's own tools: their offer to a client, and their names. */
#include "tools.h"

#include <stdlib.h>
#include <string.h>

#include "call/client_profile.h"
#include "inbox/inbox.h"
#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/log.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"

/* Puts the names of the gateway's own tools into texts. */

static const char choice_begin[] = "[[", choice_next[] = "||", choice_end[] = "]]";

bool tool_names_write(const struct tool_names *names, enum config_pseudo_tool tool,
                      struct buffer *out)
{
    if (!tool_names_offer(names, tool))
        return false;
    if (names->prefixed & 1U << tool)
        buffer_append_text(out, names->prefix);
    buffer_append_text(out, config_pseudo_tool_name(tool));
    return true;
}

static struct str rest_after(struct str text, size_t length)
{
    return str_slice(text.bytes + length, text.length - length);
}

/* The place of `mark`, or the end of `text`. */
static size_t find(struct str text, const char *mark)
{
    const char *at = memmem(text.bytes, text.length, mark, strlen(mark));
    return at ? (size_t)(at - text.bytes) : text.length;
}

/* The length of the "{name}" that `text` begins with; 0 when it begins with no tool's. */
static size_t read_name(struct str text, enum config_pseudo_tool *tool)
{
    for (unsigned i = 0; i < PSEUDO_TOOL_COUNT; i++) {
        struct str name = str_from(config_pseudo_tool_name((enum config_pseudo_tool)i));
        *tool = (enum config_pseudo_tool)i;
        if (text.length >= name.length + 2 && text.bytes[name.length + 1] == '}' &&
            str_equal(name, str_slice(text.bytes + 1, name.length)))
            return name.length + 2;
    }
    return 0;
}

/* A text without choices. False when it names a tool that is not offered. */
static bool fill_piece(const struct tool_names *names, struct str text, struct buffer *out)
{
    bool is_whole = true;
    while (text.length > 0) {
        enum config_pseudo_tool tool;
        size_t plain = find(text, "{");
        buffer_append(out, str_slice(text.bytes, plain));
        text = rest_after(text, plain);
        size_t length = text.length > 0 ? read_name(text, &tool) : 0;
        if (length > 0) {
            is_whole = tool_names_write(names, tool, out) && is_whole;
        } else if (text.length > 0) {
            buffer_append_char(out, '{');
            length = 1;
        }
        text = rest_after(text, length);
    }
    return is_whole;
}

static void fill_choice(const struct tool_names *names, struct str choice, struct buffer *out)
{
    size_t before = out->length;
    while (choice.length > 0) {
        size_t length = find(choice, choice_next);
        if (fill_piece(names, str_slice(choice.bytes, length), out))
            return;
        out->length = before;
        bool is_last = length == choice.length;
        choice = rest_after(choice, is_last ? length : length + strlen(choice_next));
    }
}

void tool_names_fill(const struct tool_names *names, struct str text, struct buffer *out)
{
    while (text.length > 0) {
        size_t begin = find(text, choice_begin);
        fill_piece(names, str_slice(text.bytes, begin), out);
        if (begin == text.length)
            return;
        text = rest_after(text, begin + strlen(choice_begin));
        size_t end = find(text, choice_end);
        fill_choice(names, str_slice(text.bytes, end), out);
        text = rest_after(text, end == text.length ? end : end + strlen(choice_end));
    }
}

/* ---- parameters ---- */

#define MOST_NUMBER_BYTES 64

static const char *const type_names[] = {
    [PSEUDO_TOOL_TEXT] = "string",
    [PSEUDO_TOOL_NUMBER] = "number",
    [PSEUDO_TOOL_BOOLEAN] = "boolean",
    [PSEUDO_TOOL_OBJECT] = "object",
};

static void write_parameter(struct buffer *out, const struct pseudo_parameter *parameter)
{
    buffer_append_char(out, '{');
    json_add_text(out, "type", type_names[parameter->type]);
    json_add_text(out, "description", parameter->description);
    if (parameter->choices[0]) {
        json_add_key(out, "enum");
        for (size_t i = 0; i < PSEUDO_TOOL_MOST_CHOICES && parameter->choices[i]; i++)
            buffer_append_format(out, "%s\"%s\"", i == 0 ? "[" : ",", parameter->choices[i]);
        buffer_append_char(out, ']');
    }
    if (parameter->type == PSEUDO_TOOL_NUMBER)
        buffer_append_format(out, ",\"minimum\":%lld,\"maximum\":%lld",
                             (long long)parameter->minimum, (long long)parameter->maximum);
    if (parameter->default_json)
        buffer_append_format(out, ",\"default\":%s", parameter->default_json);
    buffer_append_char(out, '}');
}

void pseudo_write_schema(struct buffer *out, const struct pseudo_parameter *parameters)
{
    buffer_append_text(out, "{\"type\":\"object\",\"properties\":{");
    for (const struct pseudo_parameter *at = parameters; at->name; at++) {
        json_add_key(out, at->name);
        write_parameter(out, at);
    }
    buffer_append_char(out, '}');
    bool is_first = true;
    for (const struct pseudo_parameter *at = parameters; at->name; at++) {
        if (!at->is_required)
            continue;
        buffer_append_format(out, is_first ? ",\"required\":[\"%s\"" : ",\"%s\"", at->name);
        is_first = false;
    }
    buffer_append_text(out, is_first ? "}" : "]}");
}

/* ---- checking ---- */

static double number_of(struct str value)
{
    char text[MOST_NUMBER_BYTES];
    size_t length = value.length < sizeof text ? value.length : sizeof text - 1;
    memcpy(text, value.bytes, length);
    text[length] = '\0';
    return strtod(text, NULL);
}

static bool has_type(struct str value, enum pseudo_type type)
{
    enum json_type is = json_type(value);
    switch (type) {
    case PSEUDO_TOOL_TEXT:
        return is == JSON_STRING;
    case PSEUDO_TOOL_NUMBER:
        return is == JSON_NUMBER;
    case PSEUDO_TOOL_BOOLEAN:
        return is == JSON_TRUE || is == JSON_FALSE;
    case PSEUDO_TOOL_OBJECT:
        break;
    }
    return is == JSON_OBJECT;
}

static bool is_choice(struct str value, const struct pseudo_parameter *parameter)
{
    if (!parameter->choices[0])
        return true;
    for (size_t i = 0; i < PSEUDO_TOOL_MOST_CHOICES && parameter->choices[i]; i++) {
        if (json_string_equals(value, str_from(parameter->choices[i])))
            return true;
    }
    return false;
}

static void say_choices(struct buffer *problem, const struct pseudo_parameter *parameter)
{
    buffer_append_format(problem, "%s must be one of", parameter->name);
    for (size_t i = 0; i < PSEUDO_TOOL_MOST_CHOICES && parameter->choices[i]; i++)
        buffer_append_format(problem, "%s %s", i == 0 ? "" : ",", parameter->choices[i]);
}

static bool arguments_fits(struct str value, const struct pseudo_parameter *parameter,
                           struct buffer *problem)
{
    bool is_missing = value.length == 0 || json_type(value) == JSON_NULL;
    if (is_missing && parameter->is_required)
        buffer_append_format(problem, "%s (%s) is required", parameter->name,
                             type_names[parameter->type]);
    else if (!is_missing && !has_type(value, parameter->type))
        buffer_append_format(problem, "%s must be of type %s", parameter->name,
                             type_names[parameter->type]);
    else if (!is_missing && !is_choice(value, parameter))
        say_choices(problem, parameter);
    else if (!is_missing && parameter->type == PSEUDO_TOOL_NUMBER &&
             number_of(value) < (double)parameter->minimum)
        buffer_append_format(problem, "%s must not be below %lld", parameter->name,
                             (long long)parameter->minimum);
    else
        return true;
    return false;
}

bool pseudo_check_arguments(struct str arguments, const struct pseudo_parameter *parameters,
                            struct buffer *problem)
{
    for (const struct pseudo_parameter *at = parameters; at->name; at++) {
        if (!arguments_fits(json_member(arguments, at->name), at, problem))
            return false;
    }
    return true;
}

/* ---- reading ---- */

bool pseudo_argument_text(struct str arguments, const char *name, struct buffer *out)
{
    struct str value = json_member(arguments, name);
    return json_type(value) == JSON_STRING && json_decode_string(value, out);
}

int64_t pseudo_argument_number(struct str arguments, const char *name, int64_t most,
                               int64_t fallback)
{
    struct str value = json_member(arguments, name);
    if (json_type(value) != JSON_NUMBER)
        return fallback;
    double number = number_of(value);
    return number >= (double)most ? most : (int64_t)number;
}

bool pseudo_argument_is_true(struct str arguments, const char *name)
{
    return json_type(json_member(arguments, name)) == JSON_TRUE;
}

/* ---- the tools ---- */

static const struct pseudo_tool tools[] = {
#define PARAMETER(parameter, kind, required, text, ...)                                            \
    {                                                                                              \
        .name = parameter, .type = PSEUDO_TOOL_##kind, .is_required = required,                    \
        .description = text, __VA_ARGS__                                                           \
    }
#define TOOL(symbol, title, effect, handler, description, ...)                                     \
    {PSEUDO_TOOL_##symbol, title, description, PSEUDO_TOOL_##effect, {__VA_ARGS__}},
#include "tools_table.h"
#undef PARAMETER
#undef TOOL
};
_Static_assert(sizeof tools / sizeof *tools == PSEUDO_TOOL_COUNT, "each tool has a row");

const struct pseudo_tool *pseudo_tool_called(struct call *call)
{
    enum config_pseudo_tool id = client_own_tool_called(call);
    if (id == PSEUDO_TOOL_COUNT)
        return NULL;
    const struct pseudo_tool *tool = tools;
    while (tool->id != id)
        tool++;
    return tool;
}

/* ---- output schemas ---- */

static bool tools_needs_human(const struct policy_decision *decision)
{
    return decision->by_policies || decision->action == ACTION_POLICY ||
           decision->action == ACTION_APPROVE || decision->force_required;
}

bool pseudo_tools_hide_output(const struct call *call, const struct policy_decision *decision)
{
    return tools_needs_human(decision) && !client_knows_tasks(call);
}

/* ---- listing ---- */

enum mcp_announcing pseudo_tools_announcing(const struct call *call)
{
    if (!call->dialect->announces_tasks)
        return MCP_ANNOUNCE_NOT;
    if (client_knows_tasks(call))
        return MCP_ANNOUNCE_TWICE;
    return client_has_version(call, "2025-11-25") ? MCP_ANNOUNCE_ONCE : MCP_ANNOUNCE_NOT;
}

/* A client with neither session nor token has no inbox, so it can wait for no activity. */
static bool has_inbox(const struct call *call)
{
    char key[CLIENT_KEY_BYTES];
    inbox_key_of_call(call, key);
    return key[0] != '\0';
}

static bool is_offered(const struct call *call, enum config_pseudo_tool tool)
{
    return config_pseudo_offers(&call->snapshot->config->pseudo, tool) &&
           client_era_has_tool(call, tool) &&
           (tool != PSEUDO_TOOL_AWAIT_ACTIVITY || has_inbox(call));
}

struct tool_names pseudo_tools_names(const struct call *call)
{
    struct tool_names names = {.prefix = call->snapshot->config->pseudo.prefix};
    for (size_t i = 0; i < PSEUDO_TOOL_COUNT; i++) {
        if (!is_offered(call, tools[i].id))
            continue; /* nothing names it */
        names.offered |= 1U << tools[i].id;
        if (client_server_has_tool(call, str_from(config_pseudo_tool_name(tools[i].id))))
            names.prefixed |= 1U << tools[i].id;
    }
    return names;
}

void pseudo_tools_write_text(const struct call *call, const char *text, struct buffer *out)
{
    struct tool_names names = pseudo_tools_names(call);
    tool_names_fill(&names, str_from(text), out);
}

void pseudo_tools_write_alternative(const struct call *call, struct buffer *out)
{
    static const enum config_pseudo_tool others[] = {
        PSEUDO_TOOL_GET_TASK_RESULT, PSEUDO_TOOL_AWAIT_ACTIVITY, PSEUDO_TOOL_LIST_TASKS};
    struct tool_names names = pseudo_tools_names(call);
    if (!tool_names_offer(&names, PSEUDO_TOOL_EXECUTE_TOOL))
        return;
    buffer_append_text(out, "{\"tool\":\"");
    tool_names_write(&names, PSEUDO_TOOL_EXECUTE_TOOL, out);
    buffer_append_format(out, "\",\"arguments\":{\"server\":\"%s\",\"tool\":", call->source->id);
    buffer_append_json_string(out, call->envelope.name.text);
    buffer_append_text(out, "},\"then\":[");
    const char *before = "\"";
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (!tool_names_offer(&names, others[i]))
            continue;
        buffer_append_text(out, before);
        tool_names_write(&names, others[i], out);
        buffer_append_char(out, '"');
        before = ",\"";
    }
    buffer_append_text(out, "]}");
}

static void write_tool(const struct pseudo_tool *tool, const struct tool_names *names,
                       bool announces, struct buffer *out)
{
    const char *calls = tool->effect == PSEUDO_TOOL_CALLS ? "true" : "false";
    OWNED_BUFFER(text);
    buffer_append_format(&text, "{\"name\":\"{%s}\"", config_pseudo_tool_name(tool->id));
    json_add_text(&text, "title", tool->title);
    json_add_text(&text, "description", tool->description);
    json_add_key(&text, "inputSchema");
    pseudo_write_schema(&text, tool->parameters);
    buffer_append_format(&text,
                         ",\"annotations\":{\"title\":\"%s\",\"readOnlyHint\":%s,"
                         "\"destructiveHint\":%s,\"openWorldHint\":%s%s}",
                         tool->title, tool->effect == PSEUDO_TOOL_READS ? "true" : "false", calls,
                         calls,
                         announces ? ",\"taskSupport\":\"forbidden\"},"
                                     "\"execution\":{\"taskSupport\":\"forbidden\"}"
                                   : "}");
    tool_names_fill(names, buffer_str(&text), out);
}

/* Warns once for each source: its names do not change with each list. */
static void warn_of_collisions(const struct call *call, struct str names)
{
    if (names.length > 0 &&
        inbox_table_warn_once(call->worker->gateway->inbox_table, str_from(call->source->id)))
        log_warn("Tools of the gateway's own are offered under another name: upstream has tools of "
                 "the same name",
                 LOG_TEXT("source", call->source->id), LOG_STR("tools", names),
                 LOG_TEXT("prefix", call->snapshot->config->pseudo.prefix));
}

void pseudo_tools_write(const struct call *call, const struct tool_names *names, struct buffer *out)
{
    OWNED_BUFFER(collisions);
    bool is_first = true;
    for (size_t i = 0; i < PSEUDO_TOOL_COUNT; i++) {
        enum config_pseudo_tool id = tools[i].id;
        if (!tool_names_offer(names, id))
            continue;
        if (!is_first)
            buffer_append_char(out, ',');
        write_tool(&tools[i], names, pseudo_tools_announcing(call) == MCP_ANNOUNCE_TWICE, out);
        is_first = false;
        if (names->prefixed & 1U << id)
            buffer_append_format(&collisions, "%s%s", collisions.length > 0 ? ", " : "",
                                 config_pseudo_tool_name(id));
    }
    warn_of_collisions(call, buffer_str(&collisions));
}
