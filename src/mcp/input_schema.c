/* JSON Schema, keyword by keyword. Each keyword is a row of one table. */
#include "taskgate/mcp/input_schema.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/canonical.h"
#include "taskgate/json/text.h"

#include "exact_integer.h"

/* References may go in circles, and a schema of a few lines may ask for endless work: bytes that
 * are looked at, in all. */
#define MOST_DEPTH 64
#define MOST_WORK ((size_t)16 * 1024 * 1024)

struct check {
    struct str root;
    struct error *error;
    int depth;
    size_t work;
};

/* A schema beside the value that it is asked about. */
struct place {
    struct check *check;
    struct str schema, value;
};

/* What the schemas of allOf, anyOf and oneOf must do. */
enum fitting { FITS_ALL, FITS_ANY, FITS_ONE };

/* The keyword's argument is checked by the function, as the keyword's row says. */
struct keyword;
typedef enum input_schema_verdict keyword_check(const struct place *place, struct str argument,
                                                const struct keyword *keyword);
struct keyword {
    const char *name;
    keyword_check *check; /* NULL: it says nothing of which values are good */
    bool is_most;         /* of a bound: the value is at most the argument, or at least */
    bool is_exclusive;    /* and not equal */
    enum json_type type;  /* whose size is bound */
    enum fitting fitting;
    const char *why; /* what is wrong with a value that does not fit */
};

static enum input_schema_verdict check_value(struct check *check, struct str schema,
                                             struct str value);

static enum input_schema_verdict unfit(const struct place *place, const char *why)
{
    error_set(place->check->error, "%s", why);
    return INPUT_SCHEMA_UNFIT;
}

static enum input_schema_verdict unknown(const struct place *place, struct str keyword)
{
    error_set(place->check->error, "the schema's keyword %.*s cannot be checked here",
              STR_ARGS(keyword));
    return INPUT_SCHEMA_UNKNOWN;
}

static enum input_schema_verdict fits_if(const struct place *place, bool fits, const char *why)
{
    return fits ? INPUT_SCHEMA_FITS : unfit(place, why);
}

/* ---- numbers ---- */

/* As memcmp's sign; integers are compared without rounding. */
static int input_schema_compare_numbers(struct str left, struct str right)
{
    int64_t a, b;
    if (exact_integer_read(left, true, &a) && exact_integer_read(right, true, &b))
        return (a > b) - (a < b);
    double x = 0, y = 0;
    json_number(left, &x);
    json_number(right, &y);
    return (x > y) - (x < y);
}

/* A text of digits alone is one, however long; any other is one without a fraction. */
static bool input_schema_is_integer(struct str text)
{
    int64_t ignored;
    size_t from = text.length > 0 && text.bytes[0] == '-';
    for (size_t i = from; i <= text.length; i++) {
        if (i == text.length)
            return true;
        if (text.bytes[i] < '0' || text.bytes[i] > '9')
            break;
    }
    return exact_integer_read(text, true, &ignored);
}

static bool input_schema_are_equal(struct str left, struct str right)
{
    OWNED_BUFFER(a);
    OWNED_BUFFER(b);
    if (json_type(left) == JSON_NUMBER && json_type(right) == JSON_NUMBER)
        return input_schema_compare_numbers(left, right) == 0;
    canonical_write(left, &a);
    canonical_write(right, &b);
    return str_equal(buffer_str(&a), buffer_str(&b));
}

/* ---- any value ---- */

static bool input_schema_has_type(struct str value, struct str name)
{
    static const struct {
        const char *name;
        enum json_type type, or_type;
    } types[] = {
        {"object", JSON_OBJECT, JSON_OBJECT}, {"array", JSON_ARRAY, JSON_ARRAY},
        {"string", JSON_STRING, JSON_STRING}, {"number", JSON_NUMBER, JSON_NUMBER},
        {"boolean", JSON_TRUE, JSON_FALSE},   {"null", JSON_NULL, JSON_NULL},
    };
    enum json_type type = json_type(value);
    if (json_string_equals(name, STR("integer")))
        return type == JSON_NUMBER && input_schema_is_integer(value);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (json_string_equals(name, str_from(types[i].name)))
            return type == types[i].type || type == types[i].or_type;
    }
    return false;
}

