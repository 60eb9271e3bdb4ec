/* `x-mcp-header` of a schema, and Mcp-Param-* of a call. */
#include "mcp_test.h"

#include <string.h>

#include "../../../src/mcp/exact_integer.h"
#include "taskgate/mcp/parameter_headers.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define REGION "\"region\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"}"

static const struct {
    const char *schema;
    enum parameter_headers_status status;
    const char *error;
} schemas[] = {
    {"{}", PARAMETER_HEADERS_NONE, ""},
    {"true", PARAMETER_HEADERS_NONE, ""},
    {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}}", PARAMETER_HEADERS_NONE,
     ""},
    {"{\"properties\":{" REGION "}}", PARAMETER_HEADERS_SOME, ""},
    {"{\"properties\":{\"o\":{\"properties\":{" REGION "}}}}", PARAMETER_HEADERS_SOME, ""},
    {"{\"propert\\u0069es\":{\"n\":{\"type\":\"integer\",\"x-mcp-h\\u0065ader\":\"N\"}}}",
     PARAMETER_HEADERS_SOME, ""},
    /* A property of that name, and data that has it, are no keyword. */
    {"{\"properties\":{\"x-mcp-header\":{\"type\":\"string\"}}}", PARAMETER_HEADERS_NONE, ""},
    {"{\"default\":{\"x-mcp-header\":\"A\"},\"$defs\":{\"x-mcp-header\":{}}}",
     PARAMETER_HEADERS_NONE, ""},
    {"{\"properties\":{\"a\":{\"type\":\"number\",\"x-mcp-header\":\"A\"}}}",
     PARAMETER_HEADERS_INVALID, "x-mcp-header A: the type must be string, integer or boolean"},
    {"{\"properties\":{\"a\":{\"x-mcp-header\":\"A\"}}}", PARAMETER_HEADERS_INVALID,
     "x-mcp-header A: the type must be string, integer or boolean"},
    {"{\"properties\":{\"a\":{\"type\":[\"string\"],\"x-mcp-header\":\"A\"}}}",
     PARAMETER_HEADERS_INVALID, "x-mcp-header A: the type must be string, integer or boolean"},
    {"{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"\"}}}",
     PARAMETER_HEADERS_INVALID, "x-mcp-header must be a token of RFC 9110"},
    {"{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"a b\"}}}",
     PARAMETER_HEADERS_INVALID, "x-mcp-header must be a token of RFC 9110"},
    {"{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"a\\u0000\"}}}",
     PARAMETER_HEADERS_INVALID, "x-mcp-header must be a token of RFC 9110"},
    {"{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":7}}}", PARAMETER_HEADERS_INVALID,
     "x-mcp-header must be a token of RFC 9110"},
    {"{\"properties\":{" REGION ",\"b\":{\"type\":\"string\",\"x-mcp-header\":\"REGION\"}}}",
     PARAMETER_HEADERS_INVALID, "x-mcp-header REGION is there twice"},
    {"{\"properties\":{\"a\\u0000b\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}}",
     PARAMETER_HEADERS_INVALID, "x-mcp-header A: the property's name has a NUL"},
    {"{\"x-mcp-header\":\"A\",\"type\":\"string\"}", PARAMETER_HEADERS_INVALID,
     "x-mcp-header must be at a property"},
    {"{\"anyOf\":[{\"properties\":{" REGION "}}]}", PARAMETER_HEADERS_INVALID,
     "x-mcp-header must be reached through `properties` alone"},
    {"{\"$defs\":{\"d\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}}", PARAMETER_HEADERS_INVALID,
     "x-mcp-header must be reached through `properties` alone"},
    {"{\"properties\":{\"l\":{\"items\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}}}",
     PARAMETER_HEADERS_INVALID, "x-mcp-header must be reached through `properties` alone"},
};

START_TEST(a_schema_names_its_headers)
{
    struct parameter_headers *headers;
    struct error error;
    enum parameter_headers_status status =
        parameter_headers_create(str_from(schemas[_i].schema), &headers, &error);
    ck_assert_msg(status == schemas[_i].status, "%s: %s", schemas[_i].schema, error.message);
    ck_assert_str_eq(error.message, schemas[_i].error);
    ck_assert_int_eq(headers != NULL, status == PARAMETER_HEADERS_SOME);
    parameter_headers_destroy(headers);
}
END_TEST

