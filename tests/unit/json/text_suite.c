/* Walking and editing JSON text: values found, and every other byte left as it was. */
#include <stdlib.h>
#include <string.h>

#include "json_test.h"
#include "taskgate/json/members.h"
#include "taskgate/json/paths.h"
#include "taskgate/json/text.h"

static const char document[] = " { \"a\" : 1 , \"b\":\t[ 1, \"]\" ,{\"x\":[2]}, [] ] "
                               ",\n\"o\":{\"in\\u006eer\":{\"deep\":true}},"
                               "\"s\":\"q\\\"}\\\\\",\"\":null,\"n\":-1.5e3 } ";

START_TEST(types_are_told_by_the_first_byte)
{
    ck_assert_int_eq(json_type(STR_EMPTY), JSON_NONE);
    ck_assert_int_eq(json_type(STR("  ")), JSON_NONE);
    ck_assert_int_eq(json_type(STR(" {}")), JSON_OBJECT);
    ck_assert_int_eq(json_type(STR("[]")), JSON_ARRAY);
    ck_assert_int_eq(json_type(STR("\n\"\"")), JSON_STRING);
    ck_assert_int_eq(json_type(STR("-1")), JSON_NUMBER);
    ck_assert_int_eq(json_type(STR("0")), JSON_NUMBER);
    ck_assert_int_eq(json_type(STR("true")), JSON_TRUE);
    ck_assert_int_eq(json_type(STR("false")), JSON_FALSE);
    ck_assert_int_eq(json_type(STR("null")), JSON_NULL);
}
END_TEST

START_TEST(members_are_found_by_their_decoded_key)
{
    struct str object = str_from(document);
    ck_assert(json_check(object, NULL));
    expect_str(json_member(object, "a"), "1");
    expect_str(json_member(object, "b"), "[ 1, \"]\" ,{\"x\":[2]}, [] ]");
    expect_str(json_member(object, "s"), "\"q\\\"}\\\\\"");
    expect_str(json_member(object, ""), "null");
    expect_str(json_member(object, "n"), "-1.5e3");
    ck_assert_uint_eq(json_member(object, "x").length, 0);
    ck_assert_uint_eq(json_member(object, "A").length, 0);
    ck_assert_uint_eq(json_member(STR("[\"a\",1]"), "a").length, 0);
    ck_assert_uint_eq(json_member(STR("\"a\""), "a").length, 0);
    ck_assert_uint_eq(json_member(STR("{}"), "a").length, 0);
    ck_assert_uint_eq(json_member(STR_EMPTY, "a").length, 0);
}
END_TEST

START_TEST(paths_lead_through_objects)
{
    struct str object = str_from(document);
    expect_str(json_path(object, "o", "inner", "deep"), "true");
    ck_assert_uint_eq(json_path(object, "o", "outer", "deep").length, 0);
    ck_assert_uint_eq(json_path(object, "a", "b").length, 0);
}
END_TEST

START_TEST(iteration_meets_every_member_and_element_once)
{
    static const char *const keys[] = {"a", "b", "o", "s", "", "n"};
    static const char *const elements[] = {"1", "\"]\"", "{\"x\":[2]}", "[]"};
    struct str key, value, object = str_from(document);
    size_t position = 0;
    for (size_t i = 0; i < 6; i++) {
        ck_assert(json_next_member(object, &position, &key, &value));
        expect_str(key, keys[i]);
    }
    ck_assert(!json_next_member(object, &position, &key, &value));
    ck_assert(!json_next_member(object, &position, &key, &value));
    struct str array = json_member(object, "b");
    position = 0;
    for (size_t i = 0; i < 4; i++) {
        ck_assert(json_next_element(array, &position, &value));
        expect_str(value, elements[i]);
    }
    ck_assert(!json_next_element(array, &position, &value));
    position = 0;
    ck_assert(!json_next_element(object, &position, &value));
    ck_assert(!json_next_member(array, &position, &key, &value));
}
END_TEST

START_TEST(items_are_counted_at_the_top_only)
{
    ck_assert_uint_eq(json_count(str_from(document)), 6);
    ck_assert_uint_eq(json_count(STR("[[1,2],[3],{\"a\":1,\"b\":2}]")), 3);
    ck_assert_uint_eq(json_count(STR("[ ]")), 0);
    ck_assert_uint_eq(json_count(STR(" { } ")), 0);
    ck_assert_uint_eq(json_count(STR("\"[1,2]\"")), 0);
    ck_assert_uint_eq(json_count(STR_EMPTY), 0);
}
END_TEST