static enum input_schema_verdict input_schema_check_type(const struct place *place,
                                                         struct str argument,
                                                         const struct keyword *keyword)
{
    size_t position = 0;
    struct str name;
    bool fits = json_type(argument) == JSON_STRING && input_schema_has_type(place->value, argument);
    while (json_type(argument) == JSON_ARRAY && !fits &&
           json_next_element(argument, &position, &name))
        fits = input_schema_has_type(place->value, name);
    return fits_if(place, fits, "is of another type than the schema says");
}

static enum input_schema_verdict check_enum(const struct place *place, struct str argument,
                                            const struct keyword *keyword)
{
    size_t position = 0;
    struct str item;
    bool fits = false;
    while (json_type(argument) == JSON_ARRAY && !fits &&
           json_next_element(argument, &position, &item))
        fits = input_schema_are_equal(item, place->value);
    return fits_if(place, fits, "is none of the values that the schema lists");
}

static enum input_schema_verdict check_const(const struct place *place, struct str argument,
                                             const struct keyword *keyword)
{
    return fits_if(place, input_schema_are_equal(argument, place->value),
                   "is not the value of the schema");
}

static enum input_schema_verdict input_schema_check_bound(const struct place *place,
                                                          struct str argument,
                                                          const struct keyword *keyword)
{
    if (json_type(place->value) != JSON_NUMBER)
        return INPUT_SCHEMA_FITS;
    if (json_type(argument) != JSON_NUMBER)
        return unknown(place, STR("of a bound that is no number"));
    int sign = input_schema_compare_numbers(place->value, argument);
    bool fits = sign == 0 ? !keyword->is_exclusive : (sign < 0) == keyword->is_most;
    return fits_if(place, fits, keyword->is_most ? "is too large" : "is too small");
}

/* ---- sizes ---- */

static size_t size_of(struct str value)
{
    OWNED_BUFFER(text);
    if (json_type(value) != JSON_STRING)
        return json_count(value);
    json_decode_string(value, &text);
    return str_utf8_count(buffer_str(&text));
}

static enum input_schema_verdict check_size(const struct place *place, struct str argument,
                                            const struct keyword *keyword)
{
    int64_t bound;
    if (json_type(place->value) != keyword->type)
        return INPUT_SCHEMA_FITS;
    if (!exact_integer_read(argument, true, &bound) || bound < 0)
        return unknown(place, STR("of a size that is no whole number"));
    size_t size = size_of(place->value);
    bool fits = keyword->is_most ? size <= (size_t)bound : size >= (size_t)bound;
    return fits_if(place, fits, keyword->is_most ? "is too long" : "is too short");
}

/* ---- objects and arrays ---- */

/* The member of this raw key, which may be written with escapes. */
static struct str member_of(struct str object, struct str raw_key)
{
    char *name = json_string_text(str_slice(raw_key.bytes - 1, raw_key.length + 2), NULL);
    struct str value = name ? json_member(object, name) : STR_EMPTY;
    free(name);
    return value;
}

static enum input_schema_verdict check_properties(const struct place *place, struct str argument,
                                                  const struct keyword *keyword)
{
    size_t position = 0;
    struct str key, schema;
    enum input_schema_verdict verdict = INPUT_SCHEMA_FITS;
    while (verdict == INPUT_SCHEMA_FITS && json_type(place->value) == JSON_OBJECT &&
           json_next_member(argument, &position, &key, &schema)) {
        struct str value = member_of(place->value, key);
        if (value.length == 0)
            continue;
        verdict = check_value(place->check, schema, value);
        if (verdict != INPUT_SCHEMA_FITS) {
            char *name = memory_copy_str(key);
            error_prefix(place->check->error, name);
            free(name);
        }
    }
    return verdict;
}

