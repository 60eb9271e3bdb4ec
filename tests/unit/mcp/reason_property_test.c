/* The agent's reason: in the schemas of tools, and in arguments of all shapes. */
#include "mcp_test.h"

#include <stdio.h>

#include "taskgate/json/text.h"
#include "taskgate/mcp/reason_property.h"

static const struct {
    const char *schema;
    bool fits;
} schemas[] = {
    {"{\"type\":\"object\"}", true},
    {"{\"type\":\"object\",\"properties\":{\"a\":{}},\"required\":[\"a\"]}", true},
    {"{\"type\":\"object\",\"properties\":{\"nested\":{\"taskgate_reason\":{}}}}", true},
    {"{\"type\":\"object\",\"properties\":{\"taskgate_reason\":{}}}", false},
    {"{\"type\":\"object\",\"properties\":{\"taskgate\\u005freason\":{}}}", false},
    {"{\"type\":\"object\",\"properties\":[]}", false},
    {"{\"type\":\"object\",\"required\":\"a\"}", false},
    {"{\"type\":\"string\"}", false},
    {"{\"type\":[\"object\",\"null\"]}", false},
    {"{}", false},
    {"[]", false},
    {"true", false},
    {"", false},
};

START_TEST(test_only_the_schema_of_an_object_without_it_fits)
{
    ck_assert_msg(reason_property_fits(str_from(schemas[_i].schema)) == schemas[_i].fits, "%s",
                  schemas[_i].schema);
}
END_TEST

#define PROPERTY                                                                                   \
    "\"taskgate_reason\":{\"type\":\"string\",\"minLength\":10,\"maxLength\":500,"                 \
    "\"description\":\"Why you make this call, for the person who decides on it.\"}"

static const struct {
    const char *schema;
    bool is_required;
    const char *written;
} writings[] = {
    {"{\"type\":\"object\"}", false, "{\"type\":\"object\",\"properties\":{" PROPERTY "}}"},
    {"{\"type\":\"object\"}", true,
     "{\"type\":\"object\",\"properties\":{" PROPERTY "},\"required\":[\"taskgate_reason\"]}"},
    {"{ \"required\" : [\"a\", \"b\"],\"type\":\"object\",\"properties\":{\"a\":{}} }", true,
     "{ \"required\" : [\"a\",\"b\",\"taskgate_reason\"],\"type\":\"object\",\"properties\":"
     "{\"a\":{}," PROPERTY "} }"},
};

START_TEST(test_the_property_is_added_to_the_schema)
{
    struct buffer out;
    buffer_init(&out);
    reason_property_write(&out, str_from(writings[_i].schema), writings[_i].is_required);
    expect_str(buffer_str(&out), writings[_i].written);
    buffer_finish(&out);
}
END_TEST

static const struct {
    const char *arguments;
    enum reason_property verdict;
    const char *reason, *rest; /* when it is good; what is left without the member */
} calls[] = {
    {"{\"taskgate_reason\":\"because of it\"}", REASON_PROPERTY_GOOD, "because of it", "{}"},
    {"{\"taskgate_reason\":\"because of it\",\"a\":1}", REASON_PROPERTY_GOOD, "because of it",
     "{\"a\":1}"},
    {"{\"a\":1 , \"taskgate_reason\" : \" \\n0123456789\\t\" }", REASON_PROPERTY_GOOD, "0123456789",
     "{\"a\":1 }"},
    {"{\"a\":1,\"taskgate\\u005Freason\":\"\\u00e4123456789\",\"b\":2}", REASON_PROPERTY_GOOD,
     "ä123456789", "{\"a\":1,\"b\":2}"},
    {"{\"a\":{\"taskgate_reason\":\"because of it\"}}", REASON_PROPERTY_ABSENT, NULL,
     "{\"a\":{\"taskgate_reason\":\"because of it\"}}"},
    {"{\"a\":\"\\\"taskgate_reason\\\":1\"}", REASON_PROPERTY_ABSENT, NULL, NULL},
    {"{\"taskgate_reason \":\"because of it\"}", REASON_PROPERTY_ABSENT, NULL, NULL},
    {"{\"taskgate_reason\\u0000\":\"because of it\"}", REASON_PROPERTY_ABSENT, NULL, NULL},
    {"{\"taskgate_reason\":"
     "\"\\u200b\\u3164\\u00a0\\u2066\\u200d\\u00ad\\ufeff\\u2800\\u180e\\u2029\"}",
     REASON_PROPERTY_BAD, NULL, NULL},
    {"{}", REASON_PROPERTY_ABSENT, NULL, NULL},
    {"", REASON_PROPERTY_ABSENT, NULL, NULL},
    {"{\"taskgate_reason\":\"   012345678   \"}", REASON_PROPERTY_BAD, NULL, NULL},
    {"{\"taskgate_reason\":\"0123456789\\u0000\"}", REASON_PROPERTY_BAD, NULL, NULL},
    {"{\"taskgate_reason\":\"\"}", REASON_PROPERTY_BAD, NULL, NULL},
    {"{\"taskgate_reason\":null}", REASON_PROPERTY_BAD, NULL, NULL},
    {"{\"taskgate_reason\":1234567890123}", REASON_PROPERTY_BAD, NULL, NULL},
    {"{\"taskgate_reason\":[\"because of it\"]}", REASON_PROPERTY_BAD, NULL, NULL},
    {"{\"taskgate_reason\":{\"a\":\"because of it\"}}", REASON_PROPERTY_BAD, NULL, NULL},
};

