/* List replies: hiding, announcing, everything else as it was. */
#include "mcp_test.h"

#include <string.h>

#include "taskgate/json/text.h"
#include "taskgate/mcp/lists.h"

/* Announces by the first letter of the name (r, o, f), hides names with h, and notes each
 * item: "name=own;". */
static bool judge_tool(void *context, const struct mcp_tool *tool, enum policy_annotation *announce)
{
    struct buffer *asked = context;
    if (asked) {
        buffer_append(asked, tool->name);
        buffer_append_format(asked, "=%s;", tool->has_own ? policy_annotation_name(tool->own) : "");
    }
    const char letter = *(tool->name.length ? tool->name.bytes : "f");
    if (letter == 'r')
        *announce = ANNOTATION_REQUIRED;
    else if (letter == 'o')
        *announce = ANNOTATION_OPTIONAL;
    return letter != 'h';
}

#define BOTH(word)                                                                                 \
    "\"annotations\":{\"taskSupport\":\"" word "\"},\"execution\":{\"taskSupport\":\"" word "\"}"

static const struct {
    const char *result, *expected, *asked;
} rows[] = {
    /* Behaviour 5.5, in both spellings. */
    {"{\"tools\":[{\"name\":\"f\",\"description\":\"d\",\"inputSchema\":{\"type\":\"object\"}},"
     "{\"name\":\"r\",\"annotations\":{\"taskSupport\":\"optional\"}}]}",
     "{\"tools\":[{\"name\":\"f\",\"description\":\"d\",\"inputSchema\":{\"type\":\"object\"}"
     "," BOTH("forbidden") "},{\"name\":\"r\"," BOTH("required") "}]}",
     "f=;r=optional;"},
    /* Bytes, order and other members stay. */
    {"{ \"x\": 1.50, \"tools\" : [ {\"name\" : \"o\", \"n\": 1e2 , \"t\":\"\\u00e9\"} ] , "
     "\"nextCursor\":\"c\" }\n",
     "{ \"x\": 1.50, \"tools\" : [{\"name\" : \"o\", \"n\": 1e2 , \"t\":\"\\u00e9\"," BOTH(
         "optional") "}] , \"nextCursor\":\"c\" }\n",
     "o=;"},
    /* Own values: execution first, either is read, unknown words are none. */
    {"{\"tools\":[{\"name\":\"r\",\"annotations\":{\"title\":\"T\",\"taskSupport\":\"forbidden\"},"
     "\"execution\":{\"taskSupport\":\"optional\",\"y\":1}}]}",
     "{\"tools\":[{\"name\":\"r\",\"annotations\":{\"title\":\"T\",\"taskSupport\":\"required\"},"
     "\"execution\":{\"taskSupport\":\"required\",\"y\":1}}]}",
     "r=optional;"},
    {"{\"tools\":[{\"name\":\"r\",\"annotations\":{\"taskSupport\":\"required\"},"
     "\"execution\":{\"taskSupport\":\"sometimes\"}}]}",
     "{\"tools\":[{\"name\":\"r\"," BOTH("required") "}]}", "r=required;"},
    {"{\"tools\":[{\"name\":\"o\",\"annotations\":{\"taskSupport\":1},\"execution\":{}}]}",
     "{\"tools\":[{\"name\":\"o\"," BOTH("optional") "}]}", "o=;"},
    /* annotations and execution that are no objects. */
    {"{\"tools\":[{\"annotations\":null,\"execution\":\"x\",\"name\":\"f\"}]}",
     "{\"tools\":[{" BOTH("forbidden") ",\"name\":\"f\"}]}", "f=;"},
    /* Hidden: by the judge, and items without a readable name. Duplicates are judged each. */
    {"{\"tools\":[{\"name\":\"h1\"},{\"name\":\"f\"},{\"name\":\"h2\"},{\"name\":\"f\"}]}",
     "{\"tools\":[{\"name\":\"f\"," BOTH("forbidden") "},{\"name\":\"f\"," BOTH("forbidden") "}]}",
     "h1=;f=;h2=;f=;"},
    {"{\"tools\":[{\"name\":1},{},\"f\",null,[],{\"Name\":\"f\"}]}", "{\"tools\":[]}", ""},
    {"{\"tools\":[{\"n\\u0061me\":\"\\u006f\"}]}",
     "{\"tools\":[{\"n\\u0061me\":\"\\u006f\"," BOTH("optional") "}]}", "o=;"},
    {"{\"tools\":[{\"name\":\"\"}]}", "{\"tools\":[{\"name\":\"\"," BOTH("forbidden") "}]}", "=;"},
    /* Empty, absent and unreadable lists; null cursors. */
    {"{\"tools\":[]}", "{\"tools\":[]}", ""},
    {"{\"tools\":[],\"nextCursor\":null}", "{\"tools\":[]}", ""},
    {"{\"nextCursor\": null ,\"tools\":[]}", "{\"tools\":[]}", ""},
    {"{\"a\":1}", "{\"a\":1}", ""},
    {"{\"tools\":{\"f\":{}}}", "{\"tools\":[]}", ""},
    {"{\"tools\":null}", "{\"tools\":[]}", ""},
};
#define ROW_COUNT (sizeof rows / sizeof rows[0])

