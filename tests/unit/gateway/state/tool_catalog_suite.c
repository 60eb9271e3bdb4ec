/* Known facts about tools and their owners. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state/tool_catalog.h"
#include "suites.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "tool_catalog_suite.h"

static const char *environment(const char *name)
{
    return NULL;
}

struct snapshot *test_snapshot_of(const char *rules)
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

void test_put_tools(struct catalog *catalog, const struct snapshot *snapshot,
                    struct telling telling, const struct mcp_tool *tools, size_t count)
{
    struct catalog_page *page = catalog_page_create(catalog);
    const struct catalog_reader reader = {snapshot, &snapshot->config->sources[0], telling.owner,
                                          telling.epoch};
    for (size_t i = 0; i < count; i++)
        catalog_page_add(page, &tools[i], NULL);
    catalog_put_page(catalog, &reader, page, telling.is_first, telling.is_last);
    catalog_page_destroy(page);
}

/* Names of one letter each, all of the same definition. */
static void put_letters(struct catalog *catalog, const struct snapshot *snapshot,
                        struct telling telling, const char *letters)
{
    struct mcp_tool tools[32];
    size_t count = strlen(letters);
    for (size_t i = 0; i < count; i++)
        tools[i] = (struct mcp_tool){.name = str_slice(letters + i, 1), .raw = STR("{}")};
    test_put_tools(catalog, snapshot, telling, tools, count);
}

void test_put_for(struct catalog *catalog, const struct snapshot *snapshot, struct str owner,
                  struct mcp_tool tool)
{
    test_put_tools(catalog, snapshot, WHOLE(owner), &tool, 1);
}

/* To one owner, as a page of a list that is never whole. */
static void put(struct catalog *catalog, const struct snapshot *snapshot, struct str name,
                const char *raw)
{
    struct mcp_tool tool = {.name = name, .raw = str_from(raw)};
    test_put_tools(catalog, snapshot, (struct telling){.owner = STR("a")}, &tool, 1);
}

struct catalog_tool test_look_up(struct catalog *catalog, struct str owner, struct str name)
{
    struct catalog_tool tool;
    catalog_find_tool(catalog, STR("up"), owner, name, &tool);
    return tool;
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
    struct snapshot *snapshot = test_snapshot_of("");
    struct catalog_tool first, second;
    catalog_find_tool(catalog, STR("up"), STR("a"), STR("read"), &first);
    ck_assert(!first.known);
    ck_assert_str_eq(first.digest, "");
    put(catalog, snapshot, STR("read"), "{\"name\":\"read\",\"title\":\"R\"}");
    catalog_find_tool(catalog, STR("up"), STR("a"), STR("read"), &first);
    ck_assert(first.known);
    put(catalog, snapshot, STR("read"), "{ \"title\" : \"R\", \"name\" : \"read\" }");
    catalog_find_tool(catalog, STR("up"), STR("a"), STR("read"), &second);
    ck_assert_str_eq(first.digest, second.digest);
    put(catalog, snapshot, STR("read"), "{\"name\":\"read\",\"title\":\"S\"}");
    catalog_find_tool(catalog, STR("up"), STR("a"), STR("read"), &second);
    ck_assert_str_ne(first.digest, second.digest);
    catalog_find_tool(catalog, STR("other"), STR("a"), STR("read"), &second);
    ck_assert(!second.known);
    snapshot_unref(snapshot);
    catalog_destroy(catalog);
    metrics_finish();
}
END_TEST

