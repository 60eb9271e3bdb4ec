/* `x-mcp-header` of a schema, and the headers of a call compared with its arguments. */
#include "taskgate/mcp/parameter_headers.h"

#include <stdlib.h>
#include <string.h>

#include "exact_integer.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"

#define KEYWORD STR("x-mcp-header")
#define PARAMETERS_MAX 64 /* of a tool: each is looked for in every call */
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

enum parameter_type { PARAMETER_STRING, PARAMETER_INTEGER, PARAMETER_BOOLEAN };

struct parameter {
    char *name;  /* of the header, behind the prefix */
    char **path; /* keys from the arguments to the value */
    size_t depth;
    enum parameter_type type;
};

struct parameter_headers {
    struct parameter *items;
    size_t count;
};

/* ---- reading a schema ---- */

struct place {
    const struct place *outer; /* NULL: the arguments themselves */
    struct str key;            /* JSON text of the property's name */
    size_t depth;
};

struct reader {
    struct parameter_headers *headers;
    struct error *error;
};

static struct str parameter_headers_quoted(struct str raw_key)
{
    return str_slice(raw_key.bytes - 1, raw_key.length + 2);
}

static bool parameter_headers_is_token(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        bool is_letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
        if (!is_letter && !(c >= '0' && c <= '9') && (c == 0 || !strchr("!#$%&'*+-.^_`|~", c)))
            return false;
    }
    return length > 0;
}

static bool read_type(struct str schema, enum parameter_type *type)
{
    static const char *const names[] = {"string", "integer", "boolean"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (json_string_equals(json_member(schema, "type"), str_from(names[i]))) {
            *type = (enum parameter_type)i;
            return true;
        }
    }
    return false;
}

static bool is_taken(const struct parameter_headers *headers, struct str name)
{
    for (size_t i = 0; i < headers->count; i++) {
        if (str_equal_ignore_case(str_from(headers->items[i].name), name))
            return true;
    }
    return false;
}

/* A key with a NUL would be cut where arguments are searched. */
static bool copy_path(struct parameter *parameter, const struct place *place)
{
    parameter->depth = place->depth;
    parameter->path = memory_alloc_array(place->depth, sizeof *parameter->path);
    for (; place->outer; place = place->outer) {
        size_t length = 0;
        char *key = json_string_text(place->key, &length);
        parameter->path[place->depth - 1] = key;
        if (strlen(key) != length)
            return false;
    }
    return true;
}

static bool parameter_headers_add_parameter(struct reader *reader, const struct place *place,
                                            struct str schema, struct str name)
{
    struct parameter_headers *headers = reader->headers;
    struct parameter parameter = {0};
    size_t length = 0;
    if (headers->count == PARAMETERS_MAX)
        return error_set(reader->error, "more than %d properties have an x-mcp-header",
                         PARAMETERS_MAX);
    char *text = json_string_text(name, &length);
    if (!text || !parameter_headers_is_token(text, length)) {
        free(text);
        return error_set(reader->error, "x-mcp-header must be a token of RFC 9110");
    }
    if (is_taken(headers, str_from(text))) {
        error_set(reader->error, "x-mcp-header %s is there twice", text);
        free(text);
        return false;
    }
    parameter.name = text;
    headers->items = memory_grow_array(headers->items, headers->count + 1, sizeof *headers->items);
    if (!read_type(schema, &parameter.type))
        error_set(reader->error, "x-mcp-header %s: the type must be string, integer or boolean",
                  text);
    else if (!copy_path(&parameter, place))
        error_set(reader->error, "x-mcp-header %s: the property's name has a NUL", text);
    else
        reader->error->message[0] = '\0';
    headers->items[headers->count++] = parameter;
    return reader->error->message[0] == '\0';
}

/* Keywords whose members are schemas by name, and those whose value is data. */
static bool parameter_headers_is_one_of(struct str key, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (json_string_equals(key, str_from(names[i])))
            return true;
    }
    return false;
}

