/* Schemas of the gateway's own tools, and the check of their arguments. */
#include "arguments.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/json/members.h"
#include "taskgate/json/text.h"

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