/* The headers of a tool are compared with each other, and looked for in each call. */
START_TEST(a_tool_has_at_most_64_headers)
{
    for (int count = 64; count <= 65; count++) {
        struct parameter_headers *headers;
        struct error error;
        struct buffer schema;
        buffer_init(&schema);
        buffer_append_text(&schema, "{\"properties\":{");
        for (int i = 0; i < count; i++)
            buffer_append_format(&schema,
                                 "%s\"p%d\":{\"type\":\"string\",\"x-mcp-header\":\"H%d\"}",
                                 i ? "," : "", i, i);
        buffer_append_text(&schema, "}}");
        ck_assert_int_eq(parameter_headers_create(buffer_str(&schema), &headers, &error),
                         count == 64 ? PARAMETER_HEADERS_SOME : PARAMETER_HEADERS_INVALID);
        ck_assert_str_eq(error.message,
                         count == 64 ? "" : "more than 64 properties have an x-mcp-header");
        parameter_headers_destroy(headers);
        buffer_finish(&schema);
    }
}
END_TEST

#define SCHEMA                                                                                     \
    "{\"properties\":{" REGION ",\"o\":{\"properties\":{\"n\":{\"type\":\"integer\","              \
    "\"x-mcp-header\":\"N\"},\"b\":{\"type\":\"boolean\",\"x-mcp-header\":\"B\"}}}}}"

/* The headers of a request: up to two, "name" and "value". */
static const struct {
    const char *arguments;
    const char *headers[3][2];
    enum mirrored_verdict verdict;
    const char *name;
} calls[] = {
    {"{}", {{0}}, MIRRORED_SAME, NULL},
    {"", {{0}}, MIRRORED_SAME, NULL},
    {"{\"region\":\"eu\"}", {{"REGION", "eu"}}, MIRRORED_SAME, NULL},
    {"{\"region\":\"eu\"}", {{"region", "=?base64?ZXU=?="}}, MIRRORED_SAME, NULL},
    {"{\"region\":\"\\u0065u\"}", {{"region", " eu "}}, MIRRORED_SAME, NULL},
    {"{\"region\":\"eu\"}", {{"region", "us"}}, MIRRORED_DIFFERENT, "Region"},
    {"{\"region\":\"eu\"}", {{"region", "EU"}}, MIRRORED_DIFFERENT, "Region"},
    {"{\"region\":\"eu\"}", {{"region", "=?base64?ZXV=?="}}, MIRRORED_UNDECODABLE, "Region"},
    {"{\"region\":\"eu\"}", {{0}}, MIRRORED_MISSING, "Region"},
    {"{\"region\":\"eu\"}", {{"region", "eu"}, {"Region", "eu"}}, MIRRORED_REPEATED, "Region"},
    {"{\"region\":null}", {{0}}, MIRRORED_SAME, NULL},
    {"{\"region\":null}", {{"region", "null"}}, MIRRORED_UNEXPECTED, "Region"},
    {"{}", {{"region", "eu"}}, MIRRORED_UNEXPECTED, "Region"},
    {"{}", {{"other", "eu"}}, MIRRORED_SAME, NULL},
    {"{\"region\":{\"a\":1}}", {{"region", "{\"a\":1}"}}, MIRRORED_DIFFERENT, "Region"},
    {"{\"region\":7}", {{"region", "7"}}, MIRRORED_SAME, NULL},
    {"{\"region\":7}", {{"region", "8"}}, MIRRORED_DIFFERENT, "Region"},
    {"{\"o\":{\"n\":42}}", {{"n", "42"}}, MIRRORED_SAME, NULL},
    {"{\"o\":{\"n\":42}}", {{"n", "42.0"}}, MIRRORED_SAME, NULL},
    {"{\"o\":{\"n\": 4.2e1 }}", {{"n", "42"}}, MIRRORED_SAME, NULL},
    {"{\"o\":{\"n\":42}}", {{"n", "=?base64?NDI=?="}}, MIRRORED_SAME, NULL},
    {"{\"o\":{\"n\":42}}", {{"n", "4.2e1"}}, MIRRORED_DIFFERENT, "N"},
    {"{\"o\":{\"n\":42}}", {{"n", "0x2a"}}, MIRRORED_DIFFERENT, "N"},
    {"{\"o\":{\"n\":42}}", {{"n", ""}}, MIRRORED_DIFFERENT, "N"},
    {"{\"o\":{\"n\":9007199254740993}}", {{"n", "9007199254740992"}}, MIRRORED_DIFFERENT, "N"},
    {"{\"o\":{\"b\":true}}", {{"b", "true"}}, MIRRORED_SAME, NULL},
    {"{\"o\":{\"b\":true}}", {{"b", "false"}}, MIRRORED_DIFFERENT, "B"},
    {"{\"o\":{\"b\":false}}", {{"b", "0"}}, MIRRORED_DIFFERENT, "B"},
    {"{\"o\":7}", {{"n", "7"}}, MIRRORED_UNEXPECTED, "N"},
};

