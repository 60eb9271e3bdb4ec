/* The index by scope: it may choose too many policies, but never too few, and it asks none
 * that it can tell apart. */
#include "cedar_test.h"

#include <stdio.h>
#include <string.h>

#include "taskgate/core/buffer.h"

/* A small generator of our own: the same cases on every run. */
static uint32_t state = 1;

static unsigned pick(unsigned below)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % below;
}

/* action0 in action1 in action2 …, doc0 in folder0 in folder1. */
static const char hierarchy[] =
    "[{\"uid\": \"Action::\\\"0\\\"\", \"attrs\": {}, \"parents\": [\"Action::\\\"1\\\"\"]},"
    " {\"uid\": \"Action::\\\"1\\\"\", \"attrs\": {}, \"parents\": [\"Action::\\\"2\\\"\"]},"
    " {\"uid\": \"Doc::\\\"0\\\"\", \"attrs\": {}, \"parents\": [\"Folder::\\\"0\\\"\"]},"
    " {\"uid\": \"Folder::\\\"0\\\"\", \"attrs\": {}, \"parents\": [\"Folder::\\\"1\\\"\"]}]";

static void write_action(struct buffer *text, bool condition)
{
    const char *word = condition ? "action" : "";
    switch (pick(5)) {
    case 0:
        buffer_append_format(text, "%s == Action::\"%u\"", word, pick(4));
        break;
    case 1:
        buffer_append_format(text, "%s in Action::\"%u\"", word, pick(4));
        break;
    case 2:
        buffer_append_format(text, "%s in [Action::\"%u\", Action::\"%u\"]", word, pick(4),
                             pick(4));
        break;
    case 3:
        buffer_append_format(text, "%s in []", word);
        break;
    default:
        buffer_append_text(text, condition ? "true" : "");
    }
}

static void write_resource(struct buffer *text, bool condition)
{
    static const char *const types[] = {"Doc", "Folder"};
    const char *word = condition ? "resource" : "";
    switch (pick(5)) {
    case 0:
        buffer_append_format(text, "%s == %s::\"%u\"", word, types[pick(2)], pick(2));
        break;
    case 1:
        buffer_append_format(text, "%s in %s::\"%u\"", word, types[pick(2)], pick(2));
        break;
    case 2:
        buffer_append_format(text, "%s is %s", word, types[pick(2)]);
        break;
    case 3:
        buffer_append_format(text, "%s is %s in Folder::\"%u\"", word, types[pick(2)], pick(2));
        break;
    default:
        buffer_append_text(text, condition ? "true" : "");
    }
}

/* The same policies twice: their scope as a scope, which is indexed, and as a condition. */
static struct cedar_policies *make_policies(bool condition)
{
    struct buffer text;
    buffer_init(&text);
    state = 7;
    for (int i = 0; i < 300; i++) {
        buffer_append_text(&text, condition ? "permit(principal, action, resource) when { "
                                            : "permit(principal, action ");
        write_action(&text, condition);
        buffer_append_text(&text, condition ? " && " : ", resource ");
        write_resource(&text, condition);
        buffer_append_text(&text, condition ? " };\n" : ");\n");
    }
    buffer_append_char(&text, '\0');
    struct cedar_policies *policies = must_parse(text.bytes);
    buffer_finish(&text);
    return policies;
}

