/* What is known of tools and of those who have them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog.h"
#include "suites.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"

static const char *environment(const char *name)
{
    return NULL;
}

static struct snapshot *snapshot_of(const char *rules)
{
    struct config_problems problems = {0};
    char *text = memory_format("schema: 1\n"
                               "sources:\n"
                               "  - {id: up, kind: mcp, url: \"http://127.0.0.1:1/mcp\"}\n"
                               "governance:\n"
                               "  defaults: {action: forward}\n%s",
                               rules);
    struct config *config = config_parse(str_from(text), "t.yaml", environment, &problems);
    ck_assert_msg(config != NULL, "%s", problems.count ? problems.items[0].message : "");
    struct snapshot *snapshot = snapshot_create(config, &problems);
    ck_assert_ptr_nonnull(snapshot);
    config_problems_finish(&problems);
    free(text);
    return snapshot;
}

#define RULES "  rules:\n    - {match: \"delete_*\", action: approve}\n"

static void put(struct catalog *catalog, const struct snapshot *snapshot, struct str name,
                const char *raw)
{
    struct mcp_tool tool = {.name = name, .raw = str_from(raw)};
    catalog_put_tool(catalog, snapshot, &snapshot->config->sources[0], &tool);
}

static void expect_count(const char *annotation, const char *count)
{
    struct buffer text = {0};
    char line[128];
    metrics_write(&text, false);
    buffer_append_char(&text, '\0');
    snprintf(line, sizeof line, "thoughtgate_tools_by_annotation{annotation=\"%s\"} %s\n",
             annotation, count);
    ck_assert_msg(strstr(text.bytes, line) != NULL, "%s in:\n%s", line, text.bytes);
    buffer_finish(&text);
}

START_TEST(a_tool_is_known_by_its_definition_whatever_the_order_of_its_members)
{
    struct catalog *catalog = catalog_create();
    struct snapshot *snapshot = snapshot_of("");
    struct catalog_tool first, second;
    catalog_find_tool(catalog, STR("up"), STR("read"), &first);
    ck_assert(!first.known);
    ck_assert_str_eq(first.digest, "");
    put(catalog, snapshot, STR("read"), "{\"name\":\"read\",\"title\":\"R\"}");
    catalog_find_tool(catalog, STR("up"), STR("read"), &first);
    ck_assert(first.known);
    put(catalog, snapshot, STR("read"), "{ \"title\" : \"R\", \"name\" : \"read\" }");
    catalog_find_tool(catalog, STR("up"), STR("read"), &second);
    ck_assert_str_eq(first.digest, second.digest);
    put(catalog, snapshot, STR("read"), "{\"name\":\"read\",\"title\":\"S\"}");
    catalog_find_tool(catalog, STR("up"), STR("read"), &second);
    ck_assert_str_ne(first.digest, second.digest);
    catalog_find_tool(catalog, STR("other"), STR("read"), &second);
    ck_assert(!second.known);
    snapshot_unref(snapshot);
    catalog_destroy(catalog);
    metrics_finish();
}
END_TEST

START_TEST(tools_are_counted_by_what_they_are_announced_as)
{
    struct catalog *catalog = catalog_create();
    struct snapshot *before = snapshot_of(RULES), *after = snapshot_of("");
    put(catalog, before, STR("delete_user"), "{}");
    put(catalog, before, STR("delete_user"), "{}");
    put(catalog, before, STR("read"), "{}");
    expect_count("required", "1");
    catalog_announce_all(catalog, after);
    expect_count("required", "0");
    snapshot_unref(after);
    snapshot_unref(before);
    catalog_destroy(catalog);
    metrics_finish();
}
END_TEST

START_TEST(a_tool_that_a_whole_list_lacks_is_known_but_not_counted)
{
    struct catalog *catalog = catalog_create();
    struct snapshot *snapshot = snapshot_of(RULES);
    const struct config_source *source = &snapshot->config->sources[0];
    struct catalog_tool tool;
    catalog_begin_list(catalog, source, STR("a"));
    put(catalog, snapshot, STR("read"), "{}");
    put(catalog, snapshot, STR("write"), "{}");
    catalog_end_list(catalog, source, STR("a"));
    expect_count("forbidden", "2");
    catalog_begin_list(catalog, source, STR("a"));
    put(catalog, snapshot, STR("read"), "{}");
    catalog_end_list(catalog, source, STR("b")); /* who began elsewhere */
    expect_count("forbidden", "2");
    catalog_end_list(catalog, source, STR("a"));
    expect_count("forbidden", "1");
    catalog_find_tool(catalog, STR("up"), STR("write"), &tool);
    ck_assert(tool.known && tool.digest[0]);
    catalog_announce_all(catalog, snapshot);
    expect_count("forbidden", "1");
    put(catalog, snapshot, STR("write"), "{}");
    expect_count("forbidden", "2");
    snapshot_unref(snapshot);
    catalog_destroy(catalog);
    metrics_finish();
}
END_TEST