START_TEST(a_text_is_found_among_the_strings_of_an_array_only)
{
    ck_assert(json_has_text(STR("[1,[\"a\"],\"\\u0061b\"]"), STR("ab")));
    ck_assert(!json_has_text(STR("[1,[\"a\"],\"ab\"]"), STR("a")));
    ck_assert(!json_has_text(STR("[]"), STR_EMPTY));
    ck_assert(!json_has_text(STR("{\"a\":\"b\"}"), STR("b")));
    ck_assert(!json_has_text(STR_EMPTY, STR("a")));
}
END_TEST

START_TEST(strings_are_decoded)
{
    struct str text =
        STR(" \"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00E9\\u20ac\\uD83D\\uDE00\\u0000z\" ");
    struct buffer out;
    size_t length = 0;
    buffer_init(&out);
    ck_assert(json_check(text, NULL));
    ck_assert(json_decode_string(text, &out));
    struct str expected = STR("\"\\/\b\f\n\r\tA\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\0z");
    ck_assert(str_equal(buffer_str(&out), expected));
    ck_assert(json_string_equals(text, expected));
    ck_assert(!json_decode_string(STR("1"), &out));
    ck_assert(!json_decode_string(STR_EMPTY, &out));
    char *copy = json_string_text(STR("\"a\\u0000b\""), &length);
    ck_assert_uint_eq(length, 3);
    ck_assert_mem_eq(copy, "a\0b", 4);
    free(copy);
    copy = json_string_text(STR("\"\""), NULL);
    ck_assert_str_eq(copy, "");
    free(copy);
    ck_assert_ptr_null(json_string_text(STR("{}"), &length));
    buffer_finish(&out);
}
END_TEST

START_TEST(strings_equal_what_they_stand_for)
{
    ck_assert(json_string_equals(STR("\"abc\""), STR("abc")));
    ck_assert(json_string_equals(STR("\"a\\u0062c\""), STR("abc")));
    ck_assert(json_string_equals(STR("\"\""), STR("")));
    ck_assert(!json_string_equals(STR("\"abc\""), STR("ab")));
    ck_assert(!json_string_equals(STR("\"ab\""), STR("abc")));
    ck_assert(!json_string_equals(STR("\"\\u0061b\""), STR("abc")));
    ck_assert(!json_string_equals(STR("\"\\u00e9\""), STR("\xC3")));
    ck_assert(!json_string_equals(STR("\"abd\""), STR("abc")));
    ck_assert(json_string_equals(STR("\"a\\\\b\""), STR("a\\b")));
    ck_assert(!json_string_equals(STR("\"a\\\\b\""), STR("a\\\\b")));
    ck_assert(json_string_equals(STR(" \"abc\" "), STR("abc")));
    ck_assert(!json_string_equals(STR("1"), STR("1")));
}
END_TEST

static const struct {
    const char *object, *key, *value, *expected;
} changes[] = {
    {"{}", "k", "1", "{\"k\":1}"},
    {"", "k", "1", "{\"k\":1}"},
    {"[1]", "k", "1", "{\"k\":1}"},
    {"null", "k", "{}", "{\"k\":{}}"},
    {" { } ", "k", "1", " {\"k\":1 } "},
    {"{\"a\":1}", "k", "\"v\"", "{\"a\":1,\"k\":\"v\"}"},
    {"{\n  \"a\" : 1\n}\n", "k", "2", "{\n  \"a\" : 1,\"k\":2\n}\n"},
    {"{\"k\":{\"x\":[1,\"}\"]},\"b\":2}", "k", "0", "{\"k\":0,\"b\":2}"},
    {"{\"a\":1, \"k\" : \"old\" , \"b\":2}", "k", "[]", "{\"a\":1, \"k\" : [] , \"b\":2}"},
    {"{\"\\u006b\":1}", "k", "2", "{\"\\u006b\":2}"},
    {"{\"a\":{\"k\":1}}", "k", "2", "{\"a\":{\"k\":1},\"k\":2}"},
    {"{\"a\":1}", "q\"q", "2", "{\"a\":1,\"q\\\"q\":2}"},
};

