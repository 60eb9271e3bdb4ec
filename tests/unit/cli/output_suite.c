/* The output of commands: tasks, tables and changes, whole and safe on a terminal. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"
#include "taskgate/json/visible.h"

#include "tasks_show.h"
#include "terminal.h"

static void expect_text(struct buffer *actual, const char *wanted)
{
    char *text = buffer_take(actual, NULL);
    ck_assert_str_eq(text, wanted);
    free(text);
}

START_TEST(nothing_misleads_a_terminal)
{
    struct buffer out;
    buffer_init(&out);
    visible_append(&out, STR("a\x1B[31m\"b\\c\xE2\x80\xAE\xC2\x9B"
                             "d\n\xC3\xA9"));
    expect_text(&out, "a\\u001b[31m\"b\\c\\u202e\\u009bd\\n\xC3\xA9");
    visible_append_json(&out, STR("{\"a\\\"\xE2\x80\xAE\":[1.50,\"\\u001b\",\"\xC2\x9B\"]}"));
    expect_text(&out, "{\"a\\\"\\u202e\":[1.50,\"\\u001b\",\"\\u009b\"]}");
    terminal_append_pretty(&out,
                           STR("{\"n\":9007199254740993,\"e\":{},\"l\":[ ],\"x\":[1,{\"y\":"
                               "\"\\n\"}]}"),
                           STR_EMPTY);
    expect_text(&out, "{\n  \"n\": 9007199254740993,\n  \"e\": {},\n  \"l\": [],\n  \"x\": [\n    "
                      "1,\n    {\n      \"y\": \"\\n\"\n    }\n  ]\n}");
}
END_TEST

START_TEST(tasks_are_shown_whole_and_safe)
{
    static const char list[] =
        "{\"tasks\":[{\"id\":\"tg_1\",\"state\":\"pending\",\"tool\":\"x\xE2\x80\xAEy\",\"source\":"
        "\"up\",\"principal\":\"p\",\"createdAt\":\"2026-01-12T22:32:00.123Z\",\"decideBy\":"
        "\"2026-01-12T22:42:00.000Z\",\"risk\":\"high\","
        "\"arguments\":{\"big\":9007199254740993},\"decidedBy\":null}],\"nextCursor\":\"c1f\"}";
    struct buffer out;
    buffer_init(&out);
    struct str task = str_slice(list + 10, strlen(list) - 10 - strlen("],\"nextCursor\":\"c1f\"}"));
    struct tasks_table table = {&task, 1, INT64_C(1768257130123), false};
    tasks_append_table(&out, &table);
    expect_text(&out, "ID    STATE    LEFT    TOOL      RISK  CALL                   ASKED BY      "
                      "  SOURCE  ASKED\n"
                      "tg_1  pending  9m 49s  x\\u202ey  high  big: 9007199254740993  unverified "
                      "\"p\"  up      10s ago\n");
    tasks_append_details(&out, task);
    expect_text(&out, "Task       tg_1\nState      pending\nRisk       high\nTool       "
                      "x\\u202ey\nSource     up\n"
                      "Asked by   unverified \"p\"\nCreated    2026-01-12 22:32:00Z\n"
                      "Decide by  2026-01-12 22:42:00Z\n"
                      "Arguments  {\n  \"big\": 9007199254740993\n}\n");
    tasks_append_change(&out, task);
    expect_text(&out, "tg_1  pending  x\\u202ey\n");
}
END_TEST

START_TEST(a_name_without_end_is_cut_where_others_stand_beside_it)
{
    char name[3002], *list, *task;
    name[0] = 'x'; /* so that the limit is within a character */
    for (size_t i = 1; i < 3001; i += 2)
        memcpy(name + i, "\xC3\xA9", 2);
    name[3001] = '\0';
    task = memory_format("{\"id\":\"tg_1\",\"state\":\"pending\",\"tool\":\"%s\"}", name);
    list = memory_format("{\"tasks\":[%s],\"nextCursor\":null}", task);
    struct buffer out;
    buffer_init(&out);
    tasks_append_change(&out, str_from(task));
    ck_assert_uint_lt(out.length, 200);
    ck_assert(str_is_utf8(buffer_str(&out)));
    ck_assert(str_ends_with(buffer_str(&out), STR("\xC3\xA9…\n")));
    buffer_clear(&out);
    struct str tasks[] = {str_from(task)};
    tasks_append_table(&out, &(struct tasks_table){tasks, 1, 0, false});
    ck_assert_uint_lt(out.length, 700);
    buffer_clear(&out);
    tasks_append_details(&out, str_from(task));
    ck_assert_ptr_nonnull(memmem(out.bytes, out.length, name, strlen(name)));
    buffer_finish(&out);
    free(list);
    free(task);
}
END_TEST

