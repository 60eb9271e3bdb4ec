/* A task on the wire of the legacy era: every shape against its literal JSON. */
#include "mcp_test.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect.h"

#define ID "tg_550e8400-e29b-41d4-a716-446655440000"
#define RELATED "\"io.modelcontextprotocol/related-task\":{\"taskId\":\"" ID "\"}"
#define TIMES                                                                                      \
    "\"createdAt\":\"2026-01-12T22:30:00.000Z\",\"lastUpdatedAt\":\"2026-01-12T22:30:01.500Z\","   \
    "\"ttl\":600000,\"pollInterval\":5000"
#define CREATED_MS INT64_C(1768257000000)

static void set_text(char **field, const char *text)
{
    task_set_text(field, str_from(text));
}

static const struct dialect_view undecided = {.pending = DIALECT_PENDING_INPUT_REQUIRED},
                                 working = {.pending = DIALECT_PENDING_WORKING};

static struct task *make_task(enum task_state state)
{
    struct task *task = task_create(state);
    memcpy(task->id, ID, sizeof ID);
    set_text(&task->tool, "delete_user");
    task->ttl_ms = 600000;
    task->poll_interval_ms = 5000;
    task->created_ms = CREATED_MS;
    task->updated_ms = CREATED_MS + 1500;
    task->decide_by_ms = CREATED_MS + 600000;
    return task;
}

static void set_outcome(struct task *task, enum task_outcome outcome, const char *text)
{
    task->outcome = outcome;
    task->outcome_text = memory_copy_text(text);
    task->outcome_length = strlen(text);
}

START_TEST(states_have_their_words)
{
    static const char *const words[TASK_STATE_COUNT] = {
        [TASK_PENDING] = "input_required", [TASK_APPROVED] = "working",
        [TASK_EXECUTING] = "working",      [TASK_COMPLETED] = "completed",
        [TASK_FAILED] = "failed",          [TASK_CANCELLED] = "cancelled",
        [TASK_REJECTED] = "failed",        [TASK_EXPIRED] = "failed",
    };
    enum task_state state = (enum task_state)_i;
    ck_assert_str_eq(dialect_status(state, DIALECT_PENDING_INPUT_REQUIRED), words[state]);
    ck_assert_str_eq(dialect_status(state, DIALECT_PENDING_WORKING),
                     state == TASK_PENDING ? "working" : words[state]);
}
END_TEST

static const struct {
    enum task_state state;
    bool accelerated, decided;
    enum task_failure failure;
    enum task_outcome outcome;
    const char *outcome_text, *by, *reason, *stored, *message;
} messages[] = {
    {.state = TASK_PENDING, .message = "Awaiting approval"},
    {.state = TASK_PENDING, .stored = "anything else", .message = "Awaiting approval"},
    {.state = TASK_APPROVED, .decided = true, .message = "Approved, waiting to run"},
    {.state = TASK_APPROVED, .accelerated = true, .message = "Waiting to run"},
    {.state = TASK_APPROVED, .stored = "Sign in again", .message = "Sign in again"},
    {.state = TASK_EXECUTING, .message = "Running"},
    {.state = TASK_COMPLETED, .message = ""},
    {.state = TASK_COMPLETED, .stored = "Deleted 3", .message = "Deleted 3"},
    {.state = TASK_FAILED, .failure = TASK_FAILURE_UPSTREAM, .message = "Failed"},
    {.state = TASK_FAILED,
     .failure = TASK_FAILURE_UPSTREAM,
     .outcome = TASK_OUTCOME_RESULT,
     .outcome_text = "{\"isError\":true,\"message\":\"no\"}",
     .stored = "No such user",
     .message = "No such user"},
    {.state = TASK_FAILED,
     .failure = TASK_FAILURE_UPSTREAM,
     .outcome = TASK_OUTCOME_ERROR,
     .outcome_text = "{\"code\":1,\"message\":\"dis\\u0063 full\"}",
     .message = "disc full"},
    {.state = TASK_FAILED,
     .failure = TASK_FAILURE_UPSTREAM,
     .outcome = TASK_OUTCOME_ERROR,
     .outcome_text = "{\"code\":1}",
     .message = "Failed"},
    {.state = TASK_FAILED,
     .failure = TASK_FAILURE_OUTCOME_UNKNOWN,
     .message = "outcome unknown: the gateway stopped during the call, which may have run"},
    {.state = TASK_CANCELLED, .message = "Cancelled"},
    {.state = TASK_CANCELLED, .reason = "changed my mind", .message = "Cancelled: changed my mind"},
    {.state = TASK_REJECTED, .decided = true, .by = "alice", .message = "Rejected by alice"},
    {.state = TASK_REJECTED,
     .decided = true,
     .by = "alice",
     .reason = "no",
     .message = "Rejected by alice: no"},
    {.state = TASK_REJECTED, .decided = true, .message = "Rejected by an operator"},
    {.state = TASK_REJECTED, .by = "alice", .stored = "Turned down", .message = "Turned down"},
    {.state = TASK_EXPIRED, .message = "Timeout after 600s"},
    {.state = TASK_EXPIRED, .decided = true, .message = "Approved, but not run in time"},
    {.state = TASK_EXPIRED, .accelerated = true, .message = "Not run in time"},
};

