/* The demands of the official clients: key sets and types of all output. */
#include "mcp_test.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/capabilities.h"
#include "taskgate/mcp/dialect.h"
#include "taskgate/mcp/jsonrpc.h"

/* One member a shape may have; everything else it has is an error. */
struct demand {
    const char *key;
    enum json_type type;
    bool is_optional;
};
#define OPTIONAL true
#define REQUIRED false

static const struct demand task_shape[] = {
    {"taskId", JSON_STRING, REQUIRED},
    {"status", JSON_STRING, REQUIRED},
    {"statusMessage", JSON_STRING, OPTIONAL},
    {"createdAt", JSON_STRING, REQUIRED},
    {"lastUpdatedAt", JSON_STRING, REQUIRED},
    {"ttl", JSON_NUMBER, REQUIRED},
    {"pollInterval", JSON_NUMBER, OPTIONAL},
    {"toolName", JSON_STRING, REQUIRED},
    {"task", JSON_OBJECT, OPTIONAL},
    {"_meta", JSON_OBJECT, OPTIONAL},
    {NULL, JSON_NONE, OPTIONAL},
};
static const struct demand error_message_shape[] = {
    {"jsonrpc", JSON_STRING, REQUIRED},
    {"id", JSON_STRING, OPTIONAL},
    {"error", JSON_OBJECT, REQUIRED},
    {NULL, JSON_NONE, OPTIONAL},
};
static const struct demand result_message_shape[] = {
    {"jsonrpc", JSON_STRING, REQUIRED},
    {"id", JSON_STRING, REQUIRED},
    {"result", JSON_OBJECT, REQUIRED},
    {NULL, JSON_NONE, OPTIONAL},
};
static const struct demand error_shape[] = {
    {"code", JSON_NUMBER, REQUIRED},
    {"message", JSON_STRING, REQUIRED},
    {"data", JSON_OBJECT, OPTIONAL},
    {NULL, JSON_NONE, OPTIONAL},
};
static const struct demand notification_shape[] = {
    {"jsonrpc", JSON_STRING, REQUIRED},
    {"method", JSON_STRING, REQUIRED},
    {"params", JSON_OBJECT, REQUIRED},
    {NULL, JSON_NONE, OPTIONAL},
};
static const struct demand task_capability_shape[] = {
    {"list", JSON_OBJECT, REQUIRED},
    {"cancel", JSON_OBJECT, REQUIRED},
    {"requests", JSON_OBJECT, REQUIRED},
    {NULL, JSON_NONE, OPTIONAL},
};

static void expect_shape(struct str object, const struct demand *demands)
{
    ck_assert_msg(json_check(object, NULL), "no JSON: %.*s", STR_ARGS(object));
    ck_assert(json_type(object) == JSON_OBJECT);
    size_t known = 0;
    for (const struct demand *demand = demands; demand->key; demand++) {
        struct str value = json_member(object, demand->key);
        if (value.length == 0 && demand->is_optional)
            continue;
        ck_assert_msg(json_type(value) == demand->type, "%s in %.*s", demand->key,
                      STR_ARGS(object));
        known++;
    }
    ck_assert_msg(json_count(object) == known, "an unknown member in %.*s", STR_ARGS(object));
}

/* RFC 3339 in UTC with milliseconds. */
static void expect_time(struct str value)
{
    static const char form[] = "\"0000-00-00T00:00:00.000Z\"";
    ck_assert_uint_eq(value.length, sizeof form - 1);
    for (size_t i = 0; i < value.length; i++) {
        bool is_digit = value.bytes[i] >= '0' && value.bytes[i] <= '9';
        ck_assert(form[i] == '0' ? is_digit : value.bytes[i] == form[i]);
    }
}

static void expect_task(struct str task)
{
    static const char *const statuses[] = {"working", "input_required", "completed", "failed",
                                           "cancelled"};
    expect_shape(task, task_shape);
    expect_time(json_member(task, "createdAt"));
    expect_time(json_member(task, "lastUpdatedAt"));
    bool is_known = false;
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        is_known |= json_string_equals(json_member(task, "status"), str_from(statuses[i]));
    ck_assert(is_known);
}

/* A task in `state` with texts that must not get out of their strings. */
static const struct dialect_view undecided = {.pending = DIALECT_PENDING_INPUT_REQUIRED},
                                 working = {.pending = DIALECT_PENDING_WORKING};

