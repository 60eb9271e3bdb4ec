/* Cedar's JSON forms: values with their escapes, entities, requests. */
#include "cedar_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"

/* JSON, and an expression that must hold of it as context.v; or the message instead. */
struct value_case {
    const char *json, *expression, *message;
};

START_TEST(values_are_read)
{
    static const struct value_case cases[] = {
        {"true", "context.v", NULL},
        {"-9223372036854775808", "context.v == -9223372036854775808", NULL},
        {"9223372036854775807", "context.v == 9223372036854775807", NULL},
        {"\"a\\u0000\\ud83d\\ude00\"", "context.v == \"a\\0\\u{1F600}\"", NULL},
        {"[1, [2], 1]", "context.v == [[2], 1]", NULL},
        {"{\"\\u0061 b\": {\"c\": []}}", "context.v[\"a b\"].c.isEmpty()", NULL},
        {"{\"__entity\": {\"type\": \"A::B\", \"id\": \"x\\\"\"}}", "context.v == A::B::\"x\\\"\"",
         NULL},
        {"{\"__\\u0065ntity\": {\"type\": \"A\", \"id\": \"\"}}", "context.v == A::\"\"", NULL},
        {"{\"__extn\": {\"fn\": \"decimal\", \"arg\": \"1.5\"}}", "context.v == decimal(\"1.5\")",
         NULL},
        {"{\"__extn\": {\"fn\": \"offset\", \"args\": [{\"__extn\": {\"fn\": \"datetime\", "
         "\"arg\": \"1970-01-01\"}}, {\"__extn\": {\"fn\": \"duration\", \"arg\": \"1d\"}}]}}",
         "context.v == datetime(\"1970-01-02\")", NULL},
        /* A record that only looks like an escape is a record. */
        {"{\"__entity\": {\"type\": \"A\"}}", "context.v.__entity.type == \"A\"", NULL},
        {"{\"__entity\": 1}", "context.v.__entity == 1", NULL},
        {"{\"__extn\": {\"fn\": \"ip\"}}", "context.v.__extn.fn == \"ip\"", NULL},
        {"{\"__entity\": {\"type\": \"A\", \"id\": \"b\"}, \"c\": 1}", "context.v.c == 1", NULL},
        {"null", NULL, "null is no value"},
        {"[1, null]", NULL, "null is no value"},
        {"1.0", NULL, "1.0 is not a whole number of 64 bits"},
        {"1e3", NULL, "1e3 is not a whole number of 64 bits"},
        {"-0", NULL, "-0 is not a whole number"},
        {"9223372036854775808", NULL, "9223372036854775808 is not a whole number of 64 bits"},
        {"-9223372036854775809", NULL, "not a whole number of 64 bits"},
        {"{\"__entity\": {\"type\": \"a b\", \"id\": \"\"}}", NULL,
         "\"a b\" is not the name of an entity type"},
        {"{\"__extn\": {\"fn\": \"nope\", \"arg\": \"1\"}}", NULL, "there is no function \"nope\""},
        {"{\"__extn\": {\"fn\": \"ip\", \"arg\": \"x\"}}", NULL, "ip refuses its argument"},
        {"{\"__extn\": {\"fn\": \"ip\", \"arg\": 1}}", NULL,
         "type error: expected string, found long"},
        {"{\"__extn\": {\"fn\": \"ip\", \"args\": [\"::\", 1, 2, 3, 4]}}", NULL,
         "ip takes another number of arguments"},
        {"{\"__extn\": {\"fn\": \"ip\", \"args\": [null]}}", NULL, "null is no value"},
        {"{\"__expr\": \"1 + 1\"}", NULL, "__expr is not supported"},
        {"{\"a\": 1, \"a\": 2}", NULL, "duplicate"},
        {"\"\\ud800\"", NULL, ""},
        {"[1", NULL, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cedar_heap *heap = cedar_heap_create();
        struct cedar_value value;
        struct error error = {.message = ""};
        bool good = cedar_value_read_json(heap, str_from(cases[i].json), &value, &error);
        ck_assert_msg(good == (cases[i].expression != NULL), "%s: %s", cases[i].json,
                      error.message);
        if (good) {
            char text[256];
            snprintf(text, sizeof text, "permit(principal,action,resource) when { %s };",
                     cases[i].expression);
            struct cedar_policies *policies = must_parse(text);
            struct cedar_member member = {.name = STR("v"), .value = value};
            struct cedar_value context;
            ck_assert(cedar_record(heap, &member, 1, &context));
            struct cedar_request request = must_make_request(NULL, NULL);
            request.context = context.record;
            struct cedar_response response;
            cedar_response_init(&response);
            cedar_authorize(policies, NULL, &request, &response);
            ck_assert_msg(response.decision == CEDAR_ALLOW, "%s", cases[i].json);
            cedar_response_finish(&response);
            cedar_policies_destroy(policies);
        } else {
            ck_assert_msg(strstr(error.message, cases[i].message) != NULL, "%s: %s", cases[i].json,
                          error.message);
        }
        cedar_heap_destroy(heap);
    }
}
END_TEST

START_TEST(uids_have_three_forms)
{
    static const struct {
        const char *json;
        bool good;
    } cases[] = {
        {"{\"type\": \"A::User\", \"id\": \"al\\\"ice\"}", true},
        {"{\"__entity\": {\"type\": \"A::User\", \"id\": \"al\\\"ice\"}}", true},
        {"\"A::User::\\\"al\\\\\\\"ice\\\"\"", true},
        {"\"A :: User::\\\"al\\\\\\\"ice\\\" // so\"", true},
        {"\"A::User\"", false},
        {"\"A::User::\\\"a\\\" x\"", false},
        {"\"if::\\\"a\\\"\"", false},
        {"\"\"", false},
        {"{\"type\": \"A::User\"}", false},
        {"{\"type\": 1, \"id\": \"a\"}", false},
        {"{\"type\": \"A:: User\", \"id\": \"a\"}", false},
        {"1", false},
    };
    struct cedar_heap *heap = cedar_heap_create();
    struct cedar_uid wanted = cedar_uid(STR("A::User"), STR("al\"ice"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cedar_uid uid;
        struct error error = {.message = ""};
        bool good = cedar_uid_read_json(heap, str_from(cases[i].json), &uid, &error);
        ck_assert_msg(good == cases[i].good, "%s: %s", cases[i].json, error.message);
        ck_assert(good ? cedar_uid_equal(&uid, &wanted) : error.message[0] != '\0');
    }
    cedar_heap_destroy(heap);
}
END_TEST

START_TEST(entities_say_where_they_are_wrong)
{
    static const struct {
        const char *json, *message;
    } cases[] = {
        {"{}", "expected an array of entities"},
        {"[1]", "entity 1: expected an object"},
        {"[{\"uid\": {\"type\": \"A\", \"id\": \"a\"}, \"attrs\": {}, \"parents\": []},"
         " {\"uid\": 1, \"attrs\": {}, \"parents\": []}]",
         "entity 2: uid: expected {"},
        {"[{\"uid\": {\"type\": \"A\", \"id\": \"a\"}, \"parents\": []}]",
         "entity 1: attrs: expected an object"},
        {"[{\"uid\": {\"type\": \"A\", \"id\": \"a\"}, \"attrs\": {}}]",
         "entity 1: parents: expected an array"},
        {"[{\"uid\": {\"type\": \"A\", \"id\": \"a\"}, \"attrs\": {\"x\": null}, \"parents\": []}]",
         "entity 1: attrs: null is no value"},
        {"[{\"uid\": {\"type\": \"A\", \"id\": \"a\"}, \"attrs\": {}, \"parents\": [1]}]",
         "entity 1: parents: expected {"},
        {"[{\"uid\": {\"type\": \"A\", \"id\": \"a\"}, \"attrs\": {}, \"tags\": 1, \"parents\": "
         "[]}]",
         "entity 1: tags: expected an object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cedar_entities *entities = cedar_entities_create();
        struct error error = {.message = ""};
        ck_assert(!cedar_entities_read_json(entities, str_from(cases[i].json), &error));
        ck_assert_msg(strncmp(error.message, cases[i].message, strlen(cases[i].message)) == 0,
                      "%s: %s", cases[i].json, error.message);
        cedar_entities_destroy(entities);
    }
}
END_TEST

START_TEST(requests_are_read)
{
    struct cedar_heap *heap = cedar_heap_create();
    struct cedar_request request;
    struct error error = {.message = ""};
    ck_assert(cedar_request_read_json(
        heap,
        STR(" {\"principal\": \"User::\\\"a\\\"\", \"action\": {\"type\": \"Action\", \"id\": "
            "\"b\"}, \"resource\": {\"__entity\": {\"type\": \"Doc\", \"id\": \"c\"}}, "
            "\"context\": {\"x\": 1}, \"other\": null} "),
        &request, &error));
    struct cedar_uid action = cedar_uid(STR("Action"), STR("b"));
    ck_assert(cedar_uid_equal(&request.action, &action));
    ck_assert_int_eq(cedar_record_get(request.context, STR("x"))->number, 1);
    ck_assert(!cedar_request_read_json(heap, STR("{\"principal\": \"User::\\\"a\\\"\"}"), &request,
                                       &error));
    ck_assert_msg(strncmp(error.message, "action: ", 8) == 0, "%s", error.message);
    ck_assert(!cedar_request_read_json(
        heap,
        STR("{\"principal\": \"U::\\\"a\\\"\", \"action\": \"Action::\\\"a\\\"\", \"resource\": "
            "\"D::\\\"a\\\"\", \"context\": []}"),
        &request, &error));
    ck_assert_str_eq(error.message, "context: expected an object");
    cedar_heap_destroy(heap);
}
END_TEST

static const struct cedar_source *source_of(const char *text)
{
    static struct cedar_source source = {.name = "f"};
    source.text = str_from(text);
    return &source;
}

/* The problems of the text, read as entities or as requests; "" when it is accepted. */
static char *problems_of(const char *text, bool are_requests)
{
    struct buffer problems;
    struct cedar_requests *requests = NULL;
    struct cedar_entities *entities = NULL;
    buffer_init(&problems);
    if (are_requests)
        requests = cedar_requests_parse(source_of(text), &problems);
    else
        entities = cedar_entities_parse(source_of(text), &problems);
    ck_assert((requests || entities) == (problems.length == 0));
    cedar_requests_destroy(requests);
    cedar_entities_destroy(entities);
    return buffer_take(&problems, NULL);
}

START_TEST(files_say_all_that_is_wrong)
{
    static const struct {
        const char *text;
        bool are_requests;
        const char *says;
    } cases[] = {
        {"[]", false, ""},
        {"\n[\n1,\n\"\xC3\xA9\", {}]", false,
         "f:3:1: entity 1: expected an object\nf:4:1: entity 2: expected an object\n"
         "f:4:6: entity 3: uid: expected {\"type\": \"…\", \"id\": \"…\"}\n"},
        {"[{\"uid\": \"A::\\\"a\\\"\", \"parents\": []}]", false,
         "f:1:2: entity 1: attrs: expected an object\n"},
        {"[{\"uid\": \"A::\\\"a\\\"\", \"attrs\": {}, \"parents\": [\n1]}]", false,
         "f:2:1: entity 1: parents: expected {\"type\": \"…\", \"id\": \"…\"}\n"},
        {"[{\"uid\": \"A::\\\"a\\\"\", \"attrs\": {}, \"parents\": [\"B::\\\"b\\\"\"]},\n"
         " {\"uid\": \"B::\\\"b\\\"\", \"attrs\": {}, \"parents\": [\"A::\\\"a\\\"\"]}]",
         false, "f:1:2: entity A::\"a\" is its own ancestor\n"},
        {"[{\"uid\": \"A::\\\"a\\\"\", \"attrs\": {}, \"parents\": []},\n"
         " {\"uid\": \"A::\\\"a\\\"\", \"attrs\": {\"b\": 1}, \"parents\": []}]",
         false, "f:2:2: entity 2: entity A::\"a\" stands twice with different content\n"},
        {"[{\"uid\": \"A::if&b\", \"attrs\": {}, \"parents\": []}]", false,
         "f:1:10: entity 1: uid: entity:1:4: \"if\" is a reserved word; expected a name\n"},
        {"[{\"uid\": {\"type\": \"A\\nB\", \"id\": \"\"}, \"attrs\": {}, \"parents\": []}]", false,
         "f:1:10: entity 1: uid: \"A\\u000aB\" is not the name of an entity type\n"},
        {"[", false, "f:1:2: not readable as JSON: unexpected end\n"},
        {"{}", false, "f:1:1: expected an array of entities\n"},
        {" {\"requests\": [], \"other\": null}", true, ""},
        {"[{}]", true, "f:1:2: request 1: principal: expected {\"type\": \"…\", \"id\": \"…\"}\n"},
        {"1", true, "f:1:1: expected an array of requests, or an object with \"requests\"\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *problems = problems_of(cases[i].text, cases[i].are_requests);
        ck_assert_str_eq(problems ? problems : "", cases[i].says);
        free(problems);
    }
}
END_TEST

START_TEST(files_of_mistakes_are_cut_short)
{
    struct buffer text;
    buffer_init(&text);
    buffer_append_text(&text, "[0");
    for (int i = 1; i < 130; i++)
        buffer_append_text(&text, ",\n0");
    buffer_append_text(&text, "]");
    char *bytes = buffer_take(&text, NULL), *problems = problems_of(bytes, true);
    ck_assert_ptr_nonnull(strstr(problems, "\nf:100:1: request 100: expected an object\n"
                                           "30 more problems\n"));
    free(problems);
    free(bytes);
}
END_TEST

START_TEST(requests_of_a_file_live_with_it)
{
    struct buffer problems;
    buffer_init(&problems);
    char *text =
        memory_copy_text("[{\"principal\": \"A::\\\"a\\\"\", \"action\": \"A::\\\"b\\\"\", "
                         "\"resource\": \"A::\\\"c\\\"\", \"context\": {\"x\": \"y\"}}]");
    struct cedar_requests *requests = cedar_requests_parse(source_of(text), &problems);
    free(text);
    ck_assert_uint_eq(cedar_requests_count(requests), 1);
    const struct cedar_request *request = cedar_requests_at(requests, 0);
    ck_assert(str_equal(request->resource.id, STR("c")));
    ck_assert(str_equal(cedar_record_get(request->context, STR("x"))->text, STR("y")));
    cedar_requests_destroy(requests);
    buffer_finish(&problems);
}
END_TEST

Suite *json_suite(void)
{
    Suite *suite = suite_create("json");
    TCase *tests = tcase_create("json");
    tcase_add_test(tests, values_are_read);
    tcase_add_test(tests, uids_have_three_forms);
    tcase_add_test(tests, entities_say_where_they_are_wrong);
    tcase_add_test(tests, requests_are_read);
    tcase_add_test(tests, files_say_all_that_is_wrong);
    tcase_add_test(tests, files_of_mistakes_are_cut_short);
    tcase_add_test(tests, requests_of_a_file_live_with_it);
    suite_add_tcase(suite, tests);
    return suite;
}