START_TEST(one_member_is_set_and_the_rest_stays)
{
    struct buffer out;
    buffer_init(&out);
    json_write_with_member(&out, str_from(changes[_i].object), changes[_i].key,
                           str_from(changes[_i].value));
    expect_str(buffer_str(&out), changes[_i].expected);
    ck_assert(json_check(buffer_str(&out), NULL));
    expect_str(json_member(buffer_str(&out), changes[_i].key), changes[_i].value);
    buffer_finish(&out);
}
END_TEST

START_TEST(a_member_of_a_member_is_set_and_a_member_in_place)
{
    struct buffer out, object;
    buffer_init(&out);
    buffer_init(&object);
    json_write_with_inner(&out, STR("{\"a\":1,\"o\":{\"x\":2}}"), "o", "k", STR("3"));
    expect_str(buffer_str(&out), "{\"a\":1,\"o\":{\"x\":2,\"k\":3}}");
    buffer_clear(&out);
    json_write_with_inner(&out, STR("{\"o\":[]}"), "o", "k", STR("3"));
    expect_str(buffer_str(&out), "{\"o\":{\"k\":3}}");
    json_set_member(&object, "a", STR("1"));
    json_set_member(&object, "b", STR("[]"));
    json_set_member(&object, "a", STR("2"));
    expect_str(buffer_str(&object), "{\"a\":2,\"b\":[]}");
    buffer_finish(&object);
    buffer_finish(&out);
}
END_TEST

START_TEST(a_string_is_copied_into_its_room)
{
    char room[4] = "old";
    json_copy_text(room, sizeof room, STR("\"a\\u0062cde\""));
    ck_assert_str_eq(room, "abc");
    json_copy_text(room, sizeof room, STR("\"a\\u0000b\""));
    ck_assert_str_eq(room, "a");
    json_copy_text(room, sizeof room, STR("7"));
    ck_assert_str_eq(room, "");
    json_copy_text(room, sizeof room, STR(""));
    ck_assert_str_eq(room, "");
}
END_TEST

static const struct {
    const char *object, *first, *second, *third;
} members[] = {
    {"{\"a\":1,\"b\":{\"c\":2},\"c\":[3]}", "1", "{\"c\":2}", "[3]"},
    {"{\"c\" : 3 , \"x\":{\"a\":0}, \"\\u0061\": 1}", "1", "", "3"},
    {"{}", "", "", ""},
    {"[\"a\"]", "", "", ""},
    {"", "", "", ""},
};

START_TEST(several_members_are_found_in_one_walk)
{
    const char *const keys[] = {"a", "b", "c"};
    struct str values[3];
    json_members(str_from(members[_i].object), keys, 3, values);
    expect_str(values[0], members[_i].first);
    expect_str(values[1], members[_i].second);
    expect_str(values[2], members[_i].third);
}
END_TEST

static const struct {
    const char *object, *expected;
} several[] = {
    {"{\"b\":0,\"x\": [ ],\"a\":0}", "{\"b\":\"B\",\"x\": [ ],\"a\":{\"A\":1}}"},
    {"{ \"a\":0 , \"b\":0 }", "{ \"a\":{\"A\":1} , \"b\":\"B\" }"},
    {" { \"x\":1 } ", " { \"x\":1,\"a\":{\"A\":1},\"b\":\"B\" } "},
    {"{\"b\":0 }", "{\"b\":\"B\",\"a\":{\"A\":1} }"},
    {"{ }", "{\"a\":{\"A\":1},\"b\":\"B\" }"},
    {"", "{\"a\":{\"A\":1},\"b\":\"B\"}"},
    {"[0]", "{\"a\":{\"A\":1},\"b\":\"B\"}"},
};

