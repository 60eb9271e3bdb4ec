/* Answers to forms: fitting ones, and the messages for others. */
#include "mcp_test.h"

#include "../scaling.h"

#include "taskgate/mcp/elicitation.h"

#define FORM(members) "{\"type\":\"object\",\"properties\":{" members "}}"

static const struct {
    const char *schema, *content;
    const char *problem; /* NULL: it fits */
} answers[] = {
    {FORM(""), "", NULL},
    {FORM(""), "{}", NULL},
    {FORM("\"\\u0061\":{\"type\":\"string\"}"), "{\"a\":1}", "content.a must be a string"},
    {"{\"required\":[\"\\u0061\"]}", "{\"a\":1}", NULL},
    {"{\"required\":[\"a\\u0000b\"]}", "{\"a\":1}", "content.a is required"},
    {FORM(""), "[]", "content must be an object"},
    {FORM(""), "\"text\"", "content must be an object"},
    {FORM(""), "null", "content must be an object"},
    {FORM(""), "{\"more\":1}", NULL},
    {FORM(""), "{\"more\":{}}",
     "content.more must be a text, a number, a boolean or a list of texts"},
    {FORM(""), "{\"more\":null}",
     "content.more must be a text, a number, a boolean or a list of texts"},
    {FORM(""), "{\"more\":[1]}",
     "content.more must be a text, a number, a boolean or a list of texts"},
    {"{\"additionalProperties\":false,\"properties\":{\"a\":{\"type\":\"string\"}}}",
     "{\"a\":\"x\",\"b\":1}", "content.b is not asked for"},
    {"{\"properties\":{\"a\":{}},\"required\":[\"a\"]}", "{}", "content.a is required"},
    {"{\"properties\":{\"a\":{}},\"required\":[\"a\"]}", "{\"a\":false}", NULL},
    {"{\"properties\":{\"a\":{}},\"required\":[\"a\"]}", "", "content.a is required"},
    /* texts */
    {FORM("\"a\":{\"type\":\"string\"}"), "{\"a\":\"\"}", NULL},
    {FORM("\"a\":{\"type\":\"string\"}"), "{\"a\":1}", "content.a must be a string"},
    {FORM("\"a\":{\"type\":\"string\"}"), "{\"\\u0061\":1}", "content.\\u0061 must be a string"},
    {FORM("\"a\":{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}"), "{\"a\":\"x\"}",
     "content.a is too short or too long"},
    {FORM("\"a\":{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}"),
     "{\"a\":\"\\u00e9\xc3\xa9\xc3\xa9\"}", NULL},
    {FORM("\"a\":{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}"), "{\"a\":\"wxyz\"}",
     "content.a is too short or too long"},
    {FORM("\"a\":{\"type\":\"string\",\"enum\":[\"r\",\"g\"]}"), "{\"a\":\"g\"}", NULL},
    {FORM("\"a\":{\"type\":\"string\",\"enum\":[\"r\",\"g\"]}"), "{\"a\":\"b\"}",
     "content.a is none of the choices"},
    {FORM("\"a\":{\"type\":\"string\",\"enum\":[]}"), "{\"a\":\"b\"}",
     "content.a is none of the choices"},
    {FORM("\"a\":{\"type\":\"string\",\"oneOf\":[{\"const\":\"r\",\"title\":\"Red\"}]}"),
     "{\"a\":\"r\"}", NULL},
    {FORM("\"a\":{\"type\":\"string\",\"oneOf\":[{\"const\":\"r\",\"title\":\"Red\"}]}"),
     "{\"a\":\"Red\"}", "content.a is none of the choices"},
    /* numbers */
    {FORM("\"a\":{\"type\":\"number\",\"minimum\":1,\"maximum\":20}"), "{\"a\":4}", NULL},
    {FORM("\"a\":{\"type\":\"number\",\"minimum\":1,\"maximum\":20}"), "{\"a\":1.5}", NULL},
    {FORM("\"a\":{\"type\":\"number\",\"minimum\":1,\"maximum\":20}"), "{\"a\":0.5}",
     "content.a is out of range"},
    {FORM("\"a\":{\"type\":\"number\",\"minimum\":1,\"maximum\":20}"), "{\"a\":1e999}",
     "content.a is out of range"},
    {FORM("\"a\":{\"type\":\"number\"}"), "{\"a\":\"4\"}", "content.a must be a number"},
    {FORM("\"a\":{\"type\":\"integer\"}"), "{\"a\":4.0}", NULL},
    {FORM("\"a\":{\"type\":\"integer\"}"), "{\"a\":-4}", NULL},
    {FORM("\"a\":{\"type\":\"integer\"}"), "{\"a\":123456789012345678901234567890}", NULL},
    {FORM("\"a\":{\"type\":\"integer\"}"), "{\"a\":4.5}", "content.a must be an integer"},
    {FORM("\"a\":{\"type\":\"integer\"}"), "{\"a\":true}", "content.a must be an integer"},
    /* yes or no */
    {FORM("\"a\":{\"type\":\"boolean\"}"), "{\"a\":false}", NULL},
    {FORM("\"a\":{\"type\":\"boolean\"}"), "{\"a\":\"true\"}", "content.a must be true or false"},
    /* several of a choice */
    {FORM("\"a\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"enum\":[\"r\",\"g\"]},"
          "\"minItems\":1,\"maxItems\":2}"),
     "{\"a\":[\"r\",\"g\"]}", NULL},
    {FORM("\"a\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"enum\":[\"r\",\"g\"]},"
          "\"minItems\":1,\"maxItems\":2}"),
     "{\"a\":[]}", "content.a has too few or too many items"},
    {FORM("\"a\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"enum\":[\"r\",\"g\"]}}"),
     "{\"a\":[\"b\"]}", "content.a is none of the choices"},
    {FORM("\"a\":{\"type\":\"array\",\"items\":{\"anyOf\":[{\"const\":\"r\",\"title\":\"Red\"}]}}"),
     "{\"a\":[\"r\"]}", NULL},
    {FORM("\"a\":{\"type\":\"array\",\"items\":{\"anyOf\":[{\"const\":\"r\",\"title\":\"Red\"}]}}"),
     "{\"a\":[\"x\"]}", "content.a is none of the choices"},
    {FORM("\"a\":{\"type\":\"array\",\"items\":{}}"), "{\"a\":\"r\"}", "content.a must be a list"},
};