START_TEST(tools_are_judged_and_announced)
{
    ck_assert(json_check(str_from(rows[_i].result), NULL));
    struct buffer out, asked;
    buffer_init(&out);
    buffer_init(&asked);
    mcp_tools_rewrite(&out, str_from(rows[_i].result), judge_tool, &asked);
    expect_written(&out, rows[_i].expected);
    expect_written(&asked, rows[_i].asked);

    bool has_list = strstr(rows[_i].result, "\"tools\":[") || strstr(rows[_i].result, "\" : [");
    ck_assert(mcp_tools_read(str_from(rows[_i].result), judge_tool, &asked) == has_list);
    expect_written(&asked, rows[_i].asked);
}
END_TEST

static bool note_raw(void *context, const struct mcp_tool *tool, enum policy_annotation *announce)
{
    buffer_append(context, tool->raw);
    return false;
}

START_TEST(readers_get_the_tools_own_bytes)
{
    struct buffer raw;
    buffer_init(&raw);
    ck_assert(mcp_tools_read(STR("{\"tools\":[ {\"name\": \"a\" } , {\"name\":\"b\"}]}"), note_raw,
                             &raw));
    expect_written(&raw, "{\"name\": \"a\" }{\"name\":\"b\"}");
}
END_TEST

static bool judge_name(void *context, struct str name, struct str entry)
{
    buffer_append(context, name);
    return !str_starts_with(name, STR("h"));
}

START_TEST(resources_and_prompts_are_filtered)
{
    static const struct {
        const char *list, *key, *result, *expected, *asked;
    } lists[] = {
        {"resources", "uri",
         "{\"resources\":[{\"uri\":\"file:a\",\"name\":\"h\"},{\"uri\":\"h:b\"} , {\"uri\" : "
         "\"c\"}],\"x\":2}",
         "{\"resources\":[{\"uri\":\"file:a\",\"name\":\"h\"},{\"uri\" : \"c\"}],\"x\":2}",
         "file:ah:bc"},
        {"prompts", "name", "{\"prompts\":[{\"name\":\"h\"},{\"uri\":\"a\"}],\"nextCursor\":null}",
         "{\"prompts\":[]}", "h"},
        {"prompts", "name", "{\"resources\":[{\"uri\":\"h\"}]}",
         "{\"resources\":[{\"uri\":\"h\"}]}", ""},
        {"prompts", "name", "{\"prompts\":\"h\"}", "{\"prompts\":[]}", ""},
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        struct buffer out, asked;
        buffer_init(&out);
        buffer_init(&asked);
        mcp_list_filter(&out, str_from(lists[i].result), lists[i].list, lists[i].key, judge_name,
                        &asked);
        expect_written(&out, lists[i].expected);
        expect_written(&asked, lists[i].asked);
    }
}
END_TEST