START_TEST(tools_are_counted_by_what_they_are_announced_as)
{
    struct catalog *catalog = catalog_create();
    struct snapshot *before = test_snapshot_of(RULES), *after = test_snapshot_of("");
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
    struct snapshot *snapshot = test_snapshot_of(RULES);
    struct telling first = {STR("a"), true, false, 1}, last = {STR("a"), false, true, 1},
                   strangers_last = {STR("b"), false, true, 1};
    put_letters(catalog, snapshot, WHOLE(STR("a")), "rwx");
    expect_count("forbidden", "3");
    put_letters(catalog, snapshot, first, "r");
    expect_count("forbidden", "3");
    put_letters(catalog, snapshot, strangers_last, "r"); /* an owner that began no list */
    expect_count("forbidden", "3");
    put_letters(catalog, snapshot, last, "x");
    expect_count("forbidden", "2");
    struct catalog_tool tool = test_look_up(catalog, STR("a"), STR("w"));
    ck_assert(tool.word == CATALOG_TOLD && tool.digest[0]);
    catalog_announce_all(catalog, snapshot);
    expect_count("forbidden", "2");
    put_letters(catalog, snapshot, WHOLE(STR("a")), "rwx");
    expect_count("forbidden", "3");
    snapshot_unref(snapshot);
    catalog_destroy(catalog);
    metrics_finish();
}
END_TEST

START_TEST(no_more_tools_are_remembered_than_fit)
{
    enum { TOOLS = 20005 };
    struct catalog *catalog = catalog_create();
    struct snapshot *snapshot = test_snapshot_of("");
    struct mcp_tool *tools = memory_alloc_array(TOOLS, sizeof *tools);
    char(*names)[16] = memory_alloc_array(TOOLS, sizeof *names);
    char name[2000];
    for (int i = 0; i < TOOLS; i++) {
        snprintf(names[i], sizeof names[i], "t%d", i);
        tools[i] = (struct mcp_tool){.name = str_from(names[i]), .raw = STR("{}")};
    }
    test_put_tools(catalog, snapshot, (struct telling){STR("a"), true, false, 1}, tools, 10000);
    test_put_tools(catalog, snapshot, (struct telling){STR("a"), false, true, 1}, tools + 10000,
                   TOOLS - 10000);
    ck_assert(test_look_up(catalog, STR("a"), STR("t19999")).known);
    ck_assert(!test_look_up(catalog, STR("a"), STR("t20000")).known);
    put(catalog, snapshot, STR("t7"), "{\"changed\":1}");
    ck_assert(test_look_up(catalog, STR("a"), STR("t7")).known);
    memset(name, 'x', sizeof name);
    put(catalog, snapshot, str_slice(name, 1025), "{}");
    ck_assert(!test_look_up(catalog, STR("a"), str_slice(name, 1025)).known);
    free(names);
    free(tools);
    snapshot_unref(snapshot);
    catalog_destroy(catalog);
    metrics_finish();
}
END_TEST

/* ---- owners ---- */

const struct mcp_tool test_mild = {
    .name = {"wipe", 4},
    .raw = {"{\"v\":1}", 7},
    .has_own = true,
    .own = ANNOTATION_OPTIONAL,
    .hints = {.given = 1U << HINT_READ_ONLY | 1U << HINT_DESTRUCTIVE,
              .truth = 1U << HINT_READ_ONLY},
};
const struct mcp_tool test_strict = {
    .name = {"wipe", 4},
    .raw = {"{\"v\":2}", 7},
    .has_own = true,
    .own = ANNOTATION_REQUIRED,
    .has_output_schema = true,
    .hints = {.given = 1U << HINT_READ_ONLY | 1U << HINT_DESTRUCTIVE,
              .truth = 1U << HINT_DESTRUCTIVE},
};