START_TEST(scopes_mean_what_conditions_mean)
{
    struct cedar_policies *scopes = make_policies(false), *conditions = make_policies(true);
    struct cedar_entities *entities = must_read_entities(hierarchy);
    struct cedar_response left, right;
    cedar_response_init(&left);
    cedar_response_init(&right);
    static const char *const ids[] = {"0", "1", "2", "3"};
    size_t satisfied = 0;
    for (int action = 0; action < 4; action++) {
        for (int resource = 0; resource < 4; resource++) {
            struct cedar_request request = must_make_request(NULL, NULL);
            request.action = cedar_uid(STR("Action"), str_from(ids[action]));
            request.resource =
                cedar_uid(resource < 2 ? STR("Doc") : STR("Folder"), str_from(ids[resource % 2]));
            cedar_authorize(scopes, entities, &request, &left);
            cedar_authorize(conditions, entities, &request, &right);
            ck_assert_uint_eq(left.failure_count + right.failure_count, 0);
            ck_assert_uint_eq(left.reason_count, right.reason_count);
            for (size_t i = 0; i < left.reason_count; i++)
                ck_assert(str_equal(cedar_policy_name(left.reasons[i]),
                                    cedar_policy_name(right.reasons[i])));
            satisfied += left.reason_count;
        }
    }
    ck_assert_uint_gt(satisfied, 300);
    cedar_response_finish(&right);
    cedar_response_finish(&left);
    cedar_entities_destroy(entities);
    cedar_policies_destroy(conditions);
    cedar_policies_destroy(scopes);
}
END_TEST

static bool count_asked(const struct cedar_policy *policy, void *data)
{
    (void)policy;
    ++*(unsigned *)data;
    return true;
}

START_TEST(others_are_not_asked)
{
    struct buffer text;
    buffer_init(&text);
    for (int i = 0; i < 1000; i++)
        buffer_append_format(&text,
                             "permit(principal, action == Action::\"a%d\", resource == "
                             "Doc::\"d%d\");",
                             i % 10, i);
    buffer_append_text(&text, "permit(principal, action, resource is Doc);"
                              "permit(principal, action, resource is Folder);");
    buffer_append_char(&text, '\0');
    struct cedar_policies *policies = must_parse(text.bytes);
    unsigned asked = 0;
    struct cedar_request request = must_make_request(NULL, NULL);
    request.action = cedar_uid(STR("Action"), STR("a7"));
    request.resource = cedar_uid(STR("Doc"), STR("d17"));
    request.asks = count_asked;
    request.asks_data = &asked;
    struct cedar_response response;
    cedar_response_init(&response);
    cedar_authorize(policies, NULL, &request, &response);
    ck_assert_uint_eq(asked, 2);
    ck_assert_uint_eq(response.reason_count, 2);
    cedar_response_finish(&response);
    cedar_policies_destroy(policies);
    buffer_finish(&text);
}
END_TEST

START_TEST(many_ancestors_ask_all)
{
    struct buffer json;
    buffer_init(&json);
    buffer_append_text(&json, "[{\"uid\": \"Doc::\\\"d1\\\"\", \"attrs\": {}, \"parents\": [");
    for (int i = 0; i < 500; i++)
        buffer_append_format(&json, "%s\"Folder::\\\"%d\\\"\"", i ? ", " : "", i);
    buffer_append_text(&json, "]}]");
    buffer_append_char(&json, '\0');
    struct cedar_entities *entities = must_read_entities(json.bytes);
    struct cedar_policies *policies =
        must_parse("permit(principal, action, resource in Folder::\"499\");"
                   "permit(principal, action, resource in Folder::\"500\");");
    struct cedar_request request = must_make_request(NULL, NULL);
    struct cedar_response response;
    cedar_response_init(&response);
    cedar_authorize(policies, entities, &request, &response);
    ck_assert_uint_eq(response.reason_count, 1);
    ck_assert(response.reasons[0] == cedar_policies_at(policies, 0));
    cedar_response_finish(&response);
    cedar_policies_destroy(policies);
    cedar_entities_destroy(entities);
    buffer_finish(&json);
}
END_TEST

Suite *index_suite(void)
{
    Suite *suite = suite_create("index");
    TCase *tests = tcase_create("index");
    tcase_add_test(tests, scopes_mean_what_conditions_mean);
    tcase_add_test(tests, others_are_not_asked);
    tcase_add_test(tests, many_ancestors_ask_all);
    suite_add_tcase(suite, tests);
    return suite;
}