static enum input_schema_verdict input_schema_check_required(const struct place *place,
                                                             struct str argument,
                                                             const struct keyword *keyword)
{
    size_t position = 0;
    struct str item;
    bool fits = true;
    while (fits && json_type(place->value) == JSON_OBJECT &&
           json_next_element(argument, &position, &item)) {
        char *name = json_string_text(item, NULL);
        fits = name && json_member(place->value, name).length > 0;
        free(name);
    }
    return fits_if(place, fits, "lacks a member that the schema requires");
}

/* Beside `properties` in the same schema; patternProperties is not known, so there is none. */
static enum input_schema_verdict check_additional(const struct place *place, struct str argument,
                                                  const struct keyword *keyword)
{
    struct str properties = json_member(place->schema, "properties"), key, value;
    size_t position = 0;
    enum input_schema_verdict verdict = INPUT_SCHEMA_FITS;
    while (verdict == INPUT_SCHEMA_FITS && json_type(place->value) == JSON_OBJECT &&
           json_next_member(place->value, &position, &key, &value)) {
        if (member_of(properties, key).length > 0)
            continue;
        verdict = json_type(argument) == JSON_FALSE
                      ? unfit(place, "has a member that the schema does not know")
                      : check_value(place->check, argument, value);
    }
    return verdict;
}

static enum input_schema_verdict check_items(const struct place *place, struct str argument,
                                             const struct keyword *keyword)
{
    size_t position = 0;
    struct str item;
    enum input_schema_verdict verdict = INPUT_SCHEMA_FITS;
    while (verdict == INPUT_SCHEMA_FITS && json_type(place->value) == JSON_ARRAY &&
           json_next_element(place->value, &position, &item))
        verdict = check_value(place->check, argument, item);
    return verdict;
}

/* ---- several schemas ---- */

static enum input_schema_verdict check_several(const struct place *place, struct str argument,
                                               const struct keyword *keyword)
{
    size_t position = 0, fitting = 0, all = 0;
    struct str schema;
    if (json_type(argument) != JSON_ARRAY)
        return INPUT_SCHEMA_UNKNOWN;
    for (; json_next_element(argument, &position, &schema); all++) {
        enum input_schema_verdict verdict = check_value(place->check, schema, place->value);
        if (verdict == INPUT_SCHEMA_UNKNOWN)
            return verdict;
        fitting += verdict == INPUT_SCHEMA_FITS;
    }
    bool fits = keyword->fitting == FITS_ALL   ? fitting == all
                : keyword->fitting == FITS_ANY ? fitting > 0
                                               : fitting == 1;
    return fits_if(place, fits, keyword->why);
}

/* "#/$defs/name": a path into the root, whose steps need no decoding. */
static enum input_schema_verdict check_ref(const struct place *place, struct str argument,
                                           const struct keyword *keyword)
{
    char *reference = json_string_text(argument, NULL);
    struct str target = place->check->root, step, rest;
    bool is_local = reference && strncmp(reference, "#/", 2) == 0 && !strpbrk(reference, "~%\\\"");
    rest = is_local ? str_from(reference + 2) : STR_EMPTY;
    while (rest.length > 0 && target.length > 0) {
        str_cut(rest, '/', &step, &rest);
        char *name = memory_copy_str(step);
        target = json_member(target, name);
        free(name);
    }
    free(reference);
    if (!is_local || target.length == 0)
        return unknown(place, STR("$ref"));
    return check_value(place->check, target, place->value);
}

static enum input_schema_verdict check_unique(const struct place *place, struct str argument,
                                              const struct keyword *keyword)
{
    bool matters = json_type(argument) != JSON_FALSE && json_type(place->value) == JSON_ARRAY &&
                   json_count(place->value) > 1;
    return matters ? unknown(place, STR("uniqueItems")) : INPUT_SCHEMA_FITS;
}

/* Another base for references. */
static enum input_schema_verdict check_id(const struct place *place, struct str argument,
                                          const struct keyword *keyword)
{
    (void)argument, (void)keyword;
    bool is_root = place->schema.bytes == place->check->root.bytes;
    return is_root ? INPUT_SCHEMA_FITS : unknown(place, STR("$id"));
}

