/* The counts of requests, compared with the scrape. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call/call.h"
#include "suites.h"
#include "taskgate/core/metrics.h"

static void expect(const char *line)
{
    struct buffer text = {0};
    metrics_write(&text, false);
    buffer_append_char(&text, '\0');
    ck_assert_msg(strstr(text.bytes, line) != NULL, "%s in:\n%s", line, text.bytes);
    buffer_finish(&text);
}

/* Names that begin with "made" are nobody's. */
static bool is_listed(void *context, struct str name)
{
    const bool *knows_all = context;
    return *knows_all || !str_starts_with(name, STR("made"));
}

static bool knows_all;

static void answered(const struct mcp_method *method, struct str name, const char *outcome,
                     int64_t elapsed_ms)
{
    const struct counted_tool tool = {name, is_listed, &knows_all};
    call_counters_answered(method, &tool, outcome, elapsed_ms);
}

/* More tools and sources than there are slots, so that they take them from each other. */
START_TEST(each_tool_and_source_is_counted_as_its_own)
{
    const struct mcp_method *call = mcp_method_find(STR("tools/call"), MCP_ERA_LEGACY);
    char name[32];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 150; i++) {
            snprintf(name, sizeof name, "t%d", i);
            answered(call, str_from(name), i % 2 ? "error" : "success", i);
            call_counters_upstream(str_from(name), i % 2 ? 503 : 200, i);
        }
        answered(NULL, STR_EMPTY, "error", 1);
        call_counters_came(call, 600);
        call_counters_came(mcp_method_find(STR("ping"), MCP_ERA_LEGACY), 50);
    }
    expect("thoughtgate_requests_total{method=\"tools/call\",tool_name=\"t8\",status=\"success\"} "
           "3\n");
    expect("thoughtgate_requests_total{method=\"tools/call\",tool_name=\"t149\",status=\"error\"} "
           "3\n");
    expect("thoughtgate_requests_total{method=\"http\",tool_name=\"\",status=\"error\"} 3\n");
    expect("thoughtgate_request_duration_ms_sum{method=\"tools/call\",tool_name=\"t149\"} 447\n");
    expect("thoughtgate_upstream_requests_total{target=\"t7\",status_code=\"503\"} 3\n");
    expect("thoughtgate_upstream_duration_ms_sum{target=\"t140\"} 420\n");
    expect("method=\"tools/call\"} 1800\n");
    metrics_finish();
}
END_TEST

START_TEST(a_tool_of_both_outcomes_has_one_duration)
{
    const struct mcp_method *call = mcp_method_find(STR("tools/call"), MCP_ERA_LEGACY);
    char name[300];
    memset(name, 'n', sizeof name); /* too long for a slot; a label is cut at 128 bytes */
    for (int i = 0; i < 2; i++) {
        answered(call, STR("read"), "success", 10);
        answered(call, STR("read"), "error", 5);
        answered(call, str_slice(name, sizeof name), "success", 7);
        call_counters_upstream(str_slice(name, sizeof name), 200, 9);
    }
    expect("{method=\"tools/call\",tool_name=\"read\",status=\"success\"} 2\n");
    expect("{method=\"tools/call\",tool_name=\"read\",status=\"error\"} 2\n");
    expect("thoughtgate_request_duration_ms_sum{method=\"tools/call\",tool_name=\"read\"} 30\n");
    expect("nnn\",status=\"success\"} 2\n");
    expect("nnn\"} 18\n"); /* the sum of the servers' times */
    metrics_finish();
}
END_TEST

START_TEST(names_that_no_server_lists_are_one_and_displace_none)
{
    const struct mcp_method *call = mcp_method_find(STR("tools/call"), MCP_ERA_LEGACY);
    char name[300];
    for (int i = 0; i < 500; i++) {
        int length = snprintf(name, sizeof name, "made%0*d", i % 2 ? 200 : 3, i);
        answered(call, str_slice(name, (size_t)length), i % 2 ? "error" : "success", 1);
    }
    answered(call, STR("real"), "success", 1);
    answered(call, STR("made up"), "error", 1);
    knows_all = true; /* a server has listed it now */
    answered(call, STR("made up"), "error", 1);
    knows_all = false;
    expect("tool_name=\"__unlisted__\",status=\"success\"} 250\n");
    expect("tool_name=\"__unlisted__\",status=\"error\"} 251\n");
    expect("duration_ms_count{method=\"tools/call\",tool_name=\"__unlisted__\"} 501\n");
    expect("tool_name=\"real\",status=\"success\"} 1\n");
    expect("tool_name=\"made up\",status=\"error\"} 1\n");
    metrics_finish();
}
END_TEST

TCase *call_counters_tests(void)
{
    TCase *tests = tcase_create("call_counters");
    tcase_add_test(tests, each_tool_and_source_is_counted_as_its_own);
    tcase_add_test(tests, a_tool_of_both_outcomes_has_one_duration);
    tcase_add_test(tests, names_that_no_server_lists_are_one_and_displace_none);
    return tests;
}
