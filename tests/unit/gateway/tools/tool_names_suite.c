/* One client's version of a text that speaks of the gateway's own tools. */
#include "suites.h"
#include "tools/tools.h"

#define BIT(tool) (1U << PSEUDO_TOOL_##tool)
#define ALL ((1U << PSEUDO_TOOL_COUNT) - 1)

static const struct {
    unsigned offered, prefixed;
    const char *text, *filled;
} rows[] = {
    {ALL, 0, "", ""},
    {ALL, 0, "no names", "no names"},
    {ALL, 0, "see {get_task}.", "see get_task."},
    {ALL, BIT(GET_TASK), "see {get_task}, {get_task_result}", "see own-get_task, get_task_result"},
    {ALL, 0, "{\"a\":{}} {unknown} {get_task {", "{\"a\":{}} {unknown} {get_task {"},
    {ALL, 0, "[[see {get_task}||wait]]!", "see get_task!"},
    {ALL & ~BIT(GET_TASK), 0, "[[see {get_task}||wait]]!", "wait!"},
    {ALL & ~BIT(GET_TASK), 0, "a[[; see {get_task}]].", "a."},
    {BIT(GET_LOGS), 0, "[[{get_task} or {get_logs}||{get_task}||{get_logs}]]", "get_logs"},
    {BIT(GET_LOGS), BIT(GET_LOGS), "[[{get_logs}]][[{get_task}]] end", "own-get_logs end"},
    {0, 0, "[[{get_logs}||{get_task}]]", ""},
    {ALL, 0, "[1] -> [(x)] | y", "[1] -> [(x)] | y"},
    {ALL, 0, "[[open {get_task}", "open get_task"},
};

START_TEST(names_are_filled_in_as_they_are_offered)
{
    const struct tool_names names = {"own-", rows[_i].offered, rows[_i].prefixed};
    struct buffer out;
    buffer_init(&out);
    tool_names_fill(&names, str_from(rows[_i].text), &out);
    buffer_append_char(&out, '\0');
    ck_assert_str_eq(out.bytes, rows[_i].filled);
    buffer_finish(&out);
}
END_TEST

TCase *tool_names_tests(void)
{
    TCase *tests = tcase_create("tool_names");
    tcase_add_loop_test(tests, names_are_filled_in_as_they_are_offered, 0,
                        sizeof rows / sizeof *rows);
    return tests;
}