START_TEST(messages_say_what_is_and_why)
{
    struct task *task = make_task(messages[_i].state);
    task->accelerated = messages[_i].accelerated;
    task->decided_ms = messages[_i].decided ? CREATED_MS + 1 : 0;
    task->failure = messages[_i].failure;
    if (messages[_i].outcome_text)
        set_outcome(task, messages[_i].outcome, messages[_i].outcome_text);
    set_text(&task->decided_by, messages[_i].by ? messages[_i].by : "");
    set_text(&task->reason, messages[_i].reason ? messages[_i].reason : "");
    set_text(&task->status_message, messages[_i].stored ? messages[_i].stored : "");
    struct buffer out;
    buffer_init(&out);
    dialect_status_message(task, &out);
    expect_written(&out, messages[_i].message);
    task_unref(task);
}
END_TEST

START_TEST(a_message_is_cut_between_characters)
{
    struct task *task = make_task(TASK_FAILED);
    struct buffer text;
    buffer_init(&text);
    for (size_t i = 0; i < 400; i++)
        buffer_append_text(&text, "\xE2\x82\xAC");
    task_set_text(&task->status_message, buffer_str(&text));
    buffer_finish(&text);
    struct buffer out;
    buffer_init(&out);
    dialect_status_message(task, &out);
    ck_assert_uint_eq(out.length, 1023);
    buffer_finish(&out);
    task_unref(task);
}
END_TEST

START_TEST(a_task_is_flat)
{
    struct task *task = make_task(TASK_PENDING);
    struct buffer out;
    buffer_init(&out);
    dialect_write_task(&out, task, &undecided);
    expect_written(&out, "{\"taskId\":\"" ID "\",\"status\":\"input_required\","
                         "\"statusMessage\":\"Awaiting approval\"," TIMES
                         ",\"toolName\":\"delete_user\"}");
    dialect_write_task(&out, task, &working);
    expect_written(&out, "{\"taskId\":\"" ID "\",\"status\":\"working\","
                         "\"statusMessage\":\"Awaiting approval\"," TIMES
                         ",\"toolName\":\"delete_user\"}");
    /* Optional members are left out, never null; an interval of 0 would make clients spin. */
    task->state = TASK_COMPLETED;
    task->poll_interval_ms = 0;
    set_text(&task->tool, "a\"b");
    dialect_write_task(&out, task, &undecided);
    expect_written(&out, "{\"taskId\":\"" ID "\",\"status\":\"completed\","
                         "\"createdAt\":\"2026-01-12T22:30:00.000Z\","
                         "\"lastUpdatedAt\":\"2026-01-12T22:30:01.500Z\",\"ttl\":600000,"
                         "\"toolName\":\"a\\\"b\"}");
    task_unref(task);
}
END_TEST

START_TEST(a_create_result_is_flat_and_nested)
{
    struct task *task = make_task(TASK_PENDING);
    struct buffer out;
    buffer_init(&out);
    dialect_legacy.write_create_result(&out, task, &undecided, STR("Wait \"here\""));
#define MEMBERS                                                                                    \
    "\"taskId\":\"" ID "\",\"status\":\"input_required\",\"statusMessage\":\"Awaiting "            \
    "approval\"," TIMES ",\"toolName\":\"delete_user\""
    expect_written(&out, "{" MEMBERS ",\"task\":{" MEMBERS "},\"_meta\":{" RELATED
                         ",\"io.modelcontextprotocol/model-immediate-response\":\"Wait "
                         "\\\"here\\\"\"}}");
    dialect_legacy.write_task(&out, task, &undecided);
    expect_written(&out, "{" MEMBERS ",\"_meta\":{" RELATED "}}");
    task_unref(task);
}
END_TEST

