/* Whole files and what comes out of them. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suites.h"
#include "support.h"

START_TEST(minimal_file_gets_the_defaults)
{
    struct config *config = expect_load(minimal, "");
    ck_assert_str_eq(config->path, "t.yaml");
    ck_assert_uint_eq(config->source_count, 1);
    ck_assert_str_eq(config->sources[0].id, "up");
    ck_assert_str_eq(config->sources[0].url, "http://127.0.0.1:1/mcp");
    ck_assert(config->sources[0].enabled);
    ck_assert_int_eq(config->sources[0].expose_mode, EXPOSE_ALL);
    ck_assert_int_eq(config->default_action, ACTION_FORWARD);
    ck_assert_uint_eq(config->workflow_count, 1);
    ck_assert_str_eq(config->workflows[0].name, "default");
    ck_assert_int_eq(config->workflows[0].timeout_ms, 600000);
    ck_assert(config->workflows[0].admin_only);
    ck_assert_str_eq(config->store_path, "/var/lib/taskgate/taskgate.db");
    ck_assert(config->store_path_is_default);
    ck_assert_int_eq(config->workers, 1);
    ck_assert_str_eq(config->proxy_bind, "127.0.0.1");
    ck_assert_str_eq(config->admin_bind, "127.0.0.1");
    ck_assert_int_eq(config->proxy_port, 7467);
    ck_assert_int_eq(config->admin_port, 7469);
    ck_assert_int_eq(config->execution, EXECUTION_ON_APPROVAL);
    ck_assert_int_eq(config->pending_status, PENDING_STATUS_AUTO);
    ck_assert_int_eq(config->limits.pending_per_principal, 100);
    ck_assert_int_eq(config->limits.pending_total, 10000);
    ck_assert_int_eq(config->limits.body_bytes, 4 << 20);
    ck_assert_int_eq(config->limits.result_bytes, 16 << 20);
    ck_assert_int_eq(config->limits.sessions, 10000);
    ck_assert_int_eq(config->limits.connections, 10000);
    ck_assert_int_eq(config->limits.requests_per_second, 0);
    ck_assert_int_eq(config->times.task_default_ttl_ms, 600000);
    ck_assert_int_eq(config->times.task_max_ttl_ms, 86400000);
    ck_assert_int_eq(config->times.sync_forward_timeout_ms, 60000);
    ck_assert_int_eq(config->times.execution_timeout_ms, 60000);
    ck_assert_int_eq(config->times.connect_timeout_ms, 5000);
    ck_assert_int_eq(config->times.approval_timeout_ms, 600000);
    ck_assert_int_eq(config->times.approval_validity_ms, 300000);
    ck_assert_int_eq(config->times.tools_fetch_timeout_ms, 30000);
    ck_assert_int_eq(config->times.tools_max_pages, 100);
    ck_assert_int_eq(config->times.shutdown_timeout_ms, 30000);
    ck_assert_int_eq(config->times.drain_timeout_ms, 25000);
    config_unref(config);
}
END_TEST

TCase *load_case(void)
{
    TCase *tests = tcase_create("load");
    tcase_add_test(tests, minimal_file_gets_the_defaults);
    return tests;
}