/* ---- one schema ---- */

static const struct keyword keywords[] = {
    {"type", input_schema_check_type},
    {"enum", check_enum},
    {"const", check_const},
    {"minimum", input_schema_check_bound},
    {"maximum", input_schema_check_bound, .is_most = true},
    {"exclusiveMinimum", input_schema_check_bound, .is_exclusive = true},
    {"exclusiveMaximum", input_schema_check_bound, .is_most = true, .is_exclusive = true},
    {"minLength", check_size, .type = JSON_STRING},
    {"maxLength", check_size, .type = JSON_STRING, .is_most = true},
    {"minItems", check_size, .type = JSON_ARRAY},
    {"maxItems", check_size, .type = JSON_ARRAY, .is_most = true},
    {"minProperties", check_size, .type = JSON_OBJECT},
    {"maxProperties", check_size, .type = JSON_OBJECT, .is_most = true},
    {"properties", check_properties},
    {"required", input_schema_check_required},
    {"additionalProperties", check_additional},
    {"items", check_items},
    {"uniqueItems", check_unique},
    {"allOf", check_several, .fitting = FITS_ALL, .why = "does not fit all schemas of allOf"},
    {"anyOf", check_several, .fitting = FITS_ANY, .why = "fits no schema of anyOf"},
    {"oneOf", check_several, .fitting = FITS_ONE,
     .why = "does not fit exactly one schema of oneOf"},
    {"$ref", check_ref},
    {"$id", check_id},
    {"$schema", NULL},
    {"$comment", NULL},
    {"$defs", NULL},
    {"definitions", NULL},
    {"title", NULL},
    {"description", NULL},
    {"default", NULL},
    {"example", NULL},
    {"examples", NULL},
    {"deprecated", NULL},
    {"readOnly", NULL},
    {"writeOnly", NULL},
    {"format", NULL}, /* an annotation, as the standard has it */
    {"contentMediaType", NULL},
    {"contentEncoding", NULL},
};

static enum input_schema_verdict check_keyword(const struct place *place, struct str key,
                                               struct str argument)
{
    struct str quoted = str_slice(key.bytes - 1, key.length + 2);
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) {
        if (json_string_equals(quoted, str_from(keywords[i].name)))
            return keywords[i].check ? keywords[i].check(place, argument, &keywords[i])
                                     : INPUT_SCHEMA_FITS;
    }
    return str_starts_with(key, STR("x-")) ? INPUT_SCHEMA_FITS : unknown(place, key);
}

static enum input_schema_verdict check_keywords(struct check *check, struct str schema,
                                                struct str value)
{
    const struct place place = {check, schema, value};
    size_t position = 0;
    struct str key, argument;
    enum input_schema_verdict verdict = INPUT_SCHEMA_FITS;
    if (json_type(schema) == JSON_FALSE)
        return unfit(&place, "the schema allows no value here");
    if (json_type(schema) == JSON_TRUE)
        return INPUT_SCHEMA_FITS;
    check->work += schema.length + value.length;
    if (json_type(schema) != JSON_OBJECT || check->depth > MOST_DEPTH || check->work > MOST_WORK)
        return unknown(&place, STR("of a schema that is none"));
    while (verdict == INPUT_SCHEMA_FITS && json_next_member(schema, &position, &key, &argument))
        verdict = check_keyword(&place, key, argument);
    return verdict;
}

static enum input_schema_verdict check_value(struct check *check, struct str schema,
                                             struct str value)
{
    check->depth++;
    enum input_schema_verdict verdict = check_keywords(check, schema, value);
    ASSERT_NUMBERS(check->depth, >, 0);
    check->depth--;
    return verdict;
}

enum input_schema_verdict input_schema_check(struct str schema, struct str value,
                                             struct error *error)
{
    struct check check = {.root = str_trim(schema), .error = error};
    return check_value(&check, check.root, value);
}
