/* The closed table of methods. */
#include "mcp_test.h"

#include <stdio.h>
#include <stdlib.h>

#include "taskgate/mcp/method.h"

static const struct {
    const char *name;
    enum mcp_treatment treatment;
    bool is_notification;
} rows[] = {
    {"initialize", MCP_INITIALIZE, false},
    {"ping", MCP_RELAY, false},
    {"tools/list", MCP_TOOLS_LIST, false},
    {"tools/call", MCP_TOOLS_CALL, false},
    {"resources/list", MCP_RESOURCES_LIST, false},
    {"resources/templates/list", MCP_RESOURCES_TEMPLATES_LIST, false},
    {"resources/read", MCP_GATED_URI, false},
    {"resources/subscribe", MCP_GATED_URI, false},
    {"resources/unsubscribe", MCP_RESOURCES_UNSUBSCRIBE, false},
    {"prompts/list", MCP_PROMPTS_LIST, false},
    {"prompts/get", MCP_GATED_NAME, false},
    {"logging/setLevel", MCP_RELAY, false},
    {"completion/complete", MCP_RELAY, false},
    {"tasks/get", MCP_TASKS_GET, false},
    {"tasks/result", MCP_TASKS_RESULT, false},
    {"tasks/cancel", MCP_TASKS_CANCEL, false},
    {"tasks/list", MCP_TASKS_LIST, false},
    {"server/discover", MCP_SERVER_DISCOVER, false},
    {"notifications/initialized", MCP_RELAY, true},
    {"notifications/cancelled", MCP_RELAY, true},
    {"notifications/progress", MCP_RELAY, true},
    {"notifications/roots/list_changed", MCP_RELAY, true},
    {"notifications/tasks/status", MCP_RELAY, true},
    /* What only a server may send, what does not exist, what is nearly a method. */
    {"elicitation/create", MCP_UNKNOWN, false},
    {"sampling/createMessage", MCP_UNKNOWN, false},
    {"roots/list", MCP_UNKNOWN, false},
    {"notifications/message", MCP_UNKNOWN, false},
    {"notifications/tools/list_changed", MCP_UNKNOWN, false},
    {"tasks/update", MCP_UNKNOWN, false},
    {"Tools/call", MCP_UNKNOWN, false},
    {"tools/call ", MCP_UNKNOWN, false},
    {"tools/cal", MCP_UNKNOWN, false},
    {"", MCP_UNKNOWN, false},
};

START_TEST(each_method_has_its_treatment)
{
    const struct mcp_method *method = mcp_method_find(str_from(rows[_i].name));
    ck_assert_msg(method->treatment == rows[_i].treatment, "%s", rows[_i].name);
    ck_assert_msg(method->is_notification == rows[_i].is_notification, "%s", rows[_i].name);
    if (method->treatment != MCP_UNKNOWN)
        ck_assert_str_eq(method->name, rows[_i].name);
}
END_TEST

START_TEST(a_nul_does_not_end_a_name)
{
    ck_assert_int_eq(mcp_method_find(STR("ping\0x"))->treatment, MCP_UNKNOWN);
    ck_assert_int_eq(mcp_method_find(STR_EMPTY)->treatment, MCP_UNKNOWN);
}
END_TEST

Suite *method_suite(void)
{
    Suite *suite = suite_create("method");
    TCase *tests = tcase_create("method");
    tcase_add_loop_test(tests, each_method_has_its_treatment, 0,
                        (int)(sizeof rows / sizeof rows[0]));
    tcase_add_test(tests, a_nul_does_not_end_a_name);
    suite_add_tcase(suite, tests);
    return suite;
}
