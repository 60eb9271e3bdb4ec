/* Rewritten replies: found by all of what they were made of, and by nothing less. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "methods/list_cache.h"
#include "suites.h"
#include "taskgate/core/memory.h"

static struct catalog *catalog;
static struct seen_table *lists;

static void begin(void)
{
    catalog = catalog_create();
    lists = rewritten_lists_create();
}

static void end(void)
{
    seen_table_destroy(lists);
    catalog_destroy(catalog);
}

static struct rewritten_key key_of(const char *before, const char *behind)
{
    return (struct rewritten_key){.reply = {str_from(before), str_from(behind)},
                                  .source = STR("up"),
                                  .snapshot = 1,
                                  .client = 2};
}

static void put(const struct rewritten_key *key, const char *written)
{
    struct rewritten_list *list = rewritten_list_create(key, catalog_page_create(catalog));
    struct buffer text;
    buffer_init(&text);
    buffer_append_text(&text, written);
    rewritten_list_set_written(list, &text, 1);
    rewritten_lists_put(lists, list);
}

/* The text for the key with the id 7; "" when nothing is known. */
static const char *found(const struct rewritten_key *key)
{
    static char text[64];
    struct buffer out;
    struct rewritten_list *list = rewritten_lists_find(lists, key);
    buffer_init(&out);
    if (list)
        rewritten_list_write(list, STR("7"), &out);
    rewritten_list_unref(list);
    snprintf(text, sizeof text, "%.*s", STR_ARGS(buffer_str(&out)));
    buffer_finish(&out);
    return text;
}

START_TEST(a_list_is_found_by_all_that_it_was_made_of)
{
    const struct rewritten_key key = key_of("{a", "b}");
    begin();
    ck_assert_str_eq(found(&key), "");
    put(&key, "<>");
    ck_assert_str_eq(found(&key), "<7>");
    struct rewritten_key other = key;
    other.snapshot = 2;
    ck_assert_str_eq(found(&other), "");
    other = key;
    other.client = 3;
    ck_assert_str_eq(found(&other), "");
    other = key;
    other.source = STR("uq");
    ck_assert_str_eq(found(&other), "");
    other = key_of("{b", "b}");
    ck_assert_str_eq(found(&other), "");
    other = key_of("{a", "c}");
    ck_assert_str_eq(found(&other), "");
    other = key_of("{ab", "}"); /* the same bytes with the id elsewhere */
    ck_assert_str_eq(found(&other), "");
    put(&key, "()");
    ck_assert_str_eq(found(&key), "(7)");
    end();
}
END_TEST

START_TEST(the_longest_unused_go_by_number_and_by_bytes)
{
    char before[32];
    begin();
    for (int i = 0; i < 256; i++) {
        snprintf(before, sizeof before, "{%d", i);
        const struct rewritten_key key = key_of(before, "}");
        put(&key, "<>");
    }
    const struct rewritten_key first = key_of("{0", "}"), second = key_of("{1", "}"),
                               more = key_of("{more", "}");
    ck_assert_str_eq(found(&first), "<7>"); /* used: the second is the oldest now */
    put(&more, "<>");
    ck_assert_str_eq(found(&first), "<7>");
    ck_assert_str_eq(found(&second), "");
    size_t length = (size_t)4 * 1024 * 1024;
    char *big = memory_alloc(2 * length + 1);
    memset(big, 'x', 2 * length);
    struct rewritten_key huge = key_of(big, "}");
    put(&huge, "<>"); /* too long for one */
    ck_assert_str_eq(found(&huge), "");
    ck_assert_str_eq(found(&first), "<7>");
    big[length] = '\0';
    for (int i = 0; i < 9; i++) {
        big[0] = (char)('a' + i);
        huge = key_of(big, "}");
        put(&huge, "<>");
        ck_assert_str_eq(found(&huge), "<7>");
    }
    ck_assert_str_eq(found(&first), "");
    /* Nine of more than 4 MiB are more than 32 MiB. */
    big[0] = 'b';
    ck_assert_str_eq(found(&huge), "");
    big[0] = 'c';
    ck_assert_str_eq(found(&huge), "<7>");
    free(big);
    end();
}
END_TEST

START_TEST(a_list_in_use_outlives_its_place)
{
    const struct rewritten_key key = key_of("{a", "b}");
    struct buffer out;
    begin();
    put(&key, "<>");
    struct rewritten_list *list = rewritten_lists_find(lists, &key);
    put(&key, "()");
    buffer_init(&out);
    rewritten_list_write(list, STR("\"x\""), &out);
    ck_assert(str_equal(buffer_str(&out), STR("<\"x\">")));
    buffer_finish(&out);
    rewritten_list_unref(list);
    end();
}
END_TEST

/* `behind` is "" where no id is found. */
static const struct {
    const char *message, *id, *before, *behind;
} messages[] = {
    {"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"tools\":[]},\"padding\":\"0123456789\"}", "7",
     "{\"jsonrpc\":\"2.0\",\"id\":", ",\"result\":{\"tools\":[]},\"padding\":\"0123456789\"}"},
    {"{\"id\": \"a\" ,\"result\":{\"tools\":[]},\"padding\":\"01234567890123456789012345678901\"}",
     "\"a\"",
     "{\"id\": ", " ,\"result\":{\"tools\":[]},\"padding\":\"01234567890123456789012345678901\"}"},
    /* Longer numbers and other texts that begin alike are others. */
    {"{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{\"tools\":[]},\"padding\":\"0123456789\"}", "7",
     "", ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":7.0,\"result\":{\"tools\":[]},\"padding\":\"0123456789\"}", "7",
     "", ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":8,\"result\":{\"tools\":[]},\"padding\":\"0123456789\"}", "7", "",
     ""},
    /* At the end, where a result of any length stands before it. */
    {"{\"result\":{\"tools\":[{\"name\":"
     "\"0123456789012345678901234567890123456789012345678901234567"
     "8901234567890\"}]},\"id\":7}",
     "7",
     "{\"result\":{\"tools\":[{\"name\":"
     "\"0123456789012345678901234567890123456789012345678901234567"
     "8901234567890\"}]},\"id\":",
     "}"},
    {"", "7", "", ""},
    {"{\"id\":", "7", "", ""},
    {"{\"id\":7}", "", "", ""},
};

START_TEST(an_id_is_found_at_both_ends)
{
    struct reply_parts parts = {STR_EMPTY, STR_EMPTY};
    bool is_found =
        reply_parts_find(&parts, str_from(messages[_i].message), str_from(messages[_i].id));
    ck_assert(is_found == (messages[_i].behind[0] != '\0'));
    ck_assert(str_equal(parts.before, str_from(messages[_i].before)));
    ck_assert(str_equal(parts.behind, str_from(messages[_i].behind)));
}
END_TEST

TCase *rewritten_lists_tests(void)
{
    TCase *tests = tcase_create("rewritten lists");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_list_is_found_by_all_that_it_was_made_of);
    tcase_add_test(tests, the_longest_unused_go_by_number_and_by_bytes);
    tcase_add_test(tests, a_list_in_use_outlives_its_place);
    tcase_add_loop_test(tests, an_id_is_found_at_both_ends, 0,
                        (int)(sizeof messages / sizeof *messages));
    return tests;
}
