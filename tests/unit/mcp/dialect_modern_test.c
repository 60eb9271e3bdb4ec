/* A task on the wire of the modern era: every shape against its literal JSON. */
#include "mcp_test.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect_modern.h"
#include "taskgate/mcp/question.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define ID "tg_550e8400-e29b-41d4-a716-446655440000"
#define CREATED_MS INT64_C(1768257000000)
/* Decided by 10 minutes after the create, and kept for an hour from there. */
#define TTL_UNDECIDED "4200000"
/* Without a deadline: an hour from the last change. */
#define TTL_RUNNING "3601500"
#define HEAD(status, message)                                                                      \
    "\"taskId\":\"" ID "\",\"status\":\"" status "\"" message                                      \
    ",\"createdAt\":\"2026-01-12T22:30:00.000Z\",\"lastUpdatedAt\":\"2026-01-12T22:30:01.500Z\""
#define MESSAGE(text) ",\"statusMessage\":\"" text "\""
#define TAIL(ttl) ",\"ttlMs\":" ttl ",\"pollIntervalMs\":1000"
#define AWAITING MESSAGE("Awaiting approval: workflow prod decides until 2026-01-12T22:40:00.000Z")

static const struct dialect_view plain = {.now_ms = CREATED_MS + 2000};

static void set_text(char **field, const char *text)
{
    task_set_text(field, str_from(text));
}

static struct task *make_task(enum task_state state)
{
    struct task *task = task_create(state);
    memcpy(task->id, ID, sizeof ID);
    set_text(&task->tool, "delete_user");
    set_text(&task->workflow, "prod");
    task->ttl_ms = 600000;
    task->poll_interval_ms = 5000;
    task->created_ms = CREATED_MS;
    task->updated_ms = CREATED_MS + 1500;
    task->decide_by_ms = CREATED_MS + 600000;
    task->ended_ms = task_state_is_terminal(state) ? CREATED_MS + 1500 : 0;
    return task;
}

static void set_outcome(struct task *task, enum task_outcome outcome, const char *text)
{
    if (!text)
        return;
    task->outcome = outcome;
    task->outcome_text = memory_copy_text(text);
    task->outcome_length = strlen(text);
}

#define OWN_ERROR(code, message, data, type)                                                       \
    ",\"error\":{\"code\":" code ",\"message\":\"" message                                         \
    "\",\"data\":{\"tool\":\"delete_user\"" data ",\"error_type\":\"" type                         \
    "\",\"correlation_id\":\"" CORRELATION "\"}}"
#define GATE ",\"gate\":\"approval\""

