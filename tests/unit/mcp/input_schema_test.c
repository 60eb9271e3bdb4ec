/* Arguments beside schemas: what fits, what does not, and what is not guessed at. */
#include "mcp_test.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/input_schema.h"

#define FITS INPUT_SCHEMA_FITS
#define UNFIT INPUT_SCHEMA_UNFIT
#define UNKNOWN INPUT_SCHEMA_UNKNOWN

static const struct {
    const char *schema, *value;
    enum input_schema_verdict verdict;
} rows[] = {
    {"{}", "{\"a\":1}", FITS},
    {"true", "1", FITS},
    {"false", "1", UNFIT},
    {"{\"type\":\"object\"}", "{}", FITS},
    {"{\"type\":\"object\"}", "[]", UNFIT},
    {"{\"type\":[\"string\",\"null\"]}", "null", FITS},
    {"{\"type\":[\"string\",\"null\"]}", "1", UNFIT},
    {"{\"type\":\"integer\"}", "2.0", FITS},
    {"{\"type\":\"integer\"}", "2.5", UNFIT},
    {"{\"type\":\"integer\"}", "-12345678901234567890123", FITS},
    {"{\"type\":\"boolean\"}", "false", FITS},
    {"{\"enum\":[1,\"a\",{\"b\":[2]}]}", "{ \"b\" : [ 2 ] }", FITS},
    {"{\"enum\":[1,\"a\"]}", "1.0", FITS},
    {"{\"enum\":[1,\"a\"]}", "\"b\"", UNFIT},
    {"{\"const\":\"x\"}", "\"\\u0078\"", FITS},
    {"{\"const\":\"x\"}", "\"y\"", UNFIT},
    {"{\"minimum\":1,\"maximum\":3}", "3", FITS},
    {"{\"minimum\":1,\"maximum\":3}", "3.5", UNFIT},
    {"{\"exclusiveMinimum\":1}", "1", UNFIT},
    {"{\"exclusiveMaximum\":9007199254740992}", "9007199254740991", FITS},
    {"{\"exclusiveMaximum\":true,\"maximum\":3}", "2", UNKNOWN},
    {"{\"minLength\":2,\"maxLength\":2}", "\"\\u00e4\xc3\xa4\"", FITS},
    {"{\"maxLength\":1}", "\"ab\"", UNFIT},
    {"{\"maxLength\":1}", "17", FITS},
    {"{\"minItems\":1}", "[]", UNFIT},
    {"{\"maxProperties\":1}", "{\"a\":1,\"b\":2}", UNFIT},
    {"{\"properties\":{\"a\":{\"type\":\"string\"}}}", "{\"a\":1}", UNFIT},
    {"{\"properties\":{\"a\":{\"type\":\"string\"}}}", "{\"\\u0061\":1}", UNFIT},
    {"{\"properties\":{\"a\":{\"pattern\":\"x\"}}}", "{\"b\":1}", FITS},
    {"{\"properties\":{\"a\":{\"pattern\":\"x\"}}}", "{\"a\":1}", UNKNOWN},
    {"{\"required\":[\"a\"]}", "{\"b\":1}", UNFIT},
    {"{\"properties\":{\"a\":{}},\"additionalProperties\":false}", "{\"a\":1}", FITS},
    {"{\"properties\":{\"a\":{}},\"additionalProperties\":false}", "{\"A\":1}", UNFIT},
    {"{\"additionalProperties\":{\"type\":\"string\"}}", "{\"a\":1}", UNFIT},
    {"{\"items\":{\"type\":\"string\"}}", "[\"a\",1]", UNFIT},
    {"{\"items\":[{\"type\":\"string\"}]}", "[\"a\"]", UNKNOWN},
    {"{\"uniqueItems\":true}", "[1]", FITS},
    {"{\"uniqueItems\":true}", "[1,2]", UNKNOWN},
    {"{\"allOf\":[{\"type\":\"number\"},{\"minimum\":2}]}", "1", UNFIT},
    {"{\"anyOf\":[{\"type\":\"string\"},{\"minimum\":2}]}", "3", FITS},
    {"{\"anyOf\":[{\"type\":\"string\"},{\"minimum\":2}]}", "1", UNFIT},
    {"{\"anyOf\":[{\"type\":\"string\"},{\"format\":\"x\",\"not\":{}}]}", "1", UNKNOWN},
    {"{\"oneOf\":[{\"minimum\":1},{\"minimum\":2}]}", "1", FITS},
    {"{\"oneOf\":[{\"minimum\":1},{\"minimum\":2}]}", "3", UNFIT},
    {"{\"$defs\":{\"n\":{\"type\":\"null\"}},\"items\":{\"$ref\":\"#/$defs/n\"}}", "[null,1]",
     UNFIT},
    {"{\"$ref\":\"#/$defs/gone\"}", "1", UNKNOWN},
    {"{\"$ref\":\"https://x.example/s\"}", "1", UNKNOWN},
    {"{\"$defs\":{\"r\":{\"$ref\":\"#/$defs/r\"}},\"$ref\":\"#/$defs/r\"}", "1", UNKNOWN},
    {"{\"$defs\":{\"r\":{\"anyOf\":[{\"$ref\":\"#/$defs/r\"},{\"$ref\":\"#/$defs/r\"}]}},"
     "\"$ref\":\"#/$defs/r\"}",
     "1", UNKNOWN},
    {"{\"title\":\"t\",\"x-own\":{},\"format\":\"date\",\"$id\":\"i\"}", "1", FITS},
    {"{\"items\":{\"$id\":\"i\"}}", "[1]", UNKNOWN},
    {"{\"patternProperties\":{}}", "{}", UNKNOWN},
    {"{\"if\":{},\"then\":false}", "1", UNKNOWN},
};

START_TEST(values_fit_or_do_not_or_are_not_guessed_at)
{
    struct error error = {""};
    ck_assert(json_check(str_from(rows[_i].schema), NULL));
    ck_assert(json_check(str_from(rows[_i].value), NULL));
    ck_assert_int_eq(
        input_schema_check(str_from(rows[_i].schema), str_from(rows[_i].value), &error),
        rows[_i].verdict);
    /* A schema of anyOf may have refused before another one fitted. */
    ck_assert(error.message[0] != '\0' || rows[_i].verdict == FITS);
}
END_TEST

START_TEST(an_error_says_where)
{
    struct error error = {""};
    input_schema_check(STR("{\"properties\":{\"a\":{\"properties\":{\"b\":{\"maximum\":1}}}}}"),
                       STR("{\"a\":{\"b\":2}}"), &error);
    ck_assert_str_eq(error.message, "a: b: is too large");
}
END_TEST

Suite *input_schema_suite(void)
{
    Suite *suite = suite_create("input schema");
    TCase *tests = tcase_create("input schema");
    tcase_add_loop_test(tests, values_fit_or_do_not_or_are_not_guessed_at, 0,
                        sizeof rows / sizeof *rows);
    tcase_add_test(tests, an_error_says_where);
    suite_add_tcase(suite, tests);
    return suite;
}