static struct mirrored_header find(void *request, struct str name)
{
    const char *const(*headers)[2] = request;
    struct mirrored_header found = {0};
    for (size_t i = 0; i < 3 && headers[i][0]; i++) {
        if (str_equal_ignore_case(str_from(headers[i][0]), name))
            mirrored_header_add(&found, str_from(headers[i][1]));
    }
    return found;
}

START_TEST(a_call_says_the_same_in_both_places)
{
    struct parameter_headers *headers;
    struct str name = STR_EMPTY;
    ck_assert_int_eq(parameter_headers_create(STR(SCHEMA), &headers, NULL), PARAMETER_HEADERS_SOME);
    enum mirrored_verdict verdict = parameter_headers_check(headers, str_from(calls[_i].arguments),
                                                            find, (void *)calls[_i].headers, &name);
    ck_assert_msg(verdict == calls[_i].verdict, "%s: %s", calls[_i].arguments,
                  mirrored_verdict_text(verdict));
    if (calls[_i].name)
        expect_str(name, calls[_i].name);
    parameter_headers_destroy(headers);
}
END_TEST

static const struct {
    const char *text;
    bool allows_exponent, good;
    int64_t value;
} numbers[] = {
    {"0", false, true, 0},
    {"-0", false, true, 0},
    {"007", false, true, 7},
    {"-17", false, true, -17},
    {"100", false, true, 100},
    {"1200.00", false, true, 1200},
    {"0.0", false, true, 0},
    {"1.5", false, false, 0},
    {"1.", false, false, 0},
    {".5", false, false, 0},
    {"", false, false, 0},
    {"-", false, false, 0},
    {"+1", false, false, 0},
    {"1 ", false, false, 0},
    {"1e2", false, false, 0},
    {"1e2", true, true, 100},
    {"1.25e2", true, true, 125},
    {"1.25E+2", true, true, 125},
    {"1.25e1", true, false, 0},
    {"1200e-2", true, true, 12},
    {"1200e-3", true, false, 0},
    {"1e", true, false, 0},
    {"0e99999999999999999999", true, true, 0},
    {"1e99999999999999999999", true, false, 0},
    {"9007199254740991", false, true, INT64_C(9007199254740991)},
    {"-9007199254740991.0", false, true, -INT64_C(9007199254740991)},
    {"9007199254740992", false, false, 0},
    {"90071992547409910", false, false, 0},
    {"10000000000000000000000000000000", false, false, 0},
    {"0.00000000000000000000000000000001", false, false, 0},
};

START_TEST(integers_are_read_exactly)
{
    int64_t value = 0;
    bool good = exact_integer_read(str_from(numbers[_i].text), numbers[_i].allows_exponent, &value);
    ck_assert_msg(good == numbers[_i].good, "%s", numbers[_i].text);
    if (good)
        ck_assert_int_eq(value, numbers[_i].value);
}
END_TEST

Suite *parameter_headers_suite(void)
{
    Suite *suite = suite_create("parameter_headers");
    TCase *tests = tcase_create("parameter_headers");
    tcase_add_loop_test(tests, a_schema_names_its_headers, 0, (int)COUNT_OF(schemas));
    tcase_add_test(tests, a_tool_has_at_most_64_headers);
    tcase_add_loop_test(tests, a_call_says_the_same_in_both_places, 0, (int)COUNT_OF(calls));
    tcase_add_loop_test(tests, integers_are_read_exactly, 0, (int)COUNT_OF(numbers));
    suite_add_tcase(suite, tests);
    return suite;
}