static const struct {
    enum task_state state;
    bool is_decided;
    enum task_failure failure;
    enum task_outcome outcome;
    const char *outcome_text, *by, *reason, *expected;
} rows[] = {
    {.state = TASK_PENDING, .expected = HEAD("working", AWAITING) TAIL(TTL_UNDECIDED)},
    {.state = TASK_APPROVED,
     .is_decided = true,
     .expected = HEAD("working", MESSAGE("Approved, waiting to run")) TAIL(TTL_RUNNING)},
    {.state = TASK_EXECUTING,
     .is_decided = true,
     .expected = HEAD("working", MESSAGE("Running")) TAIL(TTL_RUNNING)},
    {.state = TASK_COMPLETED,
     .outcome = TASK_OUTCOME_RESULT,
     .outcome_text = "{ \"resultType\":\"complete\", \"content\":[],\"n\":1.0}",
     .expected = HEAD("completed", "")
         TAIL(TTL_RUNNING) ",\"result\":{ \"resultType\":\"complete\", \"content\":[],\"n\":1.0}"},
    /* The member that clients of the extension need, of a server that left it out. */
    {.state = TASK_COMPLETED,
     .outcome = TASK_OUTCOME_RESULT,
     .outcome_text = "{\"content\":[]}",
     .expected = HEAD("completed", "")
         TAIL(TTL_RUNNING) ",\"result\":{\"content\":[],\"resultType\":\"complete\"}"},
    /* isError is a result, not a failure. */
    {.state = TASK_FAILED,
     .failure = TASK_FAILURE_UPSTREAM,
     .outcome = TASK_OUTCOME_RESULT,
     .outcome_text = "{\"resultType\":\"complete\",\"isError\":true,\"content\":[]}",
     .expected = HEAD("completed", MESSAGE("Failed")) TAIL(
         TTL_RUNNING) ",\"result\":{\"resultType\":\"complete\",\"isError\":true,\"content\":[]}"},
    {.state = TASK_FAILED,
     .failure = TASK_FAILURE_UPSTREAM,
     .outcome = TASK_OUTCOME_ERROR,
     .outcome_text = "{\"code\": -32050, \"message\":\"disc full\",\"data\":{\"n\":1.0}}",
     .expected = HEAD("failed", MESSAGE("disc full"))
         TAIL(TTL_RUNNING) ",\"error\":{\"code\": -32050, \"message\":\"disc "
                           "full\",\"data\":{\"n\":1.0}}"},
    {.state = TASK_FAILED,
     .failure = TASK_FAILURE_OUTCOME_UNKNOWN,
     .expected = HEAD("failed", MESSAGE("outcome unknown: the gateway stopped during the call, "
                                        "which may have run")) TAIL(TTL_RUNNING)
         OWN_ERROR("-32603", "The outcome of the call is unknown", "", "outcome_unknown")},
    {.state = TASK_REJECTED,
     .is_decided = true,
     .by = "alice",
     .reason = "not on a Friday",
     .expected = HEAD("failed", MESSAGE("Rejected by alice: not on a Friday")) TAIL(TTL_RUNNING)
         OWN_ERROR("-32007", "Rejected by: alice: not on a Friday",
                   ",\"reason\":\"not on a Friday\"" GATE, "approval_rejected")},
    {.state = TASK_EXPIRED,
     .expected = HEAD("failed", MESSAGE("Timeout after 600s")) TAIL(TTL_RUNNING)
         OWN_ERROR("-32008", "Timeout after 600s", GATE, "approval_timeout")},
    {.state = TASK_EXPIRED,
     .is_decided = true,
     .expected = HEAD("failed", MESSAGE("Approved, but not run in time")) TAIL(TTL_RUNNING)
         OWN_ERROR("-32005", "Task expired", GATE, "task_expired")},
    {.state = TASK_CANCELLED,
     .expected = HEAD("cancelled", MESSAGE("Cancelled")) TAIL(TTL_RUNNING)},
    /* A stored result that cannot be shown as one is no success. */
    {.state = TASK_COMPLETED,
     .outcome = TASK_OUTCOME_RESULT,
     .outcome_text = "[1]",
     .expected = HEAD("failed", "") TAIL(TTL_RUNNING)
         OWN_ERROR("-32603", "Internal error", "", "internal")},
};

static struct task *task_of_row(int i)
{
    struct task *task = make_task(rows[i].state);
    task->decided_ms = rows[i].is_decided ? CREATED_MS + 1 : 0;
    task->failure = rows[i].failure;
    set_outcome(task, rows[i].outcome, rows[i].outcome_text);
    set_text(&task->decided_by, rows[i].by ? rows[i].by : "");
    set_text(&task->reason, rows[i].reason ? rows[i].reason : "");
    return task;
}

START_TEST(a_state_is_shown_as_the_extension_has_it)
{
    struct task *task = task_of_row(_i);
    struct buffer out;
    char *expected = memory_format("{\"resultType\":\"complete\",%s}", rows[_i].expected);
    buffer_init(&out);
    dialect_modern.write_task(&out, task, &plain);
    expect_written(&out, expected);
    free(expected);
    task_unref(task);
}
END_TEST

START_TEST(a_notification_has_the_whole_task)
{
    struct task *task = task_of_row(_i);
    struct buffer out;
    char *expected =
        memory_format("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks\",\"params\":{%s,"
                      "\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":\"listen:0\"}}}",
                      rows[_i].expected);
    buffer_init(&out);
    dialect_modern_write_notification(&out, task, &plain, STR("\"listen:0\""));
    expect_written(&out, expected);
    free(expected);
    task_unref(task);
}
END_TEST

