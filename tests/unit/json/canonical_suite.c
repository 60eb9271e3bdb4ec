/* The canonical form: one for equal values, different for different ones. */
#include <string.h>

#include "../scaling.h"
#include "json_test.h"
#include "taskgate/json/canonical.h"
#include "taskgate/json/text.h"

static const struct {
    const char *value, *form;
} forms[] = {
    {"", "{}"},
    {" { } ", "{}"},
    {"[ 1 , [ ] ,\t{ } , \"\" ]", "[1,[],{},\"\"]"},
    {"{\"b\":1,\"a\":2}", "{\"a\":2,\"b\":1}"},
    {"{\"b\" : {\"d\":1,\"c\":[3 , 2]} , \"a\":null}", "{\"a\":null,\"b\":{\"c\":[3,2],\"d\":1}}"},
    {"{\"ab\":1,\"a\":2,\"\":3,\"B\":4}", "{\"\":3,\"B\":4,\"a\":2,\"ab\":1}"},
    /* By the bytes of the decoded key: a newline before '!', a quote before '#', é last. */
    {"{\"\\u00e9\":5,\"z\":4,\"#\":3,\"\\\"\":2,\"!\":1,\"\\n\":0}",
     "{\"\\n\":0,\"!\":1,\"\\\"\":2,\"#\":3,\"z\":4,\"\xC3\xA9\":5}"},
    {"\"\\u0041\\/\\u00E9\\ud83d\\ude00\"", "\"A/\xC3\xA9\xF0\x9F\x98\x80\""},
    {"\"\\u0022\\u005C\\u0008\\u000c\\u000A\\u000D\\u0009\\u0000\\u001F\\u007f\"",
     "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f\x7F\""},
    /* Numbers stay as they are written. */
    {"[1.0,1,1e2,1E+2,-0]", "[1.0,1,1e2,1E+2,-0]"},
    {" true ", "true"},
    {"{\"c\":{\"y\":1,\"x\":2},\"b\":[{\"q\":1,\"p\":2}],\"a\":{\"w\":{\"v\":1,\"u\":2}}}",
     "{\"a\":{\"w\":{\"u\":2,\"v\":1}},\"b\":[{\"p\":2,\"q\":1}],\"c\":{\"x\":2,\"y\":1}}"},
    /* Objects out of order in and beside those in order. */
    {"{\"b\":{\"c\":{\"e\":1,\"d\":2},\"f\":[{\"h\":3,\"g\":4},{}]},\"a\":0}",
     "{\"a\":0,\"b\":{\"c\":{\"d\":2,\"e\":1},\"f\":[{\"g\":4,\"h\":3},{}]}}"},
    {"[{\"a\":{\"c\":1,\"b\":[{\"e\":1,\"d\":{}}]},\"f\":2},{\"b\":1,\"a\":2}]",
     "[{\"a\":{\"b\":[{\"d\":{},\"e\":1}],\"c\":1},\"f\":2},{\"a\":2,\"b\":1}]"},
    /* Keys that agree for eight bytes and more, or end there. */
    {"{\"12345678b\":1,\"12345678\":2,\"1234567\":3,\"12345678a\":4,\"1234567\\u0000\":5}",
     "{\"1234567\":3,\"1234567\\u0000\":5,\"12345678\":2,\"12345678a\":4,\"12345678b\":1}"},
};

START_TEST(values_have_one_form)
{
    struct buffer out, again;
    buffer_init(&out);
    buffer_init(&again);
    canonical_write(str_from(forms[_i].value), &out);
    expect_str(buffer_str(&out), forms[_i].form);
    ck_assert(json_check(buffer_str(&out), NULL));
    canonical_write(buffer_str(&out), &again);
    expect_str(buffer_str(&again), forms[_i].form);
    buffer_finish(&again);
    buffer_finish(&out);
}
END_TEST

START_TEST(the_form_is_appended)
{
    struct buffer out;
    buffer_init(&out);
    buffer_append_text(&out, "before ");
    canonical_write(STR("{\"b\":1,\"a\":{\"d\":1,\"c\":1}}"), &out);
    expect_str(buffer_str(&out), "before {\"a\":{\"c\":1,\"d\":1},\"b\":1}");
    buffer_finish(&out);
}
END_TEST

