/*
 * The table of keys as a JSON Schema, for editors and for Helm. It describes the file as it is
 * written, and is never stricter than the reader: a plain number or truth value is text to the
 * reader, and `${NAME}` may bring any value. Draft 7, because older Helm knows no later one, with
 * patterns that ECMAScript, RE2 and Python read alike.
 */
#include <inttypes.h>
#include <string.h>

#include "checks.h"
#include "keys.h"
#include "taskgate/config/schema.h"
#include "taskgate/config/secure_url.h"
#include "taskgate/config/summary.h"
#include "taskgate/core/owned.h"

#define VISIBLE "[^\\x00-\\x20\\x7F]"
#define NO_CONTROL "[^\\x00-\\x1F\\x7F]"
#define AUTHORITY "(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9._-]+)"
#define SECURE_URL "[Hh][Tt][Tt][Pp][Ss]?://[^\\x00-\\x20\\x7F#\"\\\\]+"
#define UNIT                                                                                       \
    "(n(anos|sec|s)|u(sec|s)|micros|m(illis|sec|s|inutes?|ins?|in|onths?)?|s(econds?|ecs?|ec)?|"   \
    "h(ours?|rs?)?|d(ays?)?|w(eeks?|ks?)?|M|y(ears?|rs?)?)"
#define DURATION                                                                                   \
    "\\s*(([0-9]+\\s*" UNIT "\\s*)+|P([0-9]+W)?([0-9]+D)?(T([0-9]+H)?([0-9]+M)?"                   \
    "([0-9]+([.,][0-9]{1,9})?S)?)?)\\s*"
#define SIZE "\\s*[0-9]+\\s*([KkMmGg][Ii]?)?[Bb]?\\s*"
#define WHOLE "-?[0-9]+"
#define YES "[Tt][Rr][Uu][Ee]|[Yy][Ee][Ss]|[Oo][Nn]"
#define NO "[Ff][Aa][Ll][Ss][Ee]|[Nn][Oo]|[Oo][Ff][Ff]"

/* A YAML reader makes these of text without quotes. */
#define STRING "\"string\""
#define TRUTH_TOO STRING ",\"boolean\""
#define NUMBER_TOO STRING ",\"number\""
#define ANY_TEXT STRING ",\"number\",\"boolean\""

struct form {
    key_check check;
    const char *types, *pattern;
};

/* The texts that the checks accept, and perhaps more. */
static const struct form forms[] = {
    {check_not_empty, ANY_TEXT, "[\\s\\S]*[^ \\t\\n\\r\\f\\x0B][\\s\\S]*"},
    {check_glob, ANY_TEXT, "[\\s\\S]+"},
    {check_name, ANY_TEXT, VISIBLE "(" NO_CONTROL "*" VISIBLE ")?"},
    {check_variable_name, TRUTH_TOO, "[A-Za-z_][A-Za-z0-9_]*"},
    {check_source_id, ANY_TEXT, "[A-Za-z0-9._-]+"},
    {check_url, STRING, "https?://[^\\x00-\\x20\\x7F#]+"},
    {check_endpoint, STRING, "https?://[^\\x00-\\x20\\x7F#]+|smtps?:(//)?" AUTHORITY "(:[0-9]+)?"},
    {check_issuer, STRING, SECURE_URL},
    {check_base_url, STRING, SECURE_URL},
    {secure_url_check, STRING, SECURE_URL},
    {check_mail_address, STRING, "[^@\\s]+@[A-Za-z0-9.-]+"},
    {check_address, STRING, "[0-9A-Fa-f:.]+"},
    {check_listen_address, STRING, AUTHORITY ":[0-9]+"},
    {check_replica_address, STRING, "http://" AUTHORITY ":[0-9]+"},
    {check_replica_id, ANY_TEXT, "[\\x21-\\x7E]{1,128}"},
    {check_host, ANY_TEXT, AUTHORITY "(:[0-9]+)?"},
    {check_origin, STRING, "[A-Za-z0-9+.-]+://" AUTHORITY "(:[0-9]+)?"},
    {check_scope, ANY_TEXT, "[\\x21\\x23-\\x5B\\x5D-\\x7E]+"},
    {check_header_name, STRING, "[!#$%&'*+.^_`|~0-9A-Za-z-]+"},
    {check_sha256, NUMBER_TOO, "[0-9A-Fa-f]{64}"},
    {check_dot_path, ANY_TEXT, "[^.]+(\\.[^.]+)*"},
    {check_tool_prefix, ANY_TEXT, "[A-Za-z0-9_-]{1,20}"},
    {check_slack_id, STRING, "[UWS][A-Z0-9]+"},
    {check_slack_user, STRING, "[UW][A-Z0-9]+"},
    {check_certificate_subject, STRING, "(" VISIBLE NO_CONTROL "*)?=" NO_CONTROL "*"},
    {summary_check, ANY_TEXT, "([^{}]|\\{\\{|\\}\\}|\\{[^{}]+\\})+"},
};
static const struct form any_text = {NULL, ANY_TEXT, NULL};