START_TEST(an_answer_fits_the_form_or_is_told_why_not)
{
    struct error error = {""};
    bool fits = elicitation_check_content(str_from(answers[_i].schema),
                                          str_from(answers[_i].content), &error);
    ck_assert_str_eq(error.message, answers[_i].problem ? answers[_i].problem : "");
    ck_assert(fits == !answers[_i].problem);
}
END_TEST

static const struct {
    const char *format, *text;
    bool has;
} formats[] = {
    {"email", "a@b.c", true},
    {"email", "a@b@c", false},
    {"email", "@b", false},
    {"email", "a@", false},
    {"email", "a b@c", false},
    {"email", "a@.c", false},
    {"uri", "https://example.com/x?y#z", true},
    {"uri", "urn:isbn:1", true},
    {"uri", "/path", false},
    {"uri", "1a:b", false},
    {"uri", "a:", false},
    {"uri", "a:<b>", false},
    {"date", "2024-02-29", true},
    {"date", "2023-02-29", false},
    {"date", "1900-02-29", false},
    {"date", "2024-13-01", false},
    {"date", "2024-00-01", false},
    {"date", "2024-1-1", false},
    {"date", "2024-01-01T00:00:00Z", false},
    {"date-time", "2024-01-01T00:00:00Z", true},
    {"date-time", "2024-01-01t23:59:60.123+05:30", true},
    {"date-time", "2024-01-01T24:00:00Z", false},
    {"date-time", "2024-01-01T00:00:00", false},
    {"date-time", "2024-01-01T00:00:00.Z", false},
    {"date-time", "2024-01-01T00:00:00+24:00", false},
    {"date-time", "2024-01-01", false},
    {"of its own", "anything", true},
};

START_TEST(formats_are_told_apart)
{
    struct buffer schema = {0}, content = {0};
    struct error error = {""};
    buffer_append_format(&schema, FORM("\"a\":{\"type\":\"string\",\"format\":\"%s\"}"),
                         formats[_i].format);
    buffer_append_format(&content, "{\"a\":\"%s\"}", formats[_i].text);
    ck_assert_msg(elicitation_check_content(buffer_str(&schema), buffer_str(&content), &error) ==
                      formats[_i].has,
                  "%s: %s", formats[_i].format, formats[_i].text);
    ck_assert_str_eq(error.message,
                     formats[_i].has ? "" : "content.a is not of the format asked for");
    buffer_finish(&schema);
    buffer_finish(&content);
}
END_TEST

