/* The gateway's own answers. */
#include "mcp_test.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/mcp/dialect.h"
#include "taskgate/mcp/jsonrpc.h"

static const struct {
    enum jsonrpc_error error;
    int code;
    const char *type;
} codes[] = {
    {JSONRPC_PARSE_ERROR, -32700, "parse_error"},
    {JSONRPC_INVALID_REQUEST, -32600, "invalid_request"},
    {JSONRPC_TOO_LARGE, -32600, "request_too_large"},
    {JSONRPC_METHOD_NOT_FOUND, -32601, "method_not_found"},
    {JSONRPC_INVALID_PARAMS, -32602, "invalid_params"},
    {JSONRPC_INCOMPLETE_ENVELOPE, -32602, "incomplete_envelope"},
    {JSONRPC_REASON_REQUIRED, -32602, "reason_required"},
    {JSONRPC_TASK_NOT_FOUND, -32602, "task_not_found"},
    {JSONRPC_TASK_TERMINAL, -32602, "invalid_params"},
    {JSONRPC_INTERNAL, -32603, "internal"},
    {JSONRPC_UPSTREAM_UNREADABLE, -32603, "upstream_error"},
    {JSONRPC_OUTCOME_UNKNOWN, -32603, "outcome_unknown"},
    {JSONRPC_UPSTREAM_FAILED, -32000, "upstream_connection_failed"},
    {JSONRPC_UPSTREAM_TIMEOUT, -32001, "upstream_timeout"},
    {JSONRPC_UPSTREAM_ERROR, -32002, "upstream_error"},
    {JSONRPC_RESOURCE_NOT_FOUND, -32002, "resource_not_found"},
    {JSONRPC_RESOURCE_UNKNOWN, -32602, "resource_not_found"},
    {JSONRPC_DIGEST_MISMATCH, -32602, "digest_mismatch"},
    {JSONRPC_POLICY_DENIED, -32003, "policy_denied"},
    {JSONRPC_TASK_EXPIRED, -32005, "task_expired"},
    {JSONRPC_TASK_CANCELLED, -32006, "task_cancelled"},
    {JSONRPC_APPROVAL_REJECTED, -32007, "approval_rejected"},
    {JSONRPC_APPROVAL_TIMEOUT, -32008, "approval_timeout"},
    {JSONRPC_TASK_REQUIRED, -32009, "task_required"},
    {JSONRPC_TASK_FORBIDDEN, -32010, "task_forbidden"},
    {JSONRPC_POLICY_DRIFT, -32011, "policy_drift"},
    {JSONRPC_TRANSFORM_DRIFT, -32012, "transform_drift"},
    {JSONRPC_UNAVAILABLE, -32013, "service_unavailable"},
    {JSONRPC_RATE_LIMITED, -32013, "rate_limited"},
    {JSONRPC_TOO_MANY_WAITING, -32013, "rate_limited"},
    {JSONRPC_RULE_DENIED, -32014, "governance_rule_denied"},
    {JSONRPC_CALLER_BLOCKED, -32014, "caller_blocked"},
    {JSONRPC_NOT_EXPOSED, -32015, "tool_not_exposed"},
    {JSONRPC_HEADER_MISMATCH, -32020, "header_mismatch"},
    {JSONRPC_MISSING_CAPABILITY, -32021, "missing_client_capability"},
    {JSONRPC_UNSUPPORTED_VERSION, -32022, "unsupported_protocol_version"},
};

START_TEST(every_error_has_its_number_and_type)
{
    ck_assert_uint_eq(sizeof codes / sizeof codes[0], JSONRPC_ERROR_COUNT);
    ck_assert_int_eq(jsonrpc_error_code(codes[_i].error), codes[_i].code);
    ck_assert_str_eq(jsonrpc_error_type(codes[_i].error), codes[_i].type);
    ck_assert_uint_gt(strlen(jsonrpc_error_message(codes[_i].error)), 0);
}
END_TEST