static const struct form *form_of(const struct key *key)
{
    for (size_t i = 0; key->check && i < sizeof forms / sizeof *forms; i++) {
        if (forms[i].check == key->check)
            return &forms[i];
    }
    return &any_text;
}

/* ---- one value ---- */

/* A value of a mapping may be left empty where the key may be left out; an item of a list may not.
 */
static void write_types(struct buffer *out, const char *types, bool may_be_null)
{
    buffer_append_format(out, "\"type\":[%s%s]", types, may_be_null ? ",\"null\"" : "");
}

/* A pattern says something of strings alone, so it is written beside other types. NULL: any text.
 */
static void write_pattern(struct buffer *out, const char *pattern)
{
    OWNED_BUFFER(whole);
    if (!pattern)
        return;
    buffer_append_format(&whole, *pattern ? "^(%s)$|\\$\\{" : "%s\\$\\{", pattern);
    buffer_append_text(out, ",\"pattern\":");
    buffer_append_json_string(out, buffer_str(&whole));
}

static void schema_write_form(struct buffer *out, const char *types, const char *pattern,
                              bool may_be_null)
{
    write_types(out, types, may_be_null);
    write_pattern(out, pattern);
}

static void write_range(struct buffer *out, const struct key *key)
{
    if (key->minimum != INT64_MIN)
        buffer_append_format(out, ",\"minimum\":%" PRId64, key->minimum);
    if (key->maximum != INT64_MAX)
        buffer_append_format(out, ",\"maximum\":%" PRId64, key->maximum);
}

static bool has_choice(const struct choices *choices, const char *name)
{
    for (size_t i = 0; i < choices->count; i++) {
        if (strcmp(choices->items[i].name, name) == 0)
            return true;
    }
    return false;
}

/* `1.2` without quotes is a number. One list with "1.2" and 1.2 is refused by Helm, which takes
 * them for equal. */
static void write_numbers(struct buffer *out, const struct choices *choices)
{
    for (size_t i = 0; i < choices->count; i++) {
        const char *name = choices->items[i].name;
        if (name[strspn(name, "0123456789.")] == '\0')
            buffer_append_format(out, "{\"const\":%s},", name);
    }
}

/* `yes` and `off` are truth values in older YAML. */
static void write_choices(struct buffer *out, const struct choices *choices, bool may_be_null)
{
    bool has_yes = has_choice(choices, "yes") || has_choice(choices, "on");
    bool has_no = has_choice(choices, "no") || has_choice(choices, "off");
    write_numbers(out, choices);
    buffer_append_text(out, "{\"enum\":[");
    for (size_t i = 0; i < choices->count; i++)
        buffer_append_format(out, "%s\"%s\"", i ? "," : "", choices->items[i].name);
    buffer_append_format(out, "%s%s%s]},{\"type\":\"string\"", has_yes ? ",true" : "",
                         has_no ? ",false" : "", may_be_null ? ",null" : "");
    write_pattern(out, has_yes && has_no ? YES "|" NO : has_yes ? YES : has_no ? NO : "");
    buffer_append_char(out, '}');
}