START_TEST(a_table_goes_on_in_further_lines_where_the_terminal_is_narrow)
{
    static const char *const headings[] = {"ID", "STATE", "ASKED BY", "REASON"};
    static const char *const cells[] = {"tg_1", "pending",  "an agent",          "",
                                        "tg_2", "rejected", "\xC3\xA9t\xC3\xA9", "too late"};
    static const struct {
        size_t room;
        const char *text;
    } rows[] = {
        {0, "ID    STATE     ASKED BY  REASON\n"
            "tg_1  pending   an agent\n"
            "tg_2  rejected  \xC3\xA9t\xC3\xA9       too late\n"},
        {34, "ID    STATE     ASKED BY  REASON\n"
             "tg_1  pending   an agent\n"
             "tg_2  rejected  \xC3\xA9t\xC3\xA9       too late\n"},
        {33, "ID    STATE     ASKED BY\n REASON\n"
             "tg_1  pending   an agent\n"
             "tg_2  rejected  \xC3\xA9t\xC3\xA9\n too late\n"},
        {20, "ID    STATE\n ASKED BY  REASON\n"
             "tg_1  pending\n an agent\n"
             "tg_2  rejected\n \xC3\xA9t\xC3\xA9       too late\n"},
        {1, "ID\n STATE\n ASKED BY\n REASON\n"
            "tg_1\n pending\n an agent\n"
            "tg_2\n rejected\n \xC3\xA9t\xC3\xA9\n too late\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct table table;
        struct buffer out;
        buffer_init(&out);
        table_init(&table, 4, headings);
        for (size_t j = 0; j < sizeof cells / sizeof *cells; j++)
            table_add(&table, str_from(cells[j]));
        table.room = rows[i].room;
        table_write(&table, &out);
        table_finish(&table);
        expect_text(&out, rows[i].text);
    }
}
END_TEST

START_TEST(a_table_fits_where_columns_may_be_cut)
{
    static const char *const headings[] = {"ID", "TOOL", "ASKED BY"};
    static const char *const cells[] = {
        "tg_1", "delete_database", "\xC3\xA9t\xC3\xA9 of the agents", "tg_2", "pay", "x"};
    static const struct {
        size_t room;
        const char *text;
    } rows[] = {
        {42, "ID    TOOL             ASKED BY\n"
             "tg_1  delete_database  \xC3\xA9t\xC3\xA9 of the agents\n"
             "tg_2  pay              x\n"},
        {34, "ID    TOOL           ASKED BY\n"
             "tg_1  delete_datab…  \xC3\xA9t\xC3\xA9 of the a…\n"
             "tg_2  pay            x\n"},
        {24, "ID    TOOL      ASKED BY\n"
             "tg_1  delete_…  \xC3\xA9t\xC3\xA9 of …\n"
             "tg_2  pay       x\n"},
        {20, "ID    TOOL\n ASKED BY\n"
             "tg_1  delete_…\n \xC3\xA9t\xC3\xA9 of …\n"
             "tg_2  pay\n x\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct table table;
        struct buffer out;
        buffer_init(&out);
        table_init(&table, 3, headings);
        for (size_t j = 0; j < sizeof cells / sizeof *cells; j++)
            table_add(&table, str_from(cells[j]));
        table.room = rows[i].room;
        table.least[1] = table.least[2] = 8;
        table_write(&table, &out);
        table_finish(&table);
        expect_text(&out, rows[i].text);
    }
}
END_TEST

START_TEST(ids_on_a_terminal_are_as_long_as_they_must_be)
{
    static const struct {
        const char *ids[2], *shown[2];
    } rows[] = {
        {{"tg_6b3b5ab1-8675-425a-bc83-7dc96d01aff5", "tg_7b3b5ab1-8675-425a-bc83-7dc96d01aff5"},
         {"tg_6b3b5ab1  ", "tg_7b3b5ab1  "}},
        {{"tg_6b3b5ab1-8675-425a-bc83-7dc96d01aff5", "tg_6b3b5ab1-9675-425a-bc83-7dc96d01aff5"},
         {"tg_6b3b5ab1-8  ", "tg_6b3b5ab1-9  "}},
    };
    for (size_t i = 0; i < 2; i++) {
        struct buffer out;
        struct str tasks[2];
        char *texts[2];
        buffer_init(&out);
        for (size_t j = 0; j < 2; j++) {
            texts[j] = memory_format("{\"id\":\"%s\",\"state\":\"failed\"}", rows[i].ids[j]);
            tasks[j] = str_from(texts[j]);
        }
        tasks_append_table(&out, &(struct tasks_table){tasks, 2, 0, true});
        buffer_append_char(&out, '\0');
        for (size_t j = 0; j < 2; j++) {
            ck_assert_ptr_nonnull(strstr(out.bytes, rows[i].shown[j]));
            free(texts[j]);
        }
        buffer_finish(&out);
    }
}
END_TEST

START_TEST(a_span_has_its_two_largest_units)
{
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {
        {-5, "0s"},           {999, "0s"},        {59999, "59s"},        {60000, "1m 0s"},
        {3599000, "59m 59s"}, {3600000, "1h 0m"}, {86399000, "23h 59m"}, {90000000, "1d 1h"}};
    struct buffer out;
    buffer_init(&out);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tasks_append_span(&out, rows[i].ms);
        expect_text(&out, rows[i].text);
    }
}
END_TEST

START_TEST(an_event_has_time_caller_and_cause)
{
    static const struct {
        const char *task, *line;
    } rows[] = {
        {"{\"id\":\"tg_1\",\"state\":\"pending\",\"tool\":\"pay\",\"principal\":\"bot\"}",
         "2026-01-12T22:32:10Z  tg_1  pending  pay  for unverified \"bot\"\n"},
        {"{\"id\":\"tg_1\",\"state\":\"failed\",\"tool\":\"pay\",\"principal\":\"bot\","
         "\"decidedBy\":\"ann\",\"reason\":\"fine\",\"executeBy\":\"2026-01-12T22:35:00.000Z\","
         "\"statusMessage\":\"no \\u202e money\"}",
         "2026-01-12T22:32:10Z  tg_1  failed  pay  approved by ann  for unverified \"bot\": no "
         "\\u202e money\n"},
        {"{\"id\":\"tg_1\",\"state\":\"rejected\",\"tool\":\"pay\",\"principal\":\"bot\","
         "\"decidedBy\":\"ann\",\"reason\":\"too much\",\"statusMessage\":\"Rejected\"}",
         "2026-01-12T22:32:10Z  tg_1  rejected  pay  by ann  for unverified \"bot\": too much\n"},
    };
    struct buffer out;
    buffer_init(&out);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tasks_append_event(&out, str_from(rows[i].task), INT64_C(1768257130123));
        expect_text(&out, rows[i].line);
    }
}
END_TEST