static struct task *make_task(enum task_state state)
{
    struct task *task = task_create(state);
    task_set_text(&task->tool, STR("t\",\"x\":{\n\xFF\xE2\x80\xAE"));
    task_set_text(&task->reason, STR("\\\"}"));
    task_set_text(&task->decided_by, STR("\x1B[2J"));
    task->ttl_ms = 1;
    task->poll_interval_ms = 1000;
    task->created_ms = task->updated_ms = 1;
    return task;
}

START_TEST(tasks_in_every_state)
{
    struct task *task = make_task((enum task_state)_i);
    struct buffer out;
    buffer_init(&out);
    dialect_write_task(&out, task, &undecided);
    expect_task(buffer_str(&out));
    buffer_clear(&out);
    dialect_legacy.write_create_result(&out, task, &working, STR_EMPTY);
    expect_task(buffer_str(&out));
    expect_task(json_member(buffer_str(&out), "task"));
    buffer_clear(&out);
    dialect_legacy.write_task(&out, task, &undecided);
    expect_task(buffer_str(&out));
    ck_assert(json_member(buffer_str(&out), "task").length == 0);
    buffer_clear(&out);
    dialect_write_status_notification(&out, task, &undecided);
    expect_shape(buffer_str(&out), notification_shape);
    expect_task(json_member(buffer_str(&out), "params"));
    buffer_finish(&out);
    task_unref(task);
}
END_TEST

/* Members beyond the envelope make the official client time out in silence over SSE. */
START_TEST(answers_in_every_final_state)
{
    enum task_state state = (enum task_state)_i;
    if (!task_state_is_terminal(state))
        return;
    struct task *task = make_task(state);
    struct buffer out;
    buffer_init(&out);
    dialect_write_task_answer(&out, STR("\"1\""), task);
    expect_shape(buffer_str(&out), error_message_shape);
    expect_shape(json_member(buffer_str(&out), "error"), error_shape);
    buffer_clear(&out);

    task->outcome = TASK_OUTCOME_RESULT;
    task->outcome_text = memory_copy_text("{\"content\":[]}");
    task->outcome_length = strlen(task->outcome_text);
    dialect_write_task_answer(&out, STR("\"1\""), task);
    bool has_run = state == TASK_COMPLETED || state == TASK_FAILED;
    expect_shape(buffer_str(&out), has_run ? result_message_shape : error_message_shape);
    buffer_finish(&out);
    task_unref(task);
}
END_TEST

START_TEST(errors_of_the_table)
{
    struct buffer out;
    buffer_init(&out);
    jsonrpc_write_error(&out, _i % 2 ? STR("\"1\"") : STR_EMPTY, (enum jsonrpc_error)_i, STR_EMPTY,
                        &(struct jsonrpc_error_data){.tool = STR("\"\x01\xFF")});
    expect_shape(buffer_str(&out), error_message_shape);
    struct str error = json_member(buffer_str(&out), "error");
    expect_shape(error, error_shape);
    ck_assert(json_type(json_path(error, "data", "error_type")) == JSON_STRING);
    ck_assert(json_type(json_path(error, "data", "correlation_id")) == JSON_STRING);
    buffer_finish(&out);
}
END_TEST

START_TEST(capabilities_of_tasks_are_objects)
{
    static const char *const results[] = {
        "{}",
        "{\"capabilities\":{\"tasks\":{\"list\":true,\"cancel\":1,\"requests\":[]}}}",
        "{\"capabilities\":{\"tasks\":{\"requests\":{\"tools\":{\"call\":true}}}}}",
    };
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        struct buffer out;
        buffer_init(&out);
        mcp_capabilities_inject(&out, str_from(results[i]),
                                &(struct mcp_capabilities){.tasks = false});
        struct str tasks = json_path(buffer_str(&out), "capabilities", "tasks");
        expect_shape(tasks, task_capability_shape);
        ck_assert(json_type(json_path(tasks, "requests", "tools")) == JSON_OBJECT);
        ck_assert(json_type(json_path(tasks, "requests", "tools", "call")) == JSON_OBJECT);
        ck_assert(json_type(json_path(tasks, "requests", "tools/call")) == JSON_TRUE);
        buffer_finish(&out);
    }
}
END_TEST

Suite *clients_suite(void)
{
    Suite *suite = suite_create("clients");
    TCase *tests = tcase_create("clients");
    tcase_add_loop_test(tests, tasks_in_every_state, 0, TASK_STATE_COUNT);
    tcase_add_loop_test(tests, answers_in_every_final_state, 0, TASK_STATE_COUNT);
    tcase_add_loop_test(tests, errors_of_the_table, 0, JSONRPC_ERROR_COUNT);
    tcase_add_test(tests, capabilities_of_tasks_are_objects);
    suite_add_tcase(suite, tests);
    return suite;
}