static bool is_map(struct str key)
{
    static const char *const names[] = {"properties", "patternProperties", "$defs", "definitions",
                                        "dependentSchemas"};
    return parameter_headers_is_one_of(key, names, COUNT_OF(names));
}

static bool is_data(struct str key)
{
    static const char *const names[] = {"const", "default", "enum", "examples"};
    return parameter_headers_is_one_of(key, names, COUNT_OF(names));
}

static bool has_keyword(struct str value);

/* The schemas of a map: their names are no keywords. */
static bool map_has_keyword(struct str map)
{
    struct str key, value;
    size_t position = 0;
    while (json_next_member(map, &position, &key, &value)) {
        if (has_keyword(value))
            return true;
    }
    return false;
}

static bool has_keyword(struct str value)
{
    struct str key, inner;
    size_t position = 0;
    if (json_type(value) == JSON_ARRAY) {
        while (json_next_element(value, &position, &inner)) {
            if (has_keyword(inner))
                return true;
        }
        return false;
    }
    if (json_type(value) != JSON_OBJECT)
        return false;
    while (json_next_member(value, &position, &key, &inner)) {
        if (json_string_equals(parameter_headers_quoted(key), KEYWORD))
            return true;
        if (is_data(parameter_headers_quoted(key)))
            continue;
        if (is_map(parameter_headers_quoted(key)) ? map_has_keyword(inner) : has_keyword(inner))
            return true;
    }
    return false;
}

static bool read_schema(struct reader *reader, const struct place *place, struct str schema);

static bool read_properties(struct reader *reader, const struct place *outer, struct str properties)
{
    struct str key, schema;
    size_t position = 0;
    while (json_next_member(properties, &position, &key, &schema)) {
        struct place place = {outer, parameter_headers_quoted(key), outer->depth + 1};
        if (!read_schema(reader, &place, schema))
            return false;
    }
    return true;
}

/* A schema that `properties` alone lead to; elsewhere the keyword has no place. */
static bool read_schema(struct reader *reader, const struct place *place, struct str schema)
{
    struct str key, value;
    size_t position = 0;
    while (json_next_member(schema, &position, &key, &value)) {
        bool good = true;
        if (json_string_equals(parameter_headers_quoted(key), STR("properties")))
            good = read_properties(reader, place, value);
        else if (json_string_equals(parameter_headers_quoted(key), KEYWORD))
            good = place->outer ? parameter_headers_add_parameter(reader, place, schema, value)
                                : error_set(reader->error, "x-mcp-header must be at a property");
        else if (!is_data(parameter_headers_quoted(key)) &&
                 (is_map(parameter_headers_quoted(key)) ? map_has_keyword(value)
                                                        : has_keyword(value)))
            good =
                error_set(reader->error, "x-mcp-header must be reached through `properties` alone");
        if (!good)
            return false;
    }
    return true;
}

enum parameter_headers_status parameter_headers_create(struct str input_schema,
                                                       struct parameter_headers **headers,
                                                       struct error *error)
{
    struct error unheard;
    struct place arguments = {0};
    struct reader reader = {memory_alloc(sizeof(struct parameter_headers)),
                            error ? error : &unheard};
    reader.error->message[0] = '\0';
    bool good = read_schema(&reader, &arguments, input_schema);
    *headers = NULL;
    if (good && reader.headers->count > 0) {
        *headers = reader.headers;
        return PARAMETER_HEADERS_SOME;
    }
    parameter_headers_destroy(reader.headers);
    return good ? PARAMETER_HEADERS_NONE : PARAMETER_HEADERS_INVALID;
}

void parameter_headers_destroy(struct parameter_headers *headers)
{
    for (size_t i = 0; headers && i < headers->count; i++) {
        struct parameter *parameter = &headers->items[i];
        for (size_t j = 0; parameter->path && j < parameter->depth; j++)
            free(parameter->path[j]);
        free(parameter->path);
        free(parameter->name);
    }
    if (headers)
        free(headers->items);
    free(headers);
}