START_TEST(a_create_is_flat_and_always_working)
{
    struct task *task = make_task(TASK_PENDING);
    struct buffer out;
    buffer_init(&out);
    dialect_modern.write_create_result(&out, task, &plain, STR_EMPTY);
    expect_written(&out,
                   "{\"resultType\":\"task\"," HEAD("working", AWAITING) TAIL(TTL_UNDECIDED) "}");
    task_unref(task);
    task = make_task(TASK_COMPLETED);
    set_outcome(task, TASK_OUTCOME_RESULT, "{\"content\":[]}");
    dialect_modern.write_create_result(&out, task, &plain, STR_EMPTY);
    expect_written(&out, "{\"resultType\":\"task\"," HEAD("working", "") TAIL(TTL_RUNNING) "}");
    task_unref(task);
}
END_TEST

START_TEST(only_a_server_that_waits_makes_it_input_required)
{
    static const struct dialect_view asking = {
        .now_ms = CREATED_MS + 61000,
        .changed_ms = CREATED_MS + 60000,
        .input_requests = {"{\"r1:a\":{\"method\":\"roots/list\"}}", 32},
    };
    struct task *task = make_task(TASK_EXECUTING);
    struct buffer out;
    buffer_init(&out);
    dialect_modern.write_task(&out, task, &asking);
    expect_written(&out,
                   "{\"resultType\":\"complete\",\"taskId\":\"" ID
                   "\",\"status\":\"input_required\",\"statusMessage\":\"Waiting for the "
                   "client's answer\",\"createdAt\":\"2026-01-12T22:30:00.000Z\","
                   "\"lastUpdatedAt\":\"2026-01-12T22:31:00.000Z\"" TAIL(
                       TTL_RUNNING) ",\"inputRequests\":{\"r1:a\":{\"method\":\"roots/list\"}}}");
    for (int state = 0; state < TASK_STATE_COUNT; state++) {
        task->state = (enum task_state)state;
        buffer_clear(&out);
        dialect_modern.write_task(&out, task, &asking);
        ck_assert_int_eq(
            json_string_equals(json_member(buffer_str(&out), "status"), STR("input_required")),
            state == TASK_EXECUTING);
    }
    buffer_finish(&out);
    task_unref(task);
}
END_TEST

START_TEST(a_client_polls_less_often_when_nobody_decides)
{
    struct dialect_view view = {.now_ms = CREATED_MS + 59999};
    struct task *task = make_task(TASK_PENDING);
    for (int i = 0; i < 2; i++, view.now_ms++) {
        struct buffer out;
        buffer_init(&out);
        dialect_modern.write_task(&out, task, &view);
        buffer_append_char(&out, '\0');
        ck_assert_ptr_nonnull(
            strstr(out.bytes, i ? "\"pollIntervalMs\":5000" : "\"pollIntervalMs\":1000"));
        buffer_finish(&out);
    }
    task_unref(task);
}
END_TEST

static const struct {
    const char *capabilities;
    bool declares;
} capabilities[] = {
    {"{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}", true},
    {"{\"extensions\":{\"a/b\":{},\"io.modelcontextprotocol\\/tasks\":{}}}", true},
    {"{\"extensions\":{\"io.modelcontextprotocol/tasks\":true}}", false},
    {"{\"extensions\":{\"io.modelcontextprotocol/tasks\":null}}", false},
    {"{\"extensions\":{\"io.modelcontextprotocol/ui\":{}}}", false},
    {"{\"tasks\":{\"requests\":{\"tools\":{\"call\":{}}}}}", false},
    {"{\"io.modelcontextprotocol/tasks\":{}}", false},
    {"{}", false},
    {"", false},
};

START_TEST(the_extension_is_declared_by_an_object)
{
    ck_assert_int_eq(mcp_declares_task_extension(str_from(capabilities[_i].capabilities)),
                     capabilities[_i].declares);
}
END_TEST