START_TEST(test_the_member_is_read_and_taken_out_however_it_is_written)
{
    struct str arguments = str_from(calls[_i].arguments);
    struct buffer reason, rest;
    buffer_init(&reason);
    buffer_init(&rest);
    ck_assert_int_eq(reason_property_read(arguments, &reason), calls[_i].verdict);
    expect_str(buffer_str(&reason), calls[_i].reason ? calls[_i].reason : "");
    if (calls[_i].rest) {
        json_write_without_member(&rest, arguments, REASON_PROPERTY);
        expect_str(buffer_str(&rest), calls[_i].rest);
    }
    buffer_finish(&rest);
    buffer_finish(&reason);
}
END_TEST

START_TEST(test_the_length_is_that_of_characters)
{
    for (int count = 499; count <= 501; count++) {
        struct buffer arguments, reason;
        buffer_init(&arguments);
        buffer_init(&reason);
        buffer_append_text(&arguments, "{\"taskgate_reason\":\"");
        for (int i = 0; i < count; i++)
            buffer_append_text(&arguments, "é");
        buffer_append_text(&arguments, "\"}");
        ck_assert_int_eq(reason_property_read(buffer_str(&arguments), &reason),
                         count <= REASON_PROPERTY_MOST ? REASON_PROPERTY_GOOD
                                                       : REASON_PROPERTY_BAD);
        buffer_finish(&reason);
        buffer_finish(&arguments);
    }
}
END_TEST

/* ---- generated forms ---- */

#define FORMS 20000
#define OTHERS_MOST 4

static uint32_t seed;
static uint32_t roll(uint32_t count)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % count;
}

static void add_space(struct buffer *out)
{
    static const char *const spaces[] = {"", "", "", " ", "\n", "\t  ", "\r\n"};
    buffer_append_text(out, spaces[roll(sizeof spaces / sizeof *spaces)]);
}

/* The key with some of its letters as escapes. */
static void add_key(struct buffer *out)
{
    buffer_append_char(out, '"');
    for (const char *c = REASON_PROPERTY; *c; c++) {
        if (roll(3))
            buffer_append_char(out, *c);
        else
            buffer_append_format(out, roll(2) ? "\\u%04x" : "\\u%04X", (unsigned)*c);
    }
    buffer_append_char(out, '"');
}

struct form {
    struct buffer text;
    struct str others[OTHERS_MOST]; /* each member but the reason, with the space inside it */
    size_t other_count;
    char names[OTHERS_MOST][128];
};

static void add_other(struct form *form)
{
    static const char *const members[] = {
        "\"a%d\" : {\"taskgate_reason\":\"inside, of it\"}",
        "\"taskgate_reason%d\":\"a longer key\"",
        "\"b%d\"\n:[ 1 ,\"taskgate_reason\", 2.50e+1 ]",
        "\"\\\"taskgate_reason%d\":null",
        "\"c%d\":\"\\\",\\\"taskgate_reason\\\":\\\"x\"",
        "\"d%d\":-0.0",
    };
    size_t i = form->other_count++;
    snprintf(form->names[i], sizeof form->names[i], members[roll(sizeof members / sizeof *members)],
             (int)i);
    form->others[i] = str_from(form->names[i]);
    buffer_append(&form->text, form->others[i]);
}