START_TEST(each_owner_has_a_tool_as_it_was_told)
{
    struct catalog *catalog = catalog_create();
    struct snapshot *snapshot = test_snapshot_of("");
    test_put_for(catalog, snapshot, STR("b"), test_mild);
    struct catalog_tool before = test_look_up(catalog, STR("b"), STR("wipe"));
    test_put_for(catalog, snapshot, STR("a"), test_strict);
    test_put_for(catalog, snapshot, CATALOG_GATEWAY, test_strict);
    struct catalog_tool after = test_look_up(catalog, STR("b"), STR("wipe"));
    ck_assert_int_eq(after.word, CATALOG_TOLD);
    ck_assert_str_eq(after.digest, before.digest);
    ck_assert_int_eq(after.own, ANNOTATION_OPTIONAL);
    ck_assert(!after.has_output_schema);
    ck_assert_uint_eq(after.hints.truth, test_mild.hints.truth);
    struct catalog_tool others = test_look_up(catalog, STR("a"), STR("wipe"));
    ck_assert_str_ne(others.digest, before.digest);
    ck_assert_int_eq(others.own, ANNOTATION_REQUIRED);
    ck_assert_uint_eq(others.hints.truth, test_strict.hints.truth);
    snapshot_unref(snapshot);
    catalog_destroy(catalog);
    metrics_finish();
}
END_TEST

START_TEST(a_stranger_gets_the_strictest_known_tool)
{
    struct catalog *catalog = catalog_create();
    struct snapshot *snapshot = test_snapshot_of("");
    struct str stranger = STR("c"), wipe = STR("wipe");
    struct mcp_tool silent = test_mild;
    silent.raw = STR("{\"v\":3}");
    silent.has_own = false;
    silent.hints = (struct policy_hints){0};
    ck_assert_int_eq(test_look_up(catalog, stranger, wipe).word, CATALOG_UNKNOWN);
    test_put_for(catalog, snapshot, STR("a"), test_mild);
    struct catalog_tool tool = test_look_up(catalog, stranger, wipe);
    ck_assert(tool.word == CATALOG_OTHERS && tool.known && !tool.has_list && !tool.is_current);
    ck_assert_str_eq(tool.digest, ""); /* no approval depends on another owner's list */
    ck_assert_uint_eq(tool.hints.truth, test_mild.hints.truth);
    test_put_for(catalog, snapshot, STR("b"), silent); /* says neither that it reads only … */
    tool = test_look_up(catalog, stranger, wipe);
    ck_assert_uint_eq(tool.hints.given, 0);
    ck_assert_int_eq(tool.own, ANNOTATION_OPTIONAL);
    test_put_for(catalog, snapshot, CATALOG_GATEWAY, test_strict);
    tool = test_look_up(catalog, stranger, wipe);
    ck_assert_int_eq(tool.word, CATALOG_GATEWAYS);
    ck_assert_str_eq(tool.digest, test_look_up(catalog, CATALOG_GATEWAY, wipe).digest);
    ck_assert_uint_eq(tool.hints.given, test_strict.hints.given);
    ck_assert_uint_eq(tool.hints.truth, 1U << HINT_DESTRUCTIVE);
    ck_assert_int_eq(tool.own, ANNOTATION_REQUIRED);
    test_put_for(catalog, snapshot, CATALOG_GATEWAY,
                 test_mild); /* the server has other tools now */
    tool = test_look_up(catalog, stranger, wipe);
    ck_assert_int_eq(tool.own, ANNOTATION_OPTIONAL);
    test_put_for(catalog, snapshot, STR("d"), test_strict);
    ck_assert_int_eq(test_look_up(catalog, stranger, wipe).own, ANNOTATION_REQUIRED);
    ck_assert_str_eq(test_look_up(catalog, stranger, wipe).digest,
                     test_look_up(catalog, CATALOG_GATEWAY, wipe).digest);
    snapshot_unref(snapshot);
    catalog_destroy(catalog);
    metrics_finish();
}
END_TEST