/* A list; or one choice that means several others, which needs no list around it. */
static void write_items_choices(struct buffer *out, const struct key *key)
{
    OWNED_BUFFER(several);
    for (size_t i = 0; i < key->choices->count; i++) {
        unsigned bits = key->choices->items[i].value;
        if ((bits & (bits - 1)) != 0)
            buffer_append_format(&several, "%s%s", several.length ? "|" : "",
                                 key->choices->items[i].name);
    }
    buffer_append_char(&several, '\0');
    schema_write_form(out, "\"array\",\"string\"", several.bytes, !key->is_required);
    buffer_append_text(out, ",\"minItems\":1,\"items\":{\"anyOf\":[");
    write_choices(out, key->choices, false);
    buffer_append_text(out, "]}");
}

static void write_texts(struct buffer *out, const struct key *key)
{
    const struct form *form = form_of(key);
    bool may_be_single = key->type == KEY_TEXT_OR_TEXTS;
    schema_write_form(out, may_be_single ? ANY_TEXT ",\"array\"" : "\"array\",\"string\"",
                      may_be_single ? form->pattern : "", !key->is_required);
    buffer_append_text(out, ",\"items\":{");
    schema_write_form(out, form->types, form->pattern, false);
    buffer_append_char(out, '}');
}

/* validate_rules.c reads it. */
static void schema_write_quorum(struct buffer *out)
{
    buffer_append_text(out, "\"type\":[\"integer\",\"object\",\"string\",\"null\"],");
    buffer_append_text(out, "\"minimum\":1,\"maximum\":100,\"minProperties\":1");
    write_pattern(out, WHOLE);
    buffer_append_text(out, ",\"additionalProperties\":{\"type\":[\"integer\",\"string\"],"
                            "\"minimum\":1,\"maximum\":100");
    write_pattern(out, WHOLE);
    buffer_append_char(out, '}');
}

static void write_number(struct buffer *out, const struct key *key, const char *type,
                         const char *pattern)
{
    buffer_append_format(out, "\"type\":[%s," STRING "%s]", type,
                         key->is_required ? "" : ",\"null\"");
    write_range(out, key);
    write_pattern(out, pattern);
}

/* ---- mappings ---- */

static void write_mapping(struct buffer *out, const char *pattern, bool may_be_null);

static void write_inner(struct buffer *out, const struct key *key, bool may_be_null)
{
    OWNED char *pattern = key_pattern(key);
    write_mapping(out, pattern, may_be_null);
}

static bool has_required_keys(const char *pattern)
{
    for (size_t i = 0; i < config_key_count; i++) {
        if (config_keys[i].is_required && strcmp(config_keys[i].parent, pattern) == 0)
            return true;
    }
    return false;
}

static void write_many(struct buffer *out, const struct key *key)
{
    bool is_named = key->type == KEY_NAMED;
    OWNED char *pattern = key_pattern(key);
    schema_write_form(out, is_named ? "\"object\",\"string\"" : "\"array\",\"string\"", "",
                      !key->is_required);
    if (is_named && key->check) {
        buffer_append_text(out, ",\"propertyNames\":{\"type\":\"string\"");
        write_pattern(out, form_of(key)->pattern);
        buffer_append_char(out, '}');
    }
    buffer_append_text(out, is_named ? ",\"additionalProperties\":{" : ",\"items\":{");
    write_mapping(out, pattern, !has_required_keys(pattern));
    buffer_append_char(out, '}');
}

/* distance.c: `upstream: {exchange: {…}}`. */
static void write_choice(struct buffer *out, const struct key *key)
{
    const struct key *exchange = key_find("sources[].auth", "exchange");
    buffer_append_text(out, "\"anyOf\":[");
    write_choices(out, key->choices, !key->is_required);
    if (strcmp(key->parent, exchange->parent) == 0 && strcmp(key->name, "upstream") == 0) {
        buffer_append_text(out, ",{\"type\":\"object\",\"required\":[\"exchange\"],"
                                "\"additionalProperties\":false,\"properties\":{\"exchange\":{");
        write_inner(out, exchange, true);
        buffer_append_text(out, "}}}");
    }
    buffer_append_char(out, ']');
}

