/* Cedar's JSON forms: values with their escapes, entities, requests. */
#include "cedar_test.h"

#include <stdio.h>

#include <string.h>

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
        /* What only looks like an escape is a record. */
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

Suite *json_suite(void)
{
    Suite *suite = suite_create("json");
    TCase *tests = tcase_create("json");
    tcase_add_test(tests, values_are_read);
    tcase_add_test(tests, uids_have_three_forms);
    tcase_add_test(tests, entities_say_where_they_are_wrong);
    tcase_add_test(tests, requests_are_read);
    suite_add_tcase(suite, tests);
    return suite;
}