START_TEST(a_list_is_current_until_the_server_may_have_another)
{
    struct catalog *catalog = catalog_create();
    struct snapshot *snapshot = test_snapshot_of("");
    struct str a = STR("a"), up = STR("up");
    struct telling first = {a, true, false, catalog_epoch(catalog, up)},
                   last = {a, false, true, first.epoch};
    put_letters(catalog, snapshot, first, "r");
    ck_assert(!test_look_up(catalog, a, STR("r")).has_list);
    put_letters(catalog, snapshot, last, "w");
    ck_assert(test_look_up(catalog, a, STR("r")).is_current);
    ck_assert(test_look_up(catalog, a, STR("never")).is_current);
    catalog_set_stale(catalog, up);
    struct catalog_tool tool = test_look_up(catalog, a, STR("r"));
    ck_assert(tool.word == CATALOG_TOLD && tool.has_list && !tool.is_current);
    put_letters(catalog, snapshot, first, "r"); /* asked for before the change */
    put_letters(catalog, snapshot, last, "w");
    ck_assert(!test_look_up(catalog, a, STR("r")).is_current);
    first.epoch = last.epoch = catalog_epoch(catalog, up);
    put_letters(catalog, snapshot, first, "r");
    put_letters(catalog, snapshot, last, "w");
    ck_assert(test_look_up(catalog, a, STR("r")).is_current);
    ck_assert(!test_look_up(catalog, STR("b"), STR("r")).is_current);
    snapshot_unref(snapshot);
    catalog_destroy(catalog);
    metrics_finish();
}
END_TEST

/* Of this process: by the sanitizer's count where there is one. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static size_t allocated_bytes(void)
{
    return __sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes()
                                                   : mallinfo2().uordblks;
}

enum { TOOLS_EACH = 100, MOST_OWNERS = 10000 };

static void put_hundred(struct catalog *catalog, const struct snapshot *snapshot, int owner,
                        const char *raw)
{
    struct mcp_tool tools[TOOLS_EACH];
    char names[TOOLS_EACH][16], who[80];
    snprintf(who, sizeof who, "auth:%064d", owner);
    for (int i = 0; i < TOOLS_EACH; i++) {
        snprintf(names[i], sizeof names[i], "t%d", i);
        tools[i] = (struct mcp_tool){.name = str_from(names[i]), .raw = str_from(raw)};
    }
    test_put_tools(catalog, snapshot, WHOLE(str_from(who)), tools, TOOLS_EACH);
}

START_TEST(ten_thousand_owners_of_one_list_share_it)
{
    struct catalog *catalog = catalog_create();
    struct snapshot *snapshot = test_snapshot_of("");
    put_hundred(catalog, snapshot, 0, "{\"shared\":1}");
    size_t before = allocated_bytes(), counted = catalog_bytes(catalog);
    for (int i = 1; i < MOST_OWNERS; i++)
        put_hundred(catalog, snapshot, i, "{\"shared\":1}");
    /* The name of the owner, twice, and its place in a table: no list is among it. */
    ck_assert_uint_lt(allocated_bytes() - before, (size_t)MOST_OWNERS * 500);
    ck_assert_uint_lt(catalog_bytes(catalog) - counted, (size_t)MOST_OWNERS * 500);
    snapshot_unref(snapshot);
    size_t full = allocated_bytes();
    catalog_destroy(catalog);
    ck_assert_uint_lt(allocated_bytes(), full);
    metrics_finish();
}
END_TEST