static void schema_write_value(struct buffer *out, const struct key *key)
{
    const struct form *form = form_of(key);
    switch (key->type) {
    case KEY_TEXT:
        schema_write_form(out, form->types, form->pattern, !key->is_required);
        break;
    case KEY_BOOL:
        schema_write_form(out, "\"boolean\",\"string\"", YES "|" NO, !key->is_required);
        break;
    case KEY_INTEGER:
        write_number(out, key, "\"integer\"", WHOLE);
        break;
    case KEY_REAL:
        write_number(out, key, "\"number\"", "\\s*[-+0-9A-Fa-fXxPp.]+");
        break;
    case KEY_BYTES:
        write_number(out, key, "\"integer\"", SIZE);
        break;
    case KEY_DURATION:
        schema_write_form(out, "\"string\"", DURATION, !key->is_required);
        break;
    case KEY_CHOICE:
        write_choice(out, key);
        break;
    case KEY_CHOICES:
        write_items_choices(out, key);
        break;
    case KEY_TEXTS:
    case KEY_TEXT_OR_TEXTS:
        write_texts(out, key);
        break;
    case KEY_TEXT_MAP:
        schema_write_form(out, "\"object\",\"string\"", "", !key->is_required);
        buffer_append_text(out, ",\"additionalProperties\":{");
        schema_write_form(out, ANY_TEXT, NULL, true);
        buffer_append_char(out, '}');
        break;
    case KEY_QUORUM:
        schema_write_quorum(out);
        break;
    case KEY_ANY:
        break;
    case KEY_MAPPING:
        write_inner(out, key, !key->is_required);
        break;
    case KEY_LIST:
    case KEY_NAMED:
        write_many(out, key);
        break;
    }
}

/* As an editor would insert it. */
static void schema_write_default(struct buffer *out, const struct key *key)
{
    bool is_bare = key->type == KEY_BOOL || key->type == KEY_INTEGER || key->type == KEY_REAL ||
                   key->type == KEY_QUORUM;
    struct str word, rest = str_from(key->default_text);
    if (!key->default_text || key->is_required)
        return;
    buffer_append_text(out, ",\"default\":");
    if (key->type == KEY_CHOICES) {
        for (const char *joint = "["; rest.length > 0; joint = ",") {
            str_cut(rest, ',', &word, &rest);
            buffer_append_text(out, joint);
            buffer_append_json_string(out, str_trim(word));
        }
        buffer_append_char(out, ']');
    } else if (is_bare) {
        buffer_append(out, rest);
    } else {
        buffer_append_json_string(out, rest);
    }
}

static void schema_write_key(struct buffer *out, const struct key *key)
{
    OWNED_BUFFER(description);
    buffer_append_text(&description, key->help);
    if (key->needs_restart)
        buffer_append_text(&description, CONFIG_NEEDS_RESTART);
    buffer_append_format(out, "\n\"%s\":{\"description\":", key->name);
    buffer_append_json_string(out, buffer_str(&description));
    schema_write_default(out, key);
    if (key->type != KEY_ANY)
        buffer_append_char(out, ',');
    schema_write_value(out, key);
    buffer_append_char(out, '}');
}

static void schema_write_required(struct buffer *out, const char *pattern)
{
    const char *joint = "";
    if (!has_required_keys(pattern))
        return;
    buffer_append_text(out, ",\"required\":[");
    for (size_t i = 0; i < config_key_count; i++) {
        const struct key *key = &config_keys[i];
        if (!key->is_required || strcmp(key->parent, pattern) != 0)
            continue;
        buffer_append_format(out, "%s\"%s\"", joint, key->name);
        joint = ",";
    }
    buffer_append_char(out, ']');
}

static void write_mapping(struct buffer *out, const char *pattern, bool may_be_null)
{
    const char *joint = "";
    schema_write_form(out, "\"object\",\"string\"", "", may_be_null);
    schema_write_required(out, pattern);
    buffer_append_text(out, ",\"additionalProperties\":false,\"properties\":{");
    for (size_t i = 0; i < config_key_count; i++) {
        if (strcmp(config_keys[i].parent, pattern) != 0)
            continue;
        buffer_append_text(out, joint);
        schema_write_key(out, &config_keys[i]);
        joint = ",";
    }
    buffer_append_char(out, '}');
}

void config_write_schema(struct buffer *out)
{
    buffer_append_text(out, "{\"$schema\":\"http://json-schema.org/draft-07/schema#\","
                            "\"title\":\"Configuration of taskgate\",");
    write_mapping(out, "", false);
    buffer_append_text(out, "}\n");
}