/* ---- comparing a call ---- */

static enum mirrored_verdict compare_integer(struct str header, struct str argument)
{
    int64_t told, given;
    return exact_integer_read(header, false, &told) && exact_integer_read(argument, true, &given) &&
                   told == given
               ? MIRRORED_SAME
               : MIRRORED_DIFFERENT;
}

/* By the type of the argument, not by that of the schema: the server refuses arguments that are
 * not as the schema says, and the header may not say otherwise even then. */
static enum mirrored_verdict compare_argument(const struct parameter *parameter,
                                              const struct mirrored_header *header,
                                              struct str argument)
{
    OWNED_BUFFER(room);
    struct str told;
    if (json_type(argument) == JSON_STRING)
        return mirrored_header_compare_json(header, argument);
    if (header->count != 1)
        return header->count == 0 ? MIRRORED_MISSING : MIRRORED_REPEATED;
    enum mirrored_verdict verdict = MIRRORED_DIFFERENT;
    if (!mirrored_header_decode(header->value, &room, &told))
        verdict = MIRRORED_UNDECODABLE;
    else if (json_type(argument) == JSON_NUMBER && parameter->type == PARAMETER_INTEGER)
        verdict = compare_integer(told, argument);
    else if (json_type(argument) != JSON_OBJECT && json_type(argument) != JSON_ARRAY &&
             str_equal(told, argument))
        verdict = MIRRORED_SAME;
    return verdict;
}

enum mirrored_verdict parameter_headers_check(const struct parameter_headers *headers,
                                              struct str arguments, parameter_header_find find,
                                              void *request, struct str *name)
{
    for (size_t i = 0; i < headers->count; i++) {
        const struct parameter *parameter = &headers->items[i];
        *name = str_from(parameter->name);
        struct mirrored_header header = find(request, *name);
        struct str argument = str_trim(
            json_path_of(arguments, (const char *const *)parameter->path, parameter->depth));
        bool has_value = argument.length > 0 && json_type(argument) != JSON_NULL;
        enum mirrored_verdict verdict = has_value ? compare_argument(parameter, &header, argument)
                                        : header.count == 0 ? MIRRORED_SAME
                                                            : MIRRORED_UNEXPECTED;
        if (verdict != MIRRORED_SAME)
            return verdict;
    }
    return MIRRORED_SAME;
}

/* ---- making them ---- */

/* False for a value that no header has. */
static bool write_argument(const struct parameter *parameter, struct str argument,
                           struct buffer *out)
{
    enum json_type type = json_type(argument);
    struct buffer text;
    int64_t integer;
    if (type == JSON_STRING) {
        buffer_init(&text);
        json_decode_string(argument, &text);
        mirrored_header_encode(buffer_str(&text), out);
        buffer_finish(&text);
    } else if (type == JSON_NUMBER && parameter->type == PARAMETER_INTEGER &&
               exact_integer_read(argument, true, &integer)) {
        buffer_append_format(out, "%lld", (long long)integer);
    } else if (type == JSON_NUMBER || type == JSON_TRUE || type == JSON_FALSE) {
        buffer_append(out, argument);
    } else {
        return false;
    }
    return true;
}

void parameter_headers_write(const struct parameter_headers *headers, struct str arguments,
                             parameter_header_put put, void *context)
{
    for (size_t i = 0; i < headers->count; i++) {
        const struct parameter *parameter = &headers->items[i];
        struct str argument = str_trim(
            json_path_of(arguments, (const char *const *)parameter->path, parameter->depth));
        OWNED_BUFFER(value);
        if (argument.length > 0 && write_argument(parameter, argument, &value))
            put(context, str_from(parameter->name), buffer_str(&value));
    }
}