static void expect_immediate(const struct task *task, const char *expected)
{
    struct buffer out, text;
    buffer_init(&out);
    buffer_init(&text);
    dialect_legacy.write_create_result(&out, task, &undecided, STR_EMPTY);
    json_decode_string(
        json_path(buffer_str(&out), "_meta", "io.modelcontextprotocol/model-immediate-response"),
        &text);
    expect_written(&text, expected);
    buffer_finish(&out);
}

START_TEST(a_model_is_told_where_its_call_stands)
{
    struct task *task = make_task(TASK_PENDING);
    expect_immediate(task, "The call of delete_user waits for a person's approval. It has not run "
                           "yet; what comes of it will be the result of task " ID ".");
    task->state = TASK_APPROVED;
    task->accelerated = true;
    expect_immediate(task, "The call of delete_user runs as task " ID
                           ", and what comes of it will be its result.");
    task_unref(task);
}
END_TEST

START_TEST(an_execution_that_asks_is_input_required)
{
    static const struct dialect_view asking = {
        .is_asking = true,
        .changed_ms = CREATED_MS + 60000,
        .pending_elicitations = {"[{\"elicitationId\":\"e\"}]", 23},
    };
    struct task *task = make_task(TASK_EXECUTING);
    struct buffer out;
    buffer_init(&out);
#define ASKING                                                                                     \
    "\"taskId\":\"" ID "\",\"status\":\"input_required\",\"statusMessage\":\"Waiting for the "     \
    "client's answer\",\"createdAt\":\"2026-01-12T22:30:00.000Z\",\"lastUpdatedAt\":"              \
    "\"2026-01-12T22:31:00.000Z\",\"ttl\":600000,\"pollInterval\":5000,\"toolName\":"              \
    "\"delete_user\""
#define ELICITATIONS                                                                               \
    ",\"_meta\":{" RELATED ",\"io.modelcontextprotocol/pending-elicitations\":"                    \
    "[{\"elicitationId\":\"e\"}]}"
    dialect_write_task(&out, task, &asking);
    expect_written(&out, "{" ASKING "}");
    dialect_legacy.write_task(&out, task, &asking);
    expect_written(&out, "{" ASKING ELICITATIONS "}");
    dialect_write_status_notification(&out, task, &asking);
    expect_written(&out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/status\","
                         "\"params\":{" ASKING ELICITATIONS "}}");
    /* A late request gets the present state, not an earlier one. */
    task->state = TASK_COMPLETED;
    dialect_legacy.write_task(&out, task, &asking);
    expect_written(&out, "{\"taskId\":\"" ID "\",\"status\":\"completed\"," TIMES
                         ",\"toolName\":\"delete_user\",\"_meta\":{" RELATED "}}");
    task_unref(task);
}
END_TEST

START_TEST(a_message_is_tied_to_its_task)
{
    struct buffer out;
    buffer_init(&out);
    dialect_write_related_message(
        &out, STR("{\"id\":7,\"method\":\"m\",\"params\":{ \"a\":1.0,\"_meta\":{\"x\":1}}}"),
        STR_EMPTY, STR(ID));
    expect_written(&out,
                   "{\"id\":7,\"method\":\"m\",\"params\":{ \"a\":1.0,\"_meta\":{\"x\":1," RELATED
                   "}}}");
    dialect_write_related_message(&out, STR("{\"id\":7,\"method\":\"m\"}"), STR("\"n\""), STR(ID));
    expect_written(&out, "{\"id\":\"n\",\"method\":\"m\",\"params\":{\"_meta\":{" RELATED "}}}");
}
END_TEST