START_TEST(members_are_found_by_the_check_and_with_their_element)
{
    static const char *const keys[] = {"b", "a"};
    struct str array = STR(
                   "[ {\"a\":[1,{\"b\":2}], \"\\u0062\":\"}]\\\"\"} , 7, {}, \"{\",{\"b\": {\"a\":"
                   "[]}}]"),
               values[2], element;
    const struct json_wanted wanted = {keys, 2, values, 0, NULL};
    static const char *const expected[][3] = {
        {"{\"a\":[1,{\"b\":2}], \"\\u0062\":\"}]\\\"\"}", "\"}]\\\"\"", "[1,{\"b\":2}]"},
        {"7", "", ""},
        {"{}", "", ""},
        {"\"{\"", "", ""},
        {"{\"b\": {\"a\":[]}}", "{\"a\":[]}", ""},
    };
    size_t position = 0, count = 0;
    ck_assert(json_check(array, NULL));
    for (; json_next_element_members(array, &position, &element, keys, 2, values); count++) {
        expect_str(element, expected[count][0]);
        for (size_t i = 0; i < 2; i++)
            expect_str(values[i], expected[count][i + 1]);
        bool is_object = json_check_members(element, &wanted);
        ck_assert(is_object == (element.bytes[0] == '{'));
        for (size_t i = 0; i < 2; i++)
            expect_str(values[i], expected[count][i + 1]);
    }
    ck_assert_uint_eq(count, sizeof expected / sizeof *expected);
    ck_assert(!json_check_members(STR("{\"a\":1,\"a\":2}"), &wanted));
    ck_assert(!json_check_members(STR("{\"a\":1"), &wanted));
    ck_assert(!json_check_members(array, &wanted));
}
END_TEST