static void add_reason(struct form *form)
{
    add_key(&form->text);
    add_space(&form->text);
    buffer_append_char(&form->text, ':');
    add_space(&form->text);
    buffer_append_text(&form->text, "\"bec\\u0061use, {of} \\\"it\\\"\"");
}

static void make(struct form *form)
{
    size_t count = roll(OTHERS_MOST + 1) + 1, place = roll((uint32_t)count);
    form->other_count = 0;
    buffer_clear(&form->text);
    buffer_append_char(&form->text, '{');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buffer_append_char(&form->text, ',');
        add_space(&form->text);
        if (i == place)
            add_reason(form);
        else
            add_other(form);
        add_space(&form->text);
    }
    buffer_append_char(&form->text, '}');
}

/* One piece of the text is gone, and nothing else has changed. */
static bool is_cut_once(struct str whole, struct str rest)
{
    size_t before = 0, behind = 0;
    while (before < rest.length && rest.bytes[before] == whole.bytes[before])
        before++;
    while (behind < rest.length &&
           rest.bytes[rest.length - 1 - behind] == whole.bytes[whole.length - 1 - behind])
        behind++;
    return rest.length < whole.length && before + behind >= rest.length;
}

static void expect_others(const struct form *form, struct str rest)
{
    struct str key, value;
    size_t position = 0, count = 0;
    while (json_next_member(rest, &position, &key, &value)) {
        const char *quote = key.bytes - 1;
        ck_assert_uint_lt(count, form->other_count);
        expect_str(str_slice(quote, (size_t)(value.bytes + value.length - quote)),
                   form->names[count++]);
    }
    ck_assert_uint_eq(count, form->other_count);
}

START_TEST(test_a_call_without_the_member_keeps_every_other_byte)
{
    struct form form = {.other_count = 0};
    struct buffer reason, rest;
    buffer_init(&form.text);
    buffer_init(&reason);
    buffer_init(&rest);
    seed = 20260301;
    for (int i = 0; i < FORMS; i++) {
        make(&form);
        buffer_clear(&reason);
        buffer_clear(&rest);
        struct str whole = buffer_str(&form.text);
        ck_assert_msg(json_check(whole, NULL), "%.*s", STR_ARGS(whole));
        ck_assert_int_eq(reason_property_read(whole, &reason), REASON_PROPERTY_GOOD);
        expect_str(buffer_str(&reason), "because, {of} \"it\"");
        json_write_without_member(&rest, whole, REASON_PROPERTY);
        ck_assert_msg(json_check(buffer_str(&rest), NULL), "%.*s", STR_ARGS(whole));
        ck_assert_msg(is_cut_once(whole, buffer_str(&rest)), "%.*s", STR_ARGS(whole));
        expect_others(&form, buffer_str(&rest));
        /* The same name again, however it is written, is no JSON for the gateway. */
        form.text.length--;
        buffer_append_char(&form.text, ',');
        add_reason(&form);
        buffer_append_char(&form.text, '}');
        ck_assert(!json_check(buffer_str(&form.text), NULL));
    }
    buffer_finish(&rest);
    buffer_finish(&reason);
    buffer_finish(&form.text);
}
END_TEST

Suite *reason_property_suite(void)
{
    Suite *suite = suite_create("reason_property");
    TCase *tests = tcase_create("reason_property");
    tcase_add_loop_test(tests, test_only_the_schema_of_an_object_without_it_fits, 0,
                        sizeof schemas / sizeof *schemas);
    tcase_add_loop_test(tests, test_the_property_is_added_to_the_schema, 0,
                        sizeof writings / sizeof *writings);
    tcase_add_loop_test(tests, test_the_member_is_read_and_taken_out_however_it_is_written, 0,
                        sizeof calls / sizeof *calls);
    tcase_add_test(tests, test_the_length_is_that_of_characters);
    tcase_add_test(tests, test_a_call_without_the_member_keeps_every_other_byte);
    suite_add_tcase(suite, tests);
    return suite;
}