START_TEST(digests_are_equal_exactly_for_equal_values)
{
    static const char *const equal[] = {
        "{\"path\":\"/tmp/x\",\"n\":1}",
        " {\n\"n\" : 1,\t\"path\":\"\\/tmp\\/x\" } ",
        "{\"\\u006e\":1,\"p\\u0061th\":\"/tmp\\u002fx\"}",
    };
    static const char *const other[] = {
        "{\"path\":\"/tmp/x\",\"n\":2}",         "{\"path\":\"/tmp/x\",\"n\":\"1\"}",
        "{\"path\":\"/tmp/x\",\"n\":1.0}",       "{\"path\":\"/tmp/x\",\"N\":1}",
        "{\"path\":\"/tmp/X\",\"n\":1}",         "{\"path\":\"/tmp/x\"}",
        "{\"path\":\"/tmp/x\",\"n\":1,\"m\":1}", "[\"path\",\"/tmp/x\",\"n\",1]",
        "{\"path\":[\"/tmp/x\"],\"n\":1}",       "{\"path\":\"/tmp/x \",\"n\":1}",
    };
    char first[DIGEST_HEX_BYTES], hex[DIGEST_HEX_BYTES];
    canonical_digest(str_from(equal[0]), first);
    for (size_t i = 1; i < sizeof equal / sizeof equal[0]; i++) {
        canonical_digest(str_from(equal[i]), hex);
        ck_assert_str_eq(hex, first);
    }
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        canonical_digest(str_from(other[i]), hex);
        ck_assert_str_ne(hex, first);
    }
    /* SHA-256 of the two bytes {}. */
    canonical_digest(STR_EMPTY, hex);
    ck_assert_str_eq(hex, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
}
END_TEST

START_TEST(long_escaped_keys_are_sorted)
{
    struct buffer value, form;
    buffer_init(&value);
    buffer_init(&form);
    for (int i = 0; i < 9; i++)
        buffer_append_format(&value, "%c\"\\u006b%0300d\":%d", i == 0 ? '{' : ',', 9 - i, 9 - i);
    buffer_append_char(&value, '}');
    canonical_write(buffer_str(&value), &form);
    struct str key, number;
    size_t position = 0;
    for (int i = 1; i <= 9; i++) {
        ck_assert(json_next_member(buffer_str(&form), &position, &key, &number));
        ck_assert_uint_eq(key.length, 301);
        ck_assert_int_eq(key.bytes[0], 'k');
        ck_assert_int_eq(number.bytes[0], '0' + i);
    }
    buffer_finish(&form);
    buffer_finish(&value);
}
END_TEST

START_TEST(large_objects_are_sorted)
{
    struct buffer value, form, expected;
    buffer_init(&value);
    buffer_init(&form);
    buffer_init(&expected);
    for (int i = 0; i < 5000; i++) {
        buffer_append_format(&value, "%c\"k%05d\": \"v\\u0031%d\"", i == 0 ? '{' : ',', 4999 - i,
                             4999 - i);
        buffer_append_format(&expected, "%c\"k%05d\":\"v1%d\"", i == 0 ? '{' : ',', i, i);
    }
    buffer_append_char(&value, '}');
    buffer_append_text(&expected, "}");
    canonical_write(buffer_str(&value), &form);
    ck_assert(str_equal(buffer_str(&form), buffer_str(&expected)));
    buffer_finish(&expected);
    buffer_finish(&form);
    buffer_finish(&value);
}
END_TEST

/* ---- depth ---- */

static void write_form(void *input)
{
    struct buffer form = {0};
    canonical_write(buffer_str(input), &form);
    buffer_finish(&form);
}

/* A long text below `depth` objects, each of which is out of order. */
static void append_deep(struct buffer *out, int depth)
{
    for (int i = 0; i < depth; i++)
        buffer_append_text(out, "{\"b\":1,\"a\":");
    buffer_append_format(out, "\"%0*d\"", 1 << 20, 0);
    for (int i = 0; i < depth; i++)
        buffer_append_char(out, '}');
}

START_TEST(a_deep_member_costs_as_much_as_a_high_one)
{
    struct buffer high = {0}, deep = {0};
    append_deep(&high, 1);
    append_deep(&deep, 120);
    expect_scaling(write_form, &high, &deep, 3);
    buffer_finish(&high);
    buffer_finish(&deep);
}
END_TEST

Suite *canonical_suite(void)
{
    Suite *suite = suite_create("canonical");
    TCase *tests = tcase_create("canonical");
    tcase_add_loop_test(tests, values_have_one_form, 0, sizeof forms / sizeof forms[0]);
    tcase_add_test(tests, the_form_is_appended);
    tcase_add_test(tests, digests_are_equal_exactly_for_equal_values);
    tcase_add_test(tests, long_escaped_keys_are_sorted);
    tcase_add_test(tests, large_objects_are_sorted);
    tcase_add_test(tests, a_deep_member_costs_as_much_as_a_high_one);
    suite_add_tcase(suite, tests);
    return suite;
}