#define FORM "{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"form\"}}"
#define LINK "{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"url\"}}"
#define SAMPLE "{\"method\":\"sampling/createMessage\"}"

static const struct {
    const char *capabilities, *requests;
    bool declares;
} asked[] = {
    {"{}", "{}", true},
    {"{}", "{\"a\":" FORM "}", false},
    {"{\"elicitation\":{}}", "{\"a\":" FORM "}", true},
    {"{\"elicitation\":{}}", "{\"a\":{\"method\":\"elicitation/create\"}}", true},
    {"{\"elicitation\":{\"form\":{}}}", "{\"a\":" FORM "}", true},
    {"{\"elicitation\":{\"url\":{}}}", "{\"a\":" FORM "}", false},
    {"{\"elicitation\":true}", "{\"a\":" FORM "}", false},
    {"{\"elicitation\":{}}", "{\"a\":" LINK "}", false},
    {"{\"elicitation\":{\"url\":{}}}", "{\"a\":" LINK "}", true},
    {"{\"elicitation\":{}}", "{\"a\":" FORM ",\"b\":" SAMPLE "}", false},
    {"{\"elicitation\":{},\"sampling\":{}}", "{\"a\":" FORM ",\"b\":" SAMPLE "}", true},
    {"{\"sampling\":{}}", "{\"a\":{\"method\":\"roots/list\"}}", false},
    {"{\"roots\":{}}", "{\"a\":{\"method\":\"roots/list\"}}", true},
    {"{\"roots\":{}}", "{\"a\":{\"method\":\"ping\"}}", false},
};

START_TEST(only_what_is_declared_may_be_asked)
{
    ck_assert_int_eq(
        mcp_may_ask_all(str_from(asked[_i].capabilities), str_from(asked[_i].requests)),
        asked[_i].declares);
}
END_TEST

/* MCP 2026-07-28 forbids -32002. A server's own error stays as it is. */
START_TEST(the_gateways_own_failure_has_no_forbidden_code)
{
    static const struct {
        enum task_failure failure;
        const char *code;
    } whose[] = {{TASK_FAILURE_GATEWAY, "-32603"}, {TASK_FAILURE_UPSTREAM, "-32002"}};
    for (size_t i = 0; i < COUNT_OF(whose); i++) {
        struct task *task = make_task(TASK_FAILED);
        struct buffer answer, expected;
        buffer_init(&answer);
        buffer_init(&expected);
        task->failure = whose[i].failure;
        set_outcome(task, TASK_OUTCOME_ERROR, "{\"code\":-32002,\"message\":\"m\"}");
        dialect_modern.write_answer(&answer, STR("7"), task);
        buffer_append_format(
            &expected, "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":%s,\"message\":\"m\"}}",
            whose[i].code);
        ck_assert_msg(str_equal(buffer_str(&answer), buffer_str(&expected)), "%.*s",
                      STR_ARGS(buffer_str(&answer)));
        buffer_finish(&expected);
        buffer_finish(&answer);
        task_unref(task);
    }
}
END_TEST

Suite *dialect_modern_suite(void)
{
    Suite *suite = suite_create("dialect_modern");
    TCase *tests = tcase_create("dialect_modern");
    tcase_add_loop_test(tests, a_state_is_shown_as_the_extension_has_it, 0, (int)COUNT_OF(rows));
    tcase_add_loop_test(tests, a_notification_has_the_whole_task, 0, (int)COUNT_OF(rows));
    tcase_add_test(tests, a_create_is_flat_and_always_working);
    tcase_add_test(tests, only_a_server_that_waits_makes_it_input_required);
    tcase_add_test(tests, a_client_polls_less_often_when_nobody_decides);
    tcase_add_loop_test(tests, the_extension_is_declared_by_an_object, 0,
                        (int)COUNT_OF(capabilities));
    tcase_add_loop_test(tests, only_what_is_declared_may_be_asked, 0, (int)COUNT_OF(asked));
    tcase_add_test(tests, the_gateways_own_failure_has_no_forbidden_code);
    suite_add_tcase(suite, tests);
    return suite;
}