START_TEST(a_change_says_who_decided_and_nothing_that_others_did)
{
    static const struct {
        const char *task, *line;
    } rows[] = {
        {"{\"id\":\"tg_1\",\"state\":\"approved\",\"tool\":\"pay\",\"decidedBy\":\"ann\","
         "\"executeBy\":\"2026-01-12T22:35:00.000Z\"}",
         "tg_1  approved  pay  by ann\n"},
        {"{\"id\":\"tg_1\",\"state\":\"cancelled\",\"tool\":\"pay\",\"decidedBy\":\"ann\","
         "\"executeBy\":\"2026-01-12T22:35:00.000Z\"}",
         "tg_1  cancelled  pay  approved by ann\n"},
        {"{\"id\":\"tg_1\",\"state\":\"cancelled\",\"tool\":\"pay\",\"decidedBy\":\"bob\","
         "\"executeBy\":null}",
         "tg_1  cancelled  pay  by bob\n"},
        {"{\"id\":\"tg_1\",\"state\":\"completed\",\"tool\":\"pay\",\"decidedBy\":null,"
         "\"executeBy\":\"2026-01-12T22:35:00.000Z\"}",
         "tg_1  completed  pay\n"},
    };
    struct buffer out;
    buffer_init(&out);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tasks_append_change(&out, str_from(rows[i].task));
        expect_text(&out, rows[i].line);
    }
}
END_TEST

TCase *output_cases(void)
{
    TCase *cases = tcase_create("output");
    tcase_add_test(cases, nothing_misleads_a_terminal);
    tcase_add_test(cases, tasks_are_shown_whole_and_safe);
    tcase_add_test(cases, a_name_without_end_is_cut_where_others_stand_beside_it);
    tcase_add_test(cases, a_table_goes_on_in_further_lines_where_the_terminal_is_narrow);
    tcase_add_test(cases, a_table_fits_where_columns_may_be_cut);
    tcase_add_test(cases, ids_on_a_terminal_are_as_long_as_they_must_be);
    tcase_add_test(cases, a_span_has_its_two_largest_units);
    tcase_add_test(cases, an_event_has_time_caller_and_cause);
    tcase_add_test(cases, a_change_says_who_decided_and_nothing_that_others_did);
    return cases;
}