START_TEST(owners_beyond_the_limit_make_room_the_longest_unseen_first)
{
    struct catalog *catalog = catalog_create();
    struct snapshot *snapshot = test_snapshot_of("limits: {sessions: 3}\n");
    struct str r = STR("r");
    put_letters(catalog, snapshot, WHOLE(CATALOG_GATEWAY), "r");
    put_letters(catalog, snapshot, WHOLE(STR("a")), "r");
    put_letters(catalog, snapshot, WHOLE(STR("b")), "r");
    put_letters(catalog, snapshot, WHOLE(STR("c")), "rx");
    test_look_up(catalog, STR("a"), r); /* a call is a sign of life as a list is */
    put_letters(catalog, snapshot, WHOLE(STR("d")), "r");
    ck_assert_int_eq(test_look_up(catalog, STR("a"), r).word, CATALOG_TOLD);
    ck_assert_int_eq(test_look_up(catalog, STR("b"), r).word, CATALOG_GATEWAYS);
    ck_assert_int_eq(test_look_up(catalog, STR("d"), r).word, CATALOG_TOLD);
    ck_assert_int_eq(test_look_up(catalog, CATALOG_GATEWAY, r).word, CATALOG_TOLD);
    ck_assert(test_look_up(catalog, STR("d"), STR("x")).known);
    put_letters(catalog, snapshot, WHOLE(STR("e")), "r");
    put_letters(catalog, snapshot, WHOLE(STR("f")), "r");
    ck_assert(!test_look_up(catalog, STR("d"), STR("x")).known); /* gone with its last owner */
    expect_count("forbidden", "1");
    snapshot_unref(snapshot);
    catalog_destroy(catalog);
    metrics_finish();
}
END_TEST

START_TEST(lists_of_very_many_tools_are_bounded_in_bytes)
{
    struct catalog *catalog = catalog_create();
    struct snapshot *snapshot = test_snapshot_of("");
    char raw[2048];
    const int owners = 400; /* of 80 MB of definitions, which count twice */
    for (int i = 0; i < owners; i++) {
        memset(raw, 'x', sizeof raw - 1);
        snprintf(raw, sizeof raw, "{\"v\":%d,\"text\":\"", i);
        raw[strlen(raw)] = 'x';
        memcpy(raw + sizeof raw - 3, "\"}", 3);
        put_hundred(catalog, snapshot, i, raw);
    }
    ck_assert_uint_lt(catalog_bytes(catalog), (size_t)129 * 1024 * 1024);
    char last[80], first[80];
    snprintf(last, sizeof last, "auth:%064d", owners - 1);
    snprintf(first, sizeof first, "auth:%064d", 0);
    ck_assert_int_eq(test_look_up(catalog, str_from(last), STR("t1")).word, CATALOG_TOLD);
    ck_assert_int_eq(test_look_up(catalog, str_from(first), STR("t1")).word, CATALOG_OTHERS);
    snapshot_unref(snapshot);
    catalog_destroy(catalog);
    metrics_finish();
}
END_TEST

START_TEST(one_alone_fetches_what_is_not_known_or_may_have_changed)
{
    struct catalog *catalog = catalog_create();
    struct snapshot *snapshot = test_snapshot_of("");
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
    server_status_note(catalog, up, true);
    server_status_note(catalog, up, false);
    ck_assert_int_eq(catalog_begin_fetch(catalog, source, 9000), CATALOG_FETCH_NONE);
    server_status_note(catalog, up, true);
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

/* A loop that asked for the lock would wait for ever. */
TCase *tool_catalog_tests(void)
{
    TCase *tests = tcase_create("catalog");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_tool_is_known_by_its_definition_whatever_the_order_of_its_members);
    tcase_add_test(tests, tools_are_counted_by_what_they_are_announced_as);
    tcase_add_test(tests, a_tool_that_a_whole_list_lacks_is_known_but_not_counted);
    tcase_add_test(tests, no_more_tools_are_remembered_than_fit);
    tcase_add_test(tests, each_owner_has_a_tool_as_it_was_told);
    tcase_add_test(tests, a_stranger_gets_the_strictest_known_tool);
    tcase_add_test(tests, a_list_is_current_until_the_server_may_have_another);
    tcase_add_test(tests, ten_thousand_owners_of_one_list_share_it);
    tcase_add_test(tests, owners_beyond_the_limit_make_room_the_longest_unseen_first);
    tcase_add_test(tests, lists_of_very_many_tools_are_bounded_in_bytes);
    tcase_add_test(tests, one_alone_fetches_what_is_not_known_or_may_have_changed);
    tcase_add_test(tests, an_owners_calls_look_for_a_tool_once_in_five_seconds);
    return tests;
}