START_TEST(task_required_has_the_seeds_texts_first)
{
    struct buffer out;
    buffer_init(&out);
    jsonrpc_write_error(&out, STR("1"), JSONRPC_TASK_REQUIRED, STR_EMPTY,
                        &(struct jsonrpc_error_data){.tool = STR("delete_user"),
                                                     .reason = STR(DIALECT_REASON_REQUIRED),
                                                     .hint = STR(DIALECT_HINT_REQUIRED)});
    expect_written(&out,
                   "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32009,"
                   "\"message\":\"TaskRequired\",\"data\":{\"tool\":\"delete_user\","
                   "\"reason\":\"This operation requires approval and must be called with task "
                   "metadata\","
                   "\"hint\":\"Include task field: { \\\"task\\\": { \\\"ttl\\\": 600000 } }\","
                   "\"error_type\":\"task_required\",\"correlation_id\":\"" CORRELATION "\"}}}");
}
END_TEST

START_TEST(task_forbidden_has_the_seeds_texts_first)
{
    struct buffer out;
    buffer_init(&out);
    jsonrpc_write_error(&out, STR("\"a\""), JSONRPC_TASK_FORBIDDEN, STR_EMPTY,
                        &(struct jsonrpc_error_data){.tool = STR("read_file"),
                                                     .reason = STR(DIALECT_REASON_FORBIDDEN)});
    expect_written(&out,
                   "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"error\":{\"code\":-32010,"
                   "\"message\":\"TaskForbidden\",\"data\":{\"tool\":\"read_file\","
                   "\"reason\":\"This tool does not support task-augmented calls\","
                   "\"error_type\":\"task_forbidden\",\"correlation_id\":\"" CORRELATION "\"}}}");
}
END_TEST

START_TEST(data_has_all_its_members_in_order)
{
    struct buffer out;
    buffer_init(&out);
    jsonrpc_write_error_object(&out, JSONRPC_RATE_LIMITED, STR("too \"many\""),
                               &(struct jsonrpc_error_data){.tool = STR("t"),
                                                            .reason = STR("r"),
                                                            .hint = STR("h"),
                                                            .gate = STR("approval"),
                                                            .details = STR("a\nb"),
                                                            .retry_after = 7});
    expect_written(&out, "{\"code\":-32013,\"message\":\"too \\\"many\\\"\",\"data\":{"
                         "\"tool\":\"t\",\"reason\":\"r\",\"hint\":\"h\",\"gate\":\"approval\","
                         "\"details\":\"a\\nb\",\"retry_after\":7,\"error_type\":\"rate_limited\","
                         "\"correlation_id\":\"" CORRELATION "\"}}");
}
END_TEST

START_TEST(an_error_without_id_has_no_id_member)
{
    struct buffer out;
    buffer_init(&out);
    jsonrpc_write_error(&out, STR_EMPTY, JSONRPC_PARSE_ERROR, STR_EMPTY, NULL);
    expect_written(&out, "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,"
                         "\"message\":\"Parse error\",\"data\":{\"error_type\":\"parse_error\","
                         "\"correlation_id\":\"" CORRELATION "\"}}}");
}
END_TEST

START_TEST(correlation_ids_differ)
{
    struct buffer a, b;
    buffer_init(&a);
    buffer_init(&b);
    jsonrpc_write_error_object(&a, JSONRPC_INTERNAL, STR_EMPTY, NULL);
    jsonrpc_write_error_object(&b, JSONRPC_INTERNAL, STR_EMPTY, NULL);
    ck_assert(!str_equal(buffer_str(&a), buffer_str(&b)));
    buffer_finish(&a);
    buffer_finish(&b);
}
END_TEST

/* `lead` plain bytes, then characters of three bytes: 1 KB ends within one of them. */
static void expect_cut(size_t lead, size_t kept)
{
    struct buffer message, out;
    buffer_init(&message);
    buffer_init(&out);
    for (size_t i = 0; i < lead; i++)
        buffer_append_char(&message, 'x');
    for (size_t i = 0; i < 1024; i++)
        buffer_append_text(&message, "\xE2\x82\xAC");
    jsonrpc_write_error_object(&out, JSONRPC_INTERNAL, buffer_str(&message), NULL);
    const size_t head = sizeof "{\"code\":-32603,\"message\":\"" - 1;
    const char tail[] = "\",\"data\":";
    ck_assert_uint_gt(out.length, head + kept + sizeof tail);
    ck_assert_mem_eq(out.bytes + head, message.bytes, kept);
    ck_assert_mem_eq(out.bytes + head + kept, tail, sizeof tail - 1);
    buffer_finish(&message);
    buffer_finish(&out);
}