START_TEST(a_null_cursor_is_none)
{
    expect_str(mcp_next_cursor(STR("{\"nextCursor\": \"a\\n\" }")), "\"a\\n\"");
    expect_str(mcp_next_cursor(STR("{\"nextCursor\":null}")), "");
    expect_str(mcp_next_cursor(STR("{\"tools\":[]}")), "");
}
END_TEST

START_TEST(items_are_appended_and_the_rest_stays)
{
    static const char *const cases[][2] = {
        {"{\"resources\":[]}", "{\"resources\":[{\"a\":1},2]}"},
        {"{ \"x\": 1.0, \"resources\" : [ {\"u\" : 1 } ] , \"nextCursor\":\"c\" }",
         "{ \"x\": 1.0, \"resources\" : [ {\"u\" : 1 } ,{\"a\":1},2] , \"nextCursor\":\"c\" }"},
        {"{\"resources\":[ ]}", "{\"resources\":[{\"a\":1},2]}"},
        {"{\"resources\":null}", "{\"resources\":[{\"a\":1},2]}"},
        {"{}", "{\"resources\":[{\"a\":1},2]}"},
        {"{\"b\":2}", "{\"b\":2,\"resources\":[{\"a\":1},2]}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buffer out;
        buffer_init(&out);
        mcp_list_append(&out, str_from(cases[i][0]), "resources", STR("{\"a\":1},2"));
        expect_written(&out, cases[i][1]);
    }
}
END_TEST

START_TEST(mutated_lists_stay_json_and_hide_what_is_hidden)
{
    struct chance chance = {11};
    struct buffer result, out;
    buffer_init(&result);
    buffer_init(&out);
    size_t accepted = 0;
    for (size_t round = 0; round < 4000; round++) {
        buffer_clear(&result);
        buffer_append_text(&result, rows[round % ROW_COUNT].result);
        for (size_t i = chance_below(&chance, 4); i > 0; i--)
            chance_mutate(&chance, &result);
        if (!json_check(buffer_str(&result), NULL))
            continue;
        accepted++;
        mcp_tools_rewrite(&out, buffer_str(&result), judge_tool, NULL);
        ck_assert(json_check(buffer_str(&out), NULL));
        struct str tools = json_member(buffer_str(&out), "tools"), tool;
        for (size_t position = 0; json_next_element(tools, &position, &tool);) {
            struct str a = json_path(tool, "annotations", "taskSupport");
            struct str b = json_path(tool, "execution", "taskSupport");
            ck_assert(a.length > 0 && str_equal(a, b));
            ck_assert(json_type(json_member(tool, "name")) == JSON_STRING);
        }
        ck_assert(json_type(json_member(buffer_str(&out), "nextCursor")) != JSON_NULL);
        buffer_clear(&out);
    }
    ck_assert_uint_gt(accepted, 500);
    buffer_finish(&result);
    buffer_finish(&out);
}
END_TEST

Suite *lists_suite(void)
{
    Suite *suite = suite_create("lists");
    TCase *tests = tcase_create("lists");
    tcase_add_loop_test(tests, tools_are_judged_and_announced, 0, (int)ROW_COUNT);
    tcase_add_test(tests, readers_get_the_tools_own_bytes);
    tcase_add_test(tests, resources_and_prompts_are_filtered);
    tcase_add_test(tests, a_null_cursor_is_none);
    tcase_add_test(tests, items_are_appended_and_the_rest_stays);
    tcase_add_test(tests, mutated_lists_stay_json_and_hide_what_is_hidden);
    suite_add_tcase(suite, tests);
    return suite;
}