START_TEST(checking_finds_members_of_a_member)
{
    static const char *const keys[] = {"a", "r"}, *const inner_keys[] = {"x", "a"};
    struct str values[2], inner_values[2];
    const struct json_wanted inner = {inner_keys, 2, inner_values, 0, NULL},
                             wanted = {keys, 2, values, 1, &inner};
    static const struct {
        const char *text, *a, *r, *inner_x, *inner_a;
        bool is_object;
    } rows[] = {
        {"{\"r\":{\"x\":[1,{\"a\":2}],\"\\u0061\":\"3\"},\"a\":4}", "4",
         "{\"x\":[1,{\"a\":2}],\"\\u0061\":\"3\"}", "[1,{\"a\":2}]", "\"3\"", true},
        {"{\"a\":{\"x\":1},\"r\":[{\"x\":2}]}", "{\"x\":1}", "[{\"x\":2}]", "", "", true},
        {"{\"s\":{\"r\":{\"x\":1}}, \"r\" : { } }", "", "{ }", "", "", true},
        {"{\"r\":{\"x\":1,\"x\":2}}", NULL, NULL, NULL, NULL, false},
        {"{\"r\":{\"x\":1}", NULL, NULL, NULL, NULL, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert(json_check_members(str_from(rows[i].text), &wanted) == rows[i].is_object);
        if (!rows[i].is_object)
            continue;
        expect_str(values[0], rows[i].a);
        expect_str(values[1], rows[i].r);
        expect_str(inner_values[0], rows[i].inner_x);
        expect_str(inner_values[1], rows[i].inner_a);
    }
}
END_TEST

START_TEST(several_members_are_set_at_once)
{
    const char *const keys[] = {"a", "b"};
    const struct str object = str_from(several[_i].object);
    struct str old[2];
    json_members(object, keys, 2, old);
    struct buffer out;
    buffer_init(&out);
    json_write_changed(
        &out, object,
        (const struct json_change[]){{"a", old[0], STR("{\"A\":1}")}, {"b", old[1], STR("\"B\"")}},
        2);
    expect_str(buffer_str(&out), several[_i].expected);
    buffer_finish(&out);
}
END_TEST

static const struct {
    const char *object, *key, *expected;
} removals[] = {
    {"{\"k\":1}", "k", "{}"},
    {"{ \"k\" : 1 }", "k", "{ }"},
    {"{\"k\":1,\"a\":2}", "k", "{\"a\":2}"},
    {"{\"a\":1 , \"k\":2}", "k", "{\"a\":1}"},
    {"{\"a\":1,\"k\":{\"k\":\",\"},\"b\":2}", "k", "{\"a\":1,\"b\":2}"},
    {"{\"a\":1}", "k", "{\"a\":1}"},
    {" {\"a\":{\"k\":1}} ", "k", " {\"a\":{\"k\":1}} "},
    {"{\"\\u006b\":1,\"a\":1}", "k", "{\"a\":1}"},
    {"", "k", "{}"},
    {"[\"k\"]", "k", "{}"},
};

START_TEST(one_member_is_removed_and_the_rest_stays)
{
    struct buffer out;
    buffer_init(&out);
    json_write_without_member(&out, str_from(removals[_i].object), removals[_i].key);
    expect_str(buffer_str(&out), removals[_i].expected);
    ck_assert(json_check(buffer_str(&out), NULL));
    json_set_member(&out, "k", STR("true"));
    expect_str(json_member(buffer_str(&out), "k"), "true");
    buffer_clear(&out);
    buffer_append_text(&out, removals[_i].object);
    json_set_member(&out, removals[_i].key, STR_EMPTY);
    expect_str(buffer_str(&out), removals[_i].expected);
    buffer_finish(&out);
}
END_TEST

START_TEST(the_other_members_are_written)
{
    static const char *const keys[] = {"name", "_meta"};
    static const struct {
        const char *object, *expected;
    } cases[] = {
        {"{\"name\":1,\"x\" : [1, 2] , \"_meta\":{\"x\":1},\"y\\u0061\":1.50}",
         "{\"x\":[1, 2],\"y\\u0061\":1.50}"},
        {"{\"n\\u0061me\":1}", "{}"},
        {"{}", "{}"},
        {"", "{}"},
        {"[1]", "{}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buffer out;
        buffer_init(&out);
        json_write_other_members(&out, str_from(cases[i].object), keys, 2);
        expect_str(buffer_str(&out), cases[i].expected);
        buffer_finish(&out);
    }
}
END_TEST

START_TEST(members_of_a_prefix_are_left_out_however_they_are_written)
{
    static const struct {
        const char *object, *expected;
    } cases[] = {
        {"{\"a/b\":1,\"c\":2,\"a\\/d\":3,\"\\u0061/\":4,\"A/b\":5}", "{\"c\":2,\"A/b\":5}"},
        {"{\"a/\":1}", "{}"},
        {"", "{}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buffer out;
        buffer_init(&out);
        json_write_members_outside(&out, str_from(cases[i].object), STR("a/"));
        expect_str(buffer_str(&out), cases[i].expected);
        buffer_finish(&out);
    }
}
END_TEST

START_TEST(values_alone_are_checked)
{
    struct error error;
    ck_assert(json_check(STR(" \"text\" "), &error));
    ck_assert(json_check(STR("-0"), &error));
    ck_assert(json_check(STR("[{},{\"a\":[]}]"), &error));
    ck_assert(!json_check(STR(""), &error));
    ck_assert(!json_check(STR_EMPTY, &error));
    ck_assert(!json_check(STR("1 2"), &error));
    ck_assert_str_eq(error.message, "not readable as JSON: text behind the value at byte 2");
    ck_assert(!json_check(STR("[{\"a\":1,\"a\":1}]"), &error));
    ck_assert_str_eq(error.message, "duplicate key at byte 8");
}
END_TEST

START_TEST(members_are_written_one_after_the_other)
{
    struct buffer out;
    buffer_init(&out);
    buffer_append_char(&out, '{');
    json_add_text(&out, "a", "x\"\n");
    json_add_text(&out, "b", NULL);
    json_add_text_or_null(&out, "c", "");
    json_add_text_or_null(&out, "d", "y");
    json_add_time(&out, "e", 0);
    json_add_time(&out, "f", 1768257000123);
    json_add_key(&out, "g");
    buffer_append_char(&out, '{');
    json_add_text_or_null(&out, "h", NULL);
    json_add_texts(&out, "i", NULL, 0);
    json_add_texts(&out, "j", (char *[]){"x\"", "y"}, 2);
    buffer_append_text(&out, "}}");
    struct str text = buffer_str(&out);
    struct error error;
    ck_assert(json_check(text, &error));
    buffer_append_char(&out, '\0');
    ck_assert_str_eq(
        out.bytes,
        "{\"a\":\"x\\\"\\n\",\"b\":\"\",\"c\":null,\"d\":\"y\",\"e\":null,"
        "\"f\":\"2026-01-12T22:30:00.123Z\",\"g\":{\"h\":null,\"i\":[],\"j\":[\"x\\\"\",\"y\"]}}");
    buffer_finish(&out);
}
END_TEST

START_TEST(the_place_of_what_is_wrong_is_told_apart)
{
    static const struct {
        const char *text;
        size_t place;
        const char *message;
    } cases[] = {
        {"[1,", 3, "not readable as JSON: unexpected end"},
        {"{\"a\":\n1,\"a\":2}", 8, NULL},
        {"", 0, "not readable as JSON: unexpected end"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error apart = {""}, whole = {""};
        size_t place = SIZE_MAX;
        ck_assert(!json_check_at(str_from(cases[i].text), &place, &apart));
        ck_assert_uint_eq(place, cases[i].place);
        ck_assert_msg(!cases[i].message || strcmp(apart.message, cases[i].message) == 0, "%s",
                      apart.message);
        ck_assert_ptr_null(strstr(apart.message, "byte"));
        ck_assert(!json_check(str_from(cases[i].text), &whole));
        ck_assert_int_eq(strncmp(whole.message, apart.message, strlen(apart.message)), 0);
        ck_assert_ptr_nonnull(strstr(whole.message, " at byte "));
    }
    ck_assert(json_check_at(STR(" [] "), NULL, NULL));
}
END_TEST

static const struct {
    const char *value, *paths[3], *expected;
} without[] = {
    {"{\"a\":1,\"b\":2}", {"a"}, "{\"b\":2}"},
    {" { \"\\u0061\" : 1 } ", {"a"}, "{}"},
    {"{\"a\":{\"b\":1,\"c\":2},\"b\":3}", {"a.b"}, "{\"a\":{\"c\":2},\"b\":3}"},
    {"{\"a\":{\"b\":1}}", {"a.b", "a"}, "{}"},
    {"{\"a\":{\"b\":1}}", {"a.b.c", "x"}, "{\"a\":{\"b\":1}}"},
    {"{\"a\":[{\"b\":1,\"c\":2},[{\"b\":3}],4]}", {"a.b"}, "{\"a\":[{\"c\":2},[{}],4]}"},
    {"{\"A\":1,\"a.b\":2}", {"a", "a.b"}, "{\"A\":1,\"a.b\":2}"},
    {"[1, 2]", {NULL}, "[1, 2]"},
};

START_TEST(members_at_paths_are_left_out)
{
    struct buffer out;
    size_t count = 0;
    while (without[_i].paths[count])
        count++;
    buffer_init(&out);
    json_write_without_paths(&out, str_from(without[_i].value), (char *const *)without[_i].paths,
                             count);
    expect_str(buffer_str(&out), without[_i].expected);
    buffer_finish(&out);
}
END_TEST

Suite *text_suite(void)
{
    Suite *suite = suite_create("text");
    TCase *tests = tcase_create("text");
    tcase_add_test(tests, types_are_told_by_the_first_byte);
    tcase_add_test(tests, members_are_found_by_their_decoded_key);
    tcase_add_test(tests, paths_lead_through_objects);
    tcase_add_test(tests, iteration_meets_every_member_and_element_once);
    tcase_add_test(tests, items_are_counted_at_the_top_only);
    tcase_add_test(tests, a_text_is_found_among_the_strings_of_an_array_only);
    tcase_add_test(tests, strings_are_decoded);
    tcase_add_test(tests, strings_equal_what_they_stand_for);
    tcase_add_loop_test(tests, one_member_is_set_and_the_rest_stays, 0,
                        sizeof changes / sizeof changes[0]);
    tcase_add_test(tests, a_member_of_a_member_is_set_and_a_member_in_place);
    tcase_add_test(tests, a_string_is_copied_into_its_room);
    tcase_add_loop_test(tests, one_member_is_removed_and_the_rest_stays, 0,
                        sizeof removals / sizeof removals[0]);
    tcase_add_loop_test(tests, several_members_are_found_in_one_walk, 0,
                        sizeof members / sizeof *members);
    tcase_add_test(tests, members_are_found_by_the_check_and_with_their_element);
    tcase_add_test(tests, checking_finds_members_of_a_member);
    tcase_add_loop_test(tests, several_members_are_set_at_once, 0,
                        sizeof several / sizeof *several);
    tcase_add_test(tests, the_other_members_are_written);
    tcase_add_loop_test(tests, members_at_paths_are_left_out, 0, sizeof without / sizeof *without);
    tcase_add_test(tests, members_of_a_prefix_are_left_out_however_they_are_written);
    tcase_add_test(tests, values_alone_are_checked);
    tcase_add_test(tests, the_place_of_what_is_wrong_is_told_apart);
    tcase_add_test(tests, members_are_written_one_after_the_other);
    suite_add_tcase(suite, tests);
    return suite;
}