START_TEST(a_message_of_the_limit_is_whole)
{
    struct buffer out;
    buffer_init(&out);
    char message[1024]; /* nothing behind it may be read */
    memset(message, 'x', sizeof message);
    jsonrpc_write_error_object(&out, JSONRPC_INTERNAL, str_slice(message, sizeof message), NULL);
    ck_assert_ptr_nonnull(memmem(out.bytes, out.length, message, sizeof message));
    buffer_finish(&out);
}
END_TEST

START_TEST(a_long_message_is_cut_between_characters)
{
    expect_cut(0, 1023);
    expect_cut(1, 1024);
    expect_cut(2, 1022);
    expect_cut(1024, 1024);
    expect_cut(1022, 1022);
}
END_TEST

START_TEST(results_and_foreign_errors_stand_as_they_are)
{
    struct buffer out;
    buffer_init(&out);
    jsonrpc_write_result(&out, STR("\"7\""), STR("{\"a\" : 1}"));
    expect_written(&out, "{\"jsonrpc\":\"2.0\",\"id\":\"7\",\"result\":{\"a\" : 1}}");
    jsonrpc_write_error_text(&out, STR("7"), STR("{ \"code\":-32042,\"message\":\"m\"}"));
    expect_written(&out,
                   "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{ \"code\":-32042,\"message\":\"m\"}}");
}
END_TEST

START_TEST(a_cancelled_request_is_named_as_it_came)
{
    struct buffer out;
    buffer_init(&out);
    jsonrpc_write_cancelled(&out, STR("\"7\""), "expired");
    expect_written(&out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                         "\"params\":{\"requestId\":\"7\",\"reason\":\"expired\"}}");
}
END_TEST

START_TEST(the_reference_has_an_item_for_each_error)
{
    struct buffer out;
    buffer_init(&out);
    jsonrpc_write_error_reference(&out);
    char *text = buffer_take(&out, NULL);
    size_t items = 0;
    for (const char *item = text; (item = strstr(item, "</a>**-32")) != NULL; item++)
        items++;
    ck_assert_uint_eq(items, JSONRPC_ERROR_COUNT);
    ck_assert_ptr_nonnull(strstr(text, "- <a id=\"task_required\"></a>**-32009** `task_required` "
                                       "“TaskRequired”: The tool must be called as a task.\n"));
    ck_assert_ptr_nonnull(strstr(text, "- <a id=\"upstream_error-2\"></a>**-32002** "));
    free(text);
}
END_TEST

Suite *jsonrpc_suite(void)
{
    Suite *suite = suite_create("jsonrpc");
    TCase *tests = tcase_create("jsonrpc");
    tcase_add_loop_test(tests, every_error_has_its_number_and_type, 0,
                        (int)(sizeof codes / sizeof codes[0]));
    tcase_add_test(tests, task_required_has_the_seeds_texts_first);
    tcase_add_test(tests, task_forbidden_has_the_seeds_texts_first);
    tcase_add_test(tests, data_has_all_its_members_in_order);
    tcase_add_test(tests, an_error_without_id_has_no_id_member);
    tcase_add_test(tests, correlation_ids_differ);
    tcase_add_test(tests, a_message_of_the_limit_is_whole);
    tcase_add_test(tests, a_long_message_is_cut_between_characters);
    tcase_add_test(tests, results_and_foreign_errors_stand_as_they_are);
    tcase_add_test(tests, a_cancelled_request_is_named_as_it_came);
    tcase_add_test(tests, the_reference_has_an_item_for_each_error);
    suite_add_tcase(suite, tests);
    return suite;
}