START_TEST(actions_are_three_words)
{
    enum elicitation_action action = ELICITATION_CANCEL;
    ck_assert(elicitation_action_parse(STR("\"accept\""), &action));
    ck_assert_int_eq(action, ELICITATION_ACCEPT);
    ck_assert(elicitation_action_parse(STR("\"decline\""), &action));
    ck_assert_int_eq(action, ELICITATION_DECLINE);
    ck_assert(elicitation_action_parse(STR("\"cancel\""), &action));
    ck_assert_str_eq(elicitation_action_name(action), "cancel");
    ck_assert(!elicitation_action_parse(STR("\"Accept\""), &action));
    ck_assert(!elicitation_action_parse(STR("true"), &action));
    ck_assert(!elicitation_action_parse(STR_EMPTY, &action));
}
END_TEST

START_TEST(a_visit_is_told_from_a_form)
{
    ck_assert(elicitation_is_url(STR("{\"mode\":\"url\",\"url\":\"https://a\"}")));
    ck_assert(!elicitation_is_url(STR("{\"mode\":\"form\"}")));
    ck_assert(!elicitation_is_url(STR("{\"message\":\"?\"}")));
}
END_TEST

typedef bool (*request_check)(struct str params, struct error *error);

static const struct {
    request_check check;
    const char *params, *problem; /* NULL: it asks for something */
} requests[] = {
    {elicitation_check_request, "{\"message\":\"?\",\"requestedSchema\":{}}", NULL},
    {elicitation_check_request, "{\"mode\":\"form\",\"message\":\"\",\"requestedSchema\":{}}",
     NULL},
    {elicitation_check_request,
     "{\"mode\":\"url\",\"message\":\"?\",\"url\":\"https://a\",\"elicitationId\":\"1\"}", NULL},
    {elicitation_check_request, "", "params must be an object"},
    {elicitation_check_request, "[]", "params must be an object"},
    {elicitation_check_request, "{\"requestedSchema\":{}}", "params.message must be a string"},
    {elicitation_check_request, "{\"message\":\"?\"}", "params.requestedSchema must be an object"},
    {elicitation_check_request, "{\"message\":\"?\",\"requestedSchema\":\"x\"}",
     "params.requestedSchema must be an object"},
    {elicitation_check_request, "{\"message\":\"?\",\"mode\":\"x\"}",
     "params.mode must be form or url"},
    {elicitation_check_request, "{\"message\":\"?\",\"mode\":\"url\",\"elicitationId\":\"1\"}",
     "params.url must be a string"},
    {elicitation_check_request, "{\"message\":\"?\",\"mode\":\"url\",\"url\":\"https://a\"}",
     "params.elicitationId must be a string"},
    {sampling_check_request, "{\"messages\":[],\"maxTokens\":1}", NULL},
    {sampling_check_request,
     "{\"messages\":[{\"role\":\"user\",\"content\":{}},{\"role\":\"assistant\",\"content\":[]}],"
     "\"maxTokens\":1}",
     NULL},
    {sampling_check_request, "", "params must be an object"},
    {sampling_check_request, "{\"maxTokens\":1}", "params.messages must be an array"},
    {sampling_check_request, "{\"messages\":[]}", "params.maxTokens must be a number"},
    {sampling_check_request,
     "{\"messages\":[{\"role\":\"system\",\"content\":{}}],\"maxTokens\":1}",
     "each of params.messages must have a role and content"},
    {sampling_check_request,
     "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"maxTokens\":1}",
     "each of params.messages must have a role and content"},
};

START_TEST(a_request_asks_for_something_or_is_told_why_not)
{
    struct error error = {""};
    bool asks = requests[_i].check(str_from(requests[_i].params), &error);
    ck_assert_msg(asks == !requests[_i].problem, "%s", requests[_i].params);
    ck_assert_str_eq(error.message, asks ? "" : requests[_i].problem);
}
END_TEST

/* ---- long forms and long answers ---- */