START_TEST(a_status_event_is_the_seeds)
{
    struct task *task = make_task(TASK_COMPLETED);
    struct buffer out;
    buffer_init(&out);
    dialect_write_status_event(&out, task, &undecided, CREATED_MS + 300000);
    expect_written(&out, "{\"taskId\":\"" ID "\",\"status\":\"completed\","
                         "\"timestamp\":\"2026-01-12T22:35:00.000Z\"}");
    task->state = TASK_FAILED;
    set_text(&task->status_message, "Upstream error");
    dialect_write_status_event(&out, task, &undecided, CREATED_MS + 360000);
    expect_written(&out,
                   "{\"taskId\":\"" ID "\",\"status\":\"failed\",\"statusMessage\":\"Upstream "
                   "error\",\"timestamp\":\"2026-01-12T22:36:00.000Z\"}");
    task_unref(task);
}
END_TEST

START_TEST(a_status_notification_has_a_full_task)
{
    struct task *task = make_task(TASK_APPROVED);
    struct buffer out;
    buffer_init(&out);
    dialect_write_status_notification(&out, task, &undecided);
    expect_written(&out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/status\","
                         "\"params\":{\"taskId\":\"" ID "\",\"status\":\"working\","
                         "\"statusMessage\":\"Approved, waiting to run\"," TIMES
                         ",\"toolName\":\"delete_user\"}}");
    task_unref(task);
}
END_TEST

#define ERROR_TAIL(type) "\"error_type\":\"" type "\",\"correlation_id\":\"" CORRELATION "\"}}}"
#define ERROR_HEAD(code, message)                                                                  \
    "{\"jsonrpc\":\"2.0\",\"id\":\"r\",\"error\":{\"code\":" code ",\"message\":\"" message        \
    "\",\"data\":{\"tool\":\"delete_user\","

static const struct {
    enum task_state state;
    bool accelerated, decided;
    enum task_failure failure;
    enum task_outcome outcome;
    const char *outcome_text, *by, *reason, *answer;
} answers[] = {
    {.state = TASK_COMPLETED,
     .outcome = TASK_OUTCOME_RESULT,
     .outcome_text = "{\"content\" : [ ],\"n\":1.0}",
     .answer = "{\"jsonrpc\":\"2.0\",\"id\":\"r\",\"result\":{\"content\" : [ ],\"n\":1.0,"
               "\"_meta\":{" RELATED "}}}"},
    {.state = TASK_COMPLETED,
     .outcome = TASK_OUTCOME_RESULT,
     .outcome_text = "{\"_meta\": {\"a\":1, \"z\":2 },\"content\":[]}",
     .answer = "{\"jsonrpc\":\"2.0\",\"id\":\"r\",\"result\":{\"_meta\": {\"a\":1, \"z\":2," RELATED
               " },\"content\":[]}}"},
    /* Upstream's own task id is not the one the client knows. */
    {.state = TASK_COMPLETED,
     .outcome = TASK_OUTCOME_RESULT,
     .outcome_text = "{\"_meta\":{\"io.modelcontextprotocol/related-task\":{\"taskId\":\"u\"}}}",
     .answer = "{\"jsonrpc\":\"2.0\",\"id\":\"r\",\"result\":{\"_meta\":{" RELATED "}}}"},
    {.state = TASK_COMPLETED,
     .outcome = TASK_OUTCOME_RESULT,
     .outcome_text = "[1]",
     .answer = "{\"jsonrpc\":\"2.0\",\"id\":\"r\",\"result\":[1]}"},
    {.state = TASK_FAILED,
     .failure = TASK_FAILURE_UPSTREAM,
     .outcome = TASK_OUTCOME_RESULT,
     .outcome_text = "{\"content\":[],\"isError\":true}",
     .answer = "{\"jsonrpc\":\"2.0\",\"id\":\"r\",\"result\":{\"content\":[],\"isError\":true,"
               "\"_meta\":{" RELATED "}}}"},
    {.state = TASK_FAILED,
     .failure = TASK_FAILURE_UPSTREAM,
     .outcome = TASK_OUTCOME_ERROR,
     .outcome_text = "{\"code\":-32042, \"message\":\"open\",\"data\":{\"elicitations\":[{}]}}",
     .answer = "{\"jsonrpc\":\"2.0\",\"id\":\"r\",\"error\":{\"code\":-32042, "
               "\"message\":\"open\",\"data\":{\"elicitations\":[{}]}}}"},
    {.state = TASK_FAILED,
     .failure = TASK_FAILURE_GATEWAY,
     .outcome = TASK_OUTCOME_ERROR,
     .outcome_text = "{\"code\":-32011,\"message\":\"drift\"}",
     .answer =
         "{\"jsonrpc\":\"2.0\",\"id\":\"r\",\"error\":{\"code\":-32011,\"message\":\"drift\"}}"},
    {.state = TASK_FAILED,
     .failure = TASK_FAILURE_OUTCOME_UNKNOWN,
     .answer =
         ERROR_HEAD("-32603", "The outcome of the call is unknown") ERROR_TAIL("outcome_unknown")},
    {.state = TASK_FAILED,
     .failure = TASK_FAILURE_GATEWAY,
     .answer = ERROR_HEAD("-32603", "Failed") ERROR_TAIL("internal")},
    {.state = TASK_REJECTED,
     .decided = true,
     .by = "alice",
     .reason = "not on a Friday",
     .answer = ERROR_HEAD(
         "-32007", "Rejected by: alice: not on a Friday") "\"reason\":\"not on a Friday\","
                                                          "\"gate\":\"approval\"," ERROR_TAIL(
                                                              "approval_rejected")},
    {.state = TASK_EXPIRED,
     .answer = ERROR_HEAD("-32008", "Timeout after 600s") "\"gate\":\"approval\"," ERROR_TAIL(
         "approval_timeout")},
    {.state = TASK_EXPIRED,
     .decided = true,
     .by = "alice",
     .answer =
         ERROR_HEAD("-32005", "Task expired") "\"gate\":\"approval\"," ERROR_TAIL("task_expired")},
    {.state = TASK_EXPIRED,
     .accelerated = true,
     .answer =
         ERROR_HEAD("-32005", "Task expired") "\"gate\":\"approval\"," ERROR_TAIL("task_expired")},
    {.state = TASK_CANCELLED,
     .answer = ERROR_HEAD("-32006", "Task cancelled") ERROR_TAIL("task_cancelled")},
    /* Cancelled while it ran: a later result does not count. */
    {.state = TASK_CANCELLED,
     .outcome = TASK_OUTCOME_RESULT,
     .outcome_text = "{}",
     .answer = ERROR_HEAD("-32006", "Task cancelled") ERROR_TAIL("task_cancelled")},
};

