/* The agent's reason: in the schemas of tools, and in arguments of all shapes. */
#include "mcp_test.h"

#include "taskgate/json/text.h"
#include "taskgate/mcp/reason_property.h"

static const struct {
    const char *schema;
    bool fits;
} schemas[] = {
    {"{\"type\":\"object\"}", true},
    {"{\"type\":\"object\",\"properties\":{\"a\":{}},\"required\":[\"a\"]}", true},
    {"{\"type\":\"object\",\"properties\":{\"nested\":{\"taskgate_reason\":{}}}}", true},
    {"{\"type\":\"object\",\"properties\":{\"taskgate_reason\":{}}}", false},
    {"{\"type\":\"object\",\"properties\":{\"taskgate\\u005freason\":{}}}", false},
    {"{\"type\":\"object\",\"properties\":[]}", false},
    {"{\"type\":\"object\",\"required\":\"a\"}", false},
    {"{\"type\":\"string\"}", false},
    {"{\"type\":[\"object\",\"null\"]}", false},
    {"{}", false},
    {"[]", false},
    {"true", false},
    {"", false},
};

START_TEST(test_only_the_schema_of_an_object_without_it_fits)
{
    ck_assert_msg(reason_property_fits(str_from(schemas[_i].schema)) == schemas[_i].fits, "%s",
                  schemas[_i].schema);
}
END_TEST

#define PROPERTY                                                                                   \
    "\"taskgate_reason\":{\"type\":\"string\",\"minLength\":10,\"maxLength\":500,"                 \
    "\"description\":\"Why you make this call, for the person who decides on it.\"}"

static const struct {
    const char *schema;
    bool is_required;
    const char *written;
} writings[] = {
    {"{\"type\":\"object\"}", false, "{\"type\":\"object\",\"properties\":{" PROPERTY "}}"},
    {"{\"type\":\"object\"}", true,
     "{\"type\":\"object\",\"properties\":{" PROPERTY "},\"required\":[\"taskgate_reason\"]}"},
    {"{ \"required\" : [\"a\", \"b\"],\"type\":\"object\",\"properties\":{\"a\":{}} }", true,
     "{ \"required\" : [\"a\",\"b\",\"taskgate_reason\"],\"type\":\"object\",\"properties\":"
     "{\"a\":{}," PROPERTY "} }"},
};

START_TEST(test_the_property_is_added_to_the_schema)
{
    struct buffer out;
    buffer_init(&out);
    reason_property_write(&out, str_from(writings[_i].schema), writings[_i].is_required);
    expect_str(buffer_str(&out), writings[_i].written);
    buffer_finish(&out);
}
END_TEST

static const struct {
    const char *arguments;
    enum reason_property verdict;
    const char *reason, *rest; /* when it is good; what is left without the member */
} calls[] = {
    {"{\"taskgate_reason\":\"because of it\"}", REASON_PROPERTY_GOOD, "because of it", "{}"},
    {"{\"taskgate_reason\":\"because of it\",\"a\":1}", REASON_PROPERTY_GOOD, "because of it",
     "{\"a\":1}"},
    {"{\"a\":1 , \"taskgate_reason\" : \" \\n0123456789\\t\" }", REASON_PROPERTY_GOOD, "0123456789",
     "{\"a\":1 }"},
    {"{\"a\":1,\"taskgate\\u005Freason\":\"\\u00e4123456789\",\"b\":2}", REASON_PROPERTY_GOOD,
     "ä123456789", "{\"a\":1,\"b\":2}"},
    {"{\"a\":{\"taskgate_reason\":\"because of it\"}}", REASON_PROPERTY_ABSENT, NULL,
     "{\"a\":{\"taskgate_reason\":\"because of it\"}}"},
    {"{\"a\":\"\\\"taskgate_reason\\\":1\"}", REASON_PROPERTY_ABSENT, NULL, NULL},
    {"{\"taskgate_reason \":\"because of it\"}", REASON_PROPERTY_ABSENT, NULL, NULL},
    {"{\"taskgate_reason\\u0000\":\"because of it\"}", REASON_PROPERTY_ABSENT, NULL, NULL},
    {"{}", REASON_PROPERTY_ABSENT, NULL, NULL},
    {"", REASON_PROPERTY_ABSENT, NULL, NULL},
    {"{\"taskgate_reason\":\"   012345678   \"}", REASON_PROPERTY_BAD, NULL, NULL},
    {"{\"taskgate_reason\":\"0123456789\\u0000\"}", REASON_PROPERTY_BAD, NULL, NULL},
    {"{\"taskgate_reason\":\"\"}", REASON_PROPERTY_BAD, NULL, NULL},
    {"{\"taskgate_reason\":null}", REASON_PROPERTY_BAD, NULL, NULL},
    {"{\"taskgate_reason\":1234567890123}", REASON_PROPERTY_BAD, NULL, NULL},
    {"{\"taskgate_reason\":[\"because of it\"]}", REASON_PROPERTY_BAD, NULL, NULL},
    {"{\"taskgate_reason\":{\"a\":\"because of it\"}}", REASON_PROPERTY_BAD, NULL, NULL},
};

START_TEST(test_the_member_is_read_and_taken_out_however_it_is_written)
{
    struct str arguments = str_from(calls[_i].arguments);
    struct buffer reason, rest;
    buffer_init(&reason);
    buffer_init(&rest);
    ck_assert_int_eq(reason_property_read(arguments, &reason), calls[_i].verdict);
    expect_str(buffer_str(&reason), calls[_i].reason ? calls[_i].reason : "");
    if (calls[_i].rest) {
        json_write_without_member(&rest, arguments, REASON_PROPERTY);
        expect_str(buffer_str(&rest), calls[_i].rest);
    }
    buffer_finish(&rest);
    buffer_finish(&reason);
}
END_TEST

START_TEST(test_the_length_is_that_of_characters)
{
    for (int count = 499; count <= 501; count++) {
        struct buffer arguments, reason;
        buffer_init(&arguments);
        buffer_init(&reason);
        buffer_append_text(&arguments, "{\"taskgate_reason\":\"");
        for (int i = 0; i < count; i++)
            buffer_append_text(&arguments, "é");
        buffer_append_text(&arguments, "\"}");
        ck_assert_int_eq(reason_property_read(buffer_str(&arguments), &reason),
                         count <= REASON_PROPERTY_MOST ? REASON_PROPERTY_GOOD
                                                       : REASON_PROPERTY_BAD);
        buffer_finish(&reason);
        buffer_finish(&arguments);
    }
}
END_TEST

Suite *reason_property_suite(void)
{
    Suite *suite = suite_create("reason_property");
    TCase *tests = tcase_create("reason_property");
    tcase_add_loop_test(tests, test_only_the_schema_of_an_object_without_it_fits, 0,
                        sizeof schemas / sizeof *schemas);
    tcase_add_loop_test(tests, test_the_property_is_added_to_the_schema, 0,
                        sizeof writings / sizeof *writings);
    tcase_add_loop_test(tests, test_the_member_is_read_and_taken_out_however_it_is_written, 0,
                        sizeof calls / sizeof *calls);
    tcase_add_test(tests, test_the_length_is_that_of_characters);
    suite_add_tcase(suite, tests);
    return suite;
}