struct long_answer {
    struct buffer schema, content;
};

static void check_long_answer(void *input)
{
    const struct long_answer *answer = input;
    struct error error = {""};
    ck_assert_msg(elicitation_check_content(buffer_str(&answer->schema),
                                            buffer_str(&answer->content), &error),
                  "%s", error.message);
}

/* "0000…", "0001…": `count` texts of `length` bytes in a list. */
static void append_texts(struct buffer *out, size_t count, int length)
{
    for (size_t i = 0; i < count; i++)
        buffer_append_format(out, "%s\"%06zu%0*d\"", i == 0 ? "[" : ",", i, length, 0);
    buffer_append_char(out, ']');
}

static void write_choices(struct long_answer *answer, size_t size)
{
    buffer_append_text(&answer->schema,
                       "{\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"enum\":");
    append_texts(&answer->schema, size, 100);
    buffer_append_text(&answer->schema, "}}}}");
    buffer_append_text(&answer->content, "{\"a\":");
    append_texts(&answer->content, size, 100);
    buffer_append_char(&answer->content, '}');
}

static void write_titled_choices(struct long_answer *answer, size_t size)
{
    buffer_append_text(
        &answer->schema,
        "{\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"anyOf\":[{\"const\":\"x\"}");
    for (size_t i = 0; i < size; i++)
        buffer_append_format(&answer->schema, ",{\"const\":\"%06zu%0100d\"}", i, 0);
    buffer_append_text(&answer->schema, "]}}}}");
    buffer_append_text(&answer->content, "{\"a\":");
    append_texts(&answer->content, size, 100);
    buffer_append_char(&answer->content, '}');
}

static void write_members(struct long_answer *answer, size_t size)
{
    struct buffer required = {0};
    append_texts(&required, size, 0);
    buffer_append_format(&answer->schema, "{\"required\":%.*s,\"properties\":{",
                         STR_ARGS(buffer_str(&required)));
    for (size_t i = 0; i < size; i++) {
        buffer_append_format(&answer->schema, "%s\"%06zu0\":{\"type\":\"number\"}",
                             i == 0 ? "" : ",", i);
        buffer_append_format(&answer->content, "%c\"%06zu0\":1", i == 0 ? '{' : ',', i);
    }
    buffer_append_text(&answer->schema, "}}");
    buffer_append_char(&answer->content, '}');
    buffer_finish(&required);
}

/* A bound that takes as long to read as all texts together. */
static void write_long_bound(struct long_answer *answer, size_t size)
{
    buffer_append_format(&answer->schema,
                         "{\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"maxLength\":1"
                         "%0*d}}}}",
                         (int)size * 10, 0);
    buffer_append_text(&answer->content, "{\"a\":");
    append_texts(&answer->content, size, 0);
    buffer_append_char(&answer->content, '}');
}

static void (*const long_answers[])(struct long_answer *answer, size_t size) = {
    write_choices, write_titled_choices, write_members, write_long_bound};

START_TEST(an_answer_is_checked_in_the_time_of_reading_it)
{
    struct long_answer little = {{0}, {0}}, much = {{0}, {0}};
    long_answers[_i](&little, 1000);
    long_answers[_i](&much, 4000);
    expect_scaling(check_long_answer, &little, &much, 8);
    buffer_finish(&little.schema);
    buffer_finish(&little.content);
    buffer_finish(&much.schema);
    buffer_finish(&much.content);
}
END_TEST

Suite *elicitation_suite(void)
{
    Suite *suite = suite_create("elicitation");
    TCase *cases = tcase_create("elicitation");
    tcase_add_loop_test(cases, an_answer_fits_the_form_or_is_told_why_not, 0,
                        sizeof answers / sizeof *answers);
    tcase_add_loop_test(cases, formats_are_told_apart, 0, sizeof formats / sizeof *formats);
    tcase_add_loop_test(cases, a_request_asks_for_something_or_is_told_why_not, 0,
                        sizeof requests / sizeof *requests);
    tcase_add_loop_test(cases, an_answer_is_checked_in_the_time_of_reading_it, 0,
                        sizeof long_answers / sizeof *long_answers);
    tcase_add_test(cases, actions_are_three_words);
    tcase_add_test(cases, a_visit_is_told_from_a_form);
    suite_add_tcase(suite, cases);
    return suite;
}