START_TEST(a_task_that_ended_is_answered_as_it_ended)
{
    struct task *task = make_task(answers[_i].state);
    task->accelerated = answers[_i].accelerated;
    task->decided_ms = answers[_i].decided ? CREATED_MS + 1 : 0;
    task->failure = answers[_i].failure;
    if (answers[_i].outcome_text)
        set_outcome(task, answers[_i].outcome, answers[_i].outcome_text);
    set_text(&task->decided_by, answers[_i].by ? answers[_i].by : "");
    set_text(&task->reason, answers[_i].reason ? answers[_i].reason : "");
    struct buffer out;
    buffer_init(&out);
    dialect_write_task_answer(&out, STR("\"r\""), task);
    ck_assert(json_check(buffer_str(&out), NULL));
    expect_written(&out, answers[_i].answer);
    task_unref(task);
}
END_TEST

START_TEST(progress_names_its_token_and_task)
{
    struct buffer out;
    buffer_init(&out);
    dialect_write_progress(&out, STR("\"t\""), 15, STR("Awaiting approval"), STR(ID));
    expect_written(&out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
                         "\"progressToken\":\"t\",\"progress\":15,\"message\":\"Awaiting "
                         "approval\",\"_meta\":{" RELATED "}}}");
    dialect_write_progress(&out, STR("7"), 0, STR_EMPTY, STR(ID));
    expect_written(&out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
                         "\"progressToken\":7,\"progress\":0,\"_meta\":{" RELATED "}}}");
}
END_TEST

START_TEST(upstreams_progress_gets_the_clients_token)
{
    struct buffer out;
    buffer_init(&out);
    dialect_rewrite_progress(&out,
                             STR("{\"method\":\"notifications/progress\", \"params\":{\"total\" : "
                                 "2.50,\"progressToken\":\"tg:1\",\"progress\":1,\"_meta\":{"
                                 "\"k\":[]}},\"jsonrpc\":\"2.0\"}"),
                             STR("9"), STR(ID));
    expect_written(&out, "{\"method\":\"notifications/progress\", \"params\":{\"total\" : 2.50,"
                         "\"progressToken\":9,\"progress\":1,\"_meta\":{\"k\":[]," RELATED
                         "}},\"jsonrpc\":\"2.0\"}");
}
END_TEST

