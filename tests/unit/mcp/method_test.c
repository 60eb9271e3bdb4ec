/* The closed table of methods. */
#include "mcp_test.h"

#include <stdio.h>
#include <stdlib.h>

#include "taskgate/mcp/method.h"

static const struct {
    const char *name;
    enum mcp_treatment treatment;
} rows[] = {
    {"initialize", MCP_INITIALIZE},
    {"ping", MCP_RELAY},
    {"tools/list", MCP_TOOLS_LIST},
    {"tools/call", MCP_TOOLS_CALL},
    {"resources/list", MCP_RESOURCES_LIST},
    {"resources/templates/list", MCP_RESOURCES_TEMPLATES_LIST},
    {"resources/read", MCP_GATED_URI},
    {"resources/subscribe", MCP_GATED_URI},
    {"resources/unsubscribe", MCP_RESOURCES_UNSUBSCRIBE},
    {"prompts/list", MCP_PROMPTS_LIST},
    {"prompts/get", MCP_GATED_NAME},
    {"logging/setLevel", MCP_RELAY},
    {"completion/complete", MCP_GATED_REFERENCE},
    {"tasks/get", MCP_TASKS_GET},
    {"tasks/result", MCP_TASKS_RESULT},
    {"tasks/cancel", MCP_TASKS_CANCEL},
    {"tasks/list", MCP_TASKS_LIST},
    {"server/discover", MCP_SERVER_DISCOVER},
    {"notifications/initialized", MCP_RELAY},
    {"notifications/cancelled", MCP_RELAY},
    {"notifications/progress", MCP_RELAY},
    {"notifications/roots/list_changed", MCP_RELAY},
    {"notifications/tasks/status", MCP_RELAY},
    {"skills/list", MCP_EXTENSION},
    {"skills/get", MCP_EXTENSION},
    {"resources/directory/read", MCP_EXTENSION},
    /* Methods of servers, unknown methods, and names that are nearly a method. */
    {"elicitation/create", MCP_UNKNOWN},
    {"sampling/createMessage", MCP_UNKNOWN},
    {"roots/list", MCP_UNKNOWN},
    {"notifications/message", MCP_UNKNOWN},
    {"notifications/tools/list_changed", MCP_UNKNOWN},
    {"tasks/update", MCP_UNKNOWN},
    {"Tools/call", MCP_UNKNOWN},
    {"tools/call ", MCP_UNKNOWN},
    {"tools/cal", MCP_UNKNOWN},
    {"", MCP_UNKNOWN},
};

START_TEST(each_method_has_its_treatment)
{
    const struct mcp_method *method = mcp_method_find(str_from(rows[_i].name), MCP_ERA_LEGACY);
    ck_assert_msg(method->treatment == rows[_i].treatment, "%s", rows[_i].name);
    if (method->treatment != MCP_UNKNOWN)
        ck_assert_str_eq(method->name, rows[_i].name);
}
END_TEST

START_TEST(a_nul_does_not_end_a_name)
{
    ck_assert_int_eq(mcp_method_find(STR("ping\0x"), MCP_ERA_LEGACY)->treatment, MCP_UNKNOWN);
    ck_assert_int_eq(mcp_method_find(STR_EMPTY, MCP_ERA_LEGACY)->treatment, MCP_UNKNOWN);
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