START_TEST(no_more_tools_are_remembered_than_fit)
{
    struct catalog *catalog = catalog_create();
    struct snapshot *snapshot = snapshot_of("");
    struct catalog_tool tool;
    char name[2000];
    for (int i = 0; i < 20005; i++) {
        snprintf(name, sizeof name, "t%d", i);
        put(catalog, snapshot, str_from(name), "{}");
    }
    catalog_find_tool(catalog, STR("up"), STR("t19999"), &tool);
    ck_assert(tool.known);
    catalog_find_tool(catalog, STR("up"), STR("t20000"), &tool);
    ck_assert(!tool.known);
    put(catalog, snapshot, STR("t7"), "{\"changed\":1}");
    catalog_find_tool(catalog, STR("up"), STR("t7"), &tool);
    ck_assert(tool.known);
    catalog_destroy(catalog);
    catalog = catalog_create();
    memset(name, 'x', sizeof name);
    put(catalog, snapshot, str_slice(name, 1025), "{}");
    catalog_find_tool(catalog, STR("up"), str_slice(name, 1025), &tool);
    ck_assert(!tool.known);
    snapshot_unref(snapshot);
    catalog_destroy(catalog);
    metrics_finish();
}
END_TEST

START_TEST(all_are_reachable_unless_one_is_known_not_to_be)
{
    struct catalog *catalog = catalog_create();
    ck_assert(catalog_all_reachable(catalog));
    catalog_set_reachable(catalog, STR("a"), true);
    catalog_set_reachable(catalog, STR("b"), false);
    ck_assert(!catalog_all_reachable(catalog));
    catalog_set_reachable(catalog, STR("b"), true);
    ck_assert(catalog_all_reachable(catalog));
    catalog_destroy(catalog);
    metrics_finish();
}
END_TEST

START_TEST(one_alone_fetches_what_is_not_known_or_may_have_changed)
{
    struct catalog *catalog = catalog_create();
    struct snapshot *snapshot = snapshot_of("");
    const struct config_source *source = &snapshot->config->sources[0],
                               other = {.id = "other", .url = "http://127.0.0.1:2/mcp"};
    struct str up = STR("up");
    ck_assert_int_eq(catalog_begin_fetch(catalog, source, 1000), CATALOG_FETCH_NOW);
    ck_assert_int_eq(catalog_begin_fetch(catalog, source, 1001), CATALOG_FETCH_LATER);
    ck_assert_int_eq(catalog_begin_fetch(catalog, &other, 1001), CATALOG_FETCH_NOW);
    catalog_end_fetch(catalog, source, true);
    ck_assert_int_eq(catalog_begin_fetch(catalog, source, 9000), CATALOG_FETCH_NONE);
    catalog_set_stale(catalog, up);
    ck_assert_int_eq(catalog_begin_fetch(catalog, source, 1999), CATALOG_FETCH_LATER);
    ck_assert_int_eq(catalog_begin_fetch(catalog, source, 2000), CATALOG_FETCH_NOW);
    catalog_set_stale(catalog, up); /* while it is fetched: that may have come too late */
    catalog_end_fetch(catalog, source, true);
    ck_assert_int_eq(catalog_begin_fetch(catalog, source, 3000), CATALOG_FETCH_NOW);
    catalog_end_fetch(catalog, source, false);
    ck_assert_int_eq(catalog_begin_fetch(catalog, source, 4000), CATALOG_FETCH_NOW);
    catalog_end_fetch(catalog, source, true);
    catalog_set_reachable(catalog, up, true);
    catalog_set_reachable(catalog, up, false);
    ck_assert_int_eq(catalog_begin_fetch(catalog, source, 9000), CATALOG_FETCH_NONE);
    ck_assert_int_eq(catalog_set_reachable(catalog, up, true), CATALOG_RECONNECTED);
    ck_assert_int_eq(catalog_begin_fetch(catalog, source, 9000), CATALOG_FETCH_NOW);
    snapshot_unref(snapshot);
    catalog_destroy(catalog);
    metrics_finish();
}
END_TEST

START_TEST(an_owners_calls_look_for_a_tool_once_in_five_seconds)
{
    struct catalog *catalog = catalog_create();
    struct str up = STR("up"), owner = STR("auth:a");
    ck_assert(catalog_look_is_due(catalog, up, owner, 1));
    catalog_looked(catalog, up, owner, 1000);
    ck_assert(!catalog_look_is_due(catalog, up, owner, 5999));
    ck_assert(catalog_look_is_due(catalog, up, STR("auth:b"), 5999));
    ck_assert(catalog_look_is_due(catalog, STR("other"), owner, 5999));
    ck_assert(catalog_look_is_due(catalog, up, owner, 6000));
    for (int i = 0; i < 1000; i++) { /* so many are not remembered, and look again */
        char stranger[24];
        snprintf(stranger, sizeof stranger, "auth:%d", i);
        catalog_looked(catalog, up, str_from(stranger), 1001);
    }
    ck_assert(catalog_look_is_due(catalog, up, owner, 1002));
    ck_assert(!catalog_look_is_due(catalog, up, STR("auth:999"), 1002));
    catalog_destroy(catalog);
}
END_TEST

TCase *catalog_tests(void)
{
    TCase *tests = tcase_create("catalog");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_tool_is_known_by_its_definition_whatever_the_order_of_its_members);
    tcase_add_test(tests, tools_are_counted_by_what_they_are_announced_as);
    tcase_add_test(tests, a_tool_that_a_whole_list_lacks_is_known_but_not_counted);
    tcase_add_test(tests, no_more_tools_are_remembered_than_fit);
    tcase_add_test(tests, all_are_reachable_unless_one_is_known_not_to_be);
    tcase_add_test(tests, one_alone_fetches_what_is_not_known_or_may_have_changed);
    tcase_add_test(tests, an_owners_calls_look_for_a_tool_once_in_five_seconds);
    return tests;
}