START_TEST(a_ttl_is_a_positive_integer)
{
    static const struct {
        const char *task;
        enum dialect_ttl verdict;
        int64_t ttl_ms;
    } rows[] = {
        {"{}", DIALECT_TTL_OK, 600000},
        {"{\"other\":null}", DIALECT_TTL_OK, 600000},
        {"{\"ttl\":1}", DIALECT_TTL_OK, 1},
        {"{ \"ttl\" : 60000 }", DIALECT_TTL_OK, 60000},
        {"{\"t\\u0074l\":60000}", DIALECT_TTL_OK, 60000},
        {"{\"ttl\":86400000}", DIALECT_TTL_OK, 86400000},
        {"{\"ttl\":86400001}", DIALECT_TTL_CLAMPED, 86400000},
        {"{\"ttl\":9223372036854775807}", DIALECT_TTL_CLAMPED, 86400000},
        {"{\"ttl\":18446744073709551615}", DIALECT_TTL_CLAMPED, 86400000},
        {"{\"ttl\":18446744073709551616}", DIALECT_TTL_CLAMPED, 86400000},
        {"{\"ttl\":1000000000000000000000000000000000000}", DIALECT_TTL_CLAMPED, 86400000},
        {"{\"ttl\":0}", DIALECT_TTL_INVALID, -1},
        {"{\"ttl\":-0}", DIALECT_TTL_INVALID, -1},
        {"{\"ttl\":-1}", DIALECT_TTL_INVALID, -1},
        {"{\"ttl\":1.5}", DIALECT_TTL_INVALID, -1},
        {"{\"ttl\":1.0}", DIALECT_TTL_INVALID, -1},
        {"{\"ttl\":1e3}", DIALECT_TTL_INVALID, -1},
        {"{\"ttl\":null}", DIALECT_TTL_INVALID, -1},
        {"{\"ttl\":\"60000\"}", DIALECT_TTL_INVALID, -1},
        {"{\"ttl\":true}", DIALECT_TTL_INVALID, -1},
        {"{\"ttl\":{}}", DIALECT_TTL_INVALID, -1},
        {"null", DIALECT_TTL_INVALID, -1},
        {"[]", DIALECT_TTL_INVALID, -1},
        {"true", DIALECT_TTL_INVALID, -1},
        {"\"x\"", DIALECT_TTL_INVALID, -1},
        {"", DIALECT_TTL_INVALID, -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t ttl_ms = -1;
        ck_assert_msg(dialect_read_ttl(str_from(rows[i].task), 600000, 86400000, &ttl_ms) ==
                          rows[i].verdict,
                      "%s", rows[i].task);
        ck_assert_msg(ttl_ms == rows[i].ttl_ms, "%s gave %lld", rows[i].task, (long long)ttl_ms);
    }
}
END_TEST

Suite *dialect_suite(void)
{
    Suite *suite = suite_create("dialect");
    TCase *tests = tcase_create("dialect");
    tcase_add_loop_test(tests, states_have_their_words, 0, TASK_STATE_COUNT);
    tcase_add_loop_test(tests, messages_say_what_is_and_why, 0,
                        (int)(sizeof messages / sizeof messages[0]));
    tcase_add_test(tests, a_message_is_cut_between_characters);
    tcase_add_test(tests, a_task_is_flat);
    tcase_add_test(tests, a_create_result_is_flat_and_nested);
    tcase_add_test(tests, a_model_is_told_where_its_call_stands);
    tcase_add_test(tests, an_execution_that_asks_is_input_required);
    tcase_add_test(tests, a_message_is_tied_to_its_task);
    tcase_add_test(tests, a_status_event_is_the_seeds);
    tcase_add_test(tests, a_status_notification_has_a_full_task);
    tcase_add_loop_test(tests, a_task_that_ended_is_answered_as_it_ended, 0,
                        (int)(sizeof answers / sizeof answers[0]));
    tcase_add_test(tests, progress_names_its_token_and_task);
    tcase_add_test(tests, upstreams_progress_gets_the_clients_token);
    tcase_add_test(tests, a_ttl_is_a_positive_integer);
    suite_add_tcase(suite, tests);
    return suite;
}
