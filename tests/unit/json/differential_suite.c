/*
 * Against a second reader: jansson and this layer agree about thousands of mutated
 * documents, except for a short list of intended differences, and edits have their intended
 * effect.
 */
#include <stdlib.h>
#include <string.h>

#include "json_test.h"
#include "second_reader.h"
#include "taskgate/core/buffer.h"
#include "taskgate/json/canonical.h"
#include "taskgate/json/envelope.h"
#include "taskgate/json/text.h"

#define ROUNDS 12000
#define CALL "{\"jsonrpc\":\"2.0\",\"id\":17,\"method\":\"tools/call\",\"params\":"

static const char *const seeds[] = {
    CALL "{\"name\":\"x\",\"arguments\":{\"a\":[1,2.5e-3,-0],\"b\":\"\\u00e9\\n\"},\"task\":{"
         "\"ttl\":5}}}",
    CALL
    "{ \"task\" : {} , \"name\" : \"\\ud83d\\ude00\" , \"_meta\":{\"progressToken\":\"t\"} } }",
    "{\"params\":{\"task\":1},\"id\":\"s\",\"method\":\"m\",\"jsonrpc\":\"2.0\"}",
    "{\"a\":1,\"\\u0061b\":2,\"ab\\u0000\":3,\"\":{\"\":{\"\":[]}},\"\xC3\xA9\":"
    "\"\xF0\x9F\x98\x80\"}",
    "[true,false,null,\"\\\"\\\\\\/"
    "\\b\\f\\n\\r\\t\",[[[]]],{},0,-1,10,1E5,1e+5,123456789012345678]",
    " [ { \"k1\" : 1 , \"k2\" : 2 , \"k3\" : 3 } , { \"k1\" : \"\\u007f\\u0080\\u07ff\\u0800\" } "
    "]\n",
    "\"long enough to be read by the word: abcdefghijklmnopqrstuvwxyz \xE2\x82\xAC and more\"",
    "{\"k0\":0,\"k1\":0,\"k2\":0,\"k3\":0,\"k4\":0,\"k5\":0,\"k6\":0,\"k7\":0,\"k8\":0,\"k9\":0,"
    "\"ka\":0,\"kb\":0,\"kc\":0,\"kd\":0,\"ke\":0,\"kf\":0,\"kg\":0,\"kh\":0,\"ki\":0,\"kj\":0}",
};
#define SEEDS (sizeof seeds / sizeof seeds[0])

static uint64_t state;

/* xorshift64: the same documents in every run. */
static size_t below(size_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state % limit);
}

/* Replaces up to `removed` bytes at `at` by `inserted`. */
static void replace(struct buffer *text, size_t at, size_t removed, struct str inserted)
{
    struct buffer changed;
    buffer_init(&changed);
    if (removed > text->length - at)
        removed = text->length - at;
    buffer_append(&changed, str_slice(text->bytes, at));
    buffer_append(&changed, inserted);
    buffer_append(&changed, str_slice(text->bytes + at + removed, text->length - at - removed));
    buffer_finish(text);
    *text = changed;
}

static void mutate(struct buffer *text)
{
    static const char *const pieces[] = {
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "\\u",
        "d83d",
        "\\ud800",
        "\\udc00",
        "\\u0000",
        "0",
        "9",
        "-",
        "+",
        ".",
        "e",
        "E",
        "true",
        "null",
        " ",
        "\n",
        "\t",
        "/",
        "\x01",
        "\x7F",
        "\x80",
        "\xC3",
        "\xED\xA0\x80",
        "\xF4\x90\x80\x80",
        "\xEF\xBB\xBF",
        "\"a\":1,",
        "\"k1\":1,",
        "1e999",
        "99999999999999999999",
        "\"id\":2,",
        "\"task\":{},",
    };
    size_t at = below(text->length + 1);
    const char *piece = pieces[below(sizeof pieces / sizeof pieces[0])];
    char byte = (char)below(256);
    switch (below(5)) {
    case 0:
        replace(text, at, 0, str_from(piece));
        break;
    case 1:
        replace(text, at, 1 + below(4), str_from(piece));
        break;
    case 2:
        replace(text, at, 1 + below(3), STR_EMPTY);
        break;
    case 3:
        replace(text, at, 1, str_slice(&byte, 1));
        break;
    default: {
        /* Some of the text's own bytes again, somewhere else. */
        size_t from = below(text->length + 1), length = below(12);
        char copy[12];
        if (length > text->length - from)
            length = text->length - from;
        memcpy(copy, text->bytes + from, length);
        replace(text, at, 0, str_slice(copy, length));
    }
    }
}

static void expect_same_value(const struct second_value *value, struct str text)
{
    ck_assert_msg(second_equals(value, text), "<%.*s> means something else", STR_ARGS(text));
}

static void check_edits(struct str text, struct second_value *value)
{
    struct buffer out;
    buffer_init(&out);
    ck_assert_uint_eq(json_count(text), second_count(value));
    canonical_write(text, &out);
    expect_same_value(value, buffer_str(&out));
    if (second_is_object(value)) {
        buffer_clear(&out);
        json_write_with_member(&out, text, "k1", STR("[7]"));
        second_set(value, "k1", STR("[7]"));
        expect_same_value(value, buffer_str(&out));
        buffer_clear(&out);
        json_write_without_member(&out, text, "k1");
        second_delete(value, "k1");
        expect_same_value(value, buffer_str(&out));
    }
    buffer_finish(&out);
}

/* Texts of which one reader alone refuses something on purpose. */
static void expect_intended(struct str text, bool ours, const struct error *error,
                            const struct second_refusal *refusal)
{
    bool intended = ours ? refusal->intended : strstr(error->message, "nested too deep") != NULL;
    ck_assert_msg(intended, "<%.*s>\nhere: %s\njansson: %s", STR_ARGS(text), error->message,
                  refusal->text);
}

START_TEST(both_readers_agree)
{
    struct buffer text;
    size_t accepted = 0;
    state = UINT64_C(0x9E3779B97F4A7C15);
    buffer_init(&text);
    for (size_t round = 0; round < ROUNDS; round++) {
        buffer_clear(&text);
        buffer_append_text(&text, seeds[round % SEEDS]);
        for (size_t i = below(4); i > 0; i--)
            mutate(&text);
        struct str copy = exact_copy(buffer_str(&text));
        struct error error = {""};
        struct second_refusal refusal = {"", false};
        bool ours = json_check(copy, &error);
        struct second_value *theirs = second_read(copy, &refusal);
        if (ours != (theirs != NULL))
            expect_intended(copy, ours, &error, &refusal);
        if (ours && theirs) {
            accepted++;
            check_edits(copy, theirs);
        }
        second_free(theirs);
        free((char *)copy.bytes);
    }
    /* Neither all good nor all bad, or nothing was compared. */
    ck_assert_uint_gt(accepted, ROUNDS / 4);
    ck_assert_uint_lt(accepted, ROUNDS * 3 / 4);
    buffer_finish(&text);
}
END_TEST

/* The required meaning of the executed bytes: the message without its task, with another id. */
static void check_executable(const struct envelope *envelope, struct second_value *value)
{
    struct buffer out;
    struct envelope again;
    buffer_init(&out);
    envelope_write_executable(envelope, STR("tg:1"), false, &out);
    second_delete(second_member(value, "params"), "task");
    if (envelope->id.length)
        second_set(value, "id", STR("\"tg:1\""));
    expect_same_value(value, buffer_str(&out));
    ck_assert_int_eq(envelope_read(&again, buffer_str(&out), NULL), ENVELOPE_OK);
    envelope_finish(&again);
    buffer_finish(&out);
}

START_TEST(mutated_messages_are_executed_as_they_were_read)
{
    struct buffer text;
    size_t accepted = 0;
    state = UINT64_C(0xD1B54A32D192ED03);
    buffer_init(&text);
    for (size_t round = 0; round < ROUNDS; round++) {
        struct envelope envelope;
        buffer_clear(&text);
        buffer_append_text(&text, seeds[round % 3]);
        for (size_t i = below(4); i > 0; i--)
            mutate(&text);
        struct str copy = exact_copy(buffer_str(&text));
        enum envelope_status status = envelope_read(&envelope, copy, NULL);
        struct second_value *value = second_read(copy, NULL);
        if (status == ENVELOPE_OK && value) {
            accepted++;
            check_executable(&envelope, value);
        }
        if (status == ENVELOPE_PARSE_ERROR)
            ck_assert_ptr_null(value);
        second_free(value);
        envelope_finish(&envelope);
        free((char *)copy.bytes);
    }
    ck_assert_uint_gt(accepted, ROUNDS / 4);
    buffer_finish(&text);
}
END_TEST

Suite *differential_suite(void)
{
    Suite *suite = suite_create("differential");
    TCase *tests = tcase_create("differential");
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, both_readers_agree);
    tcase_add_test(tests, mutated_messages_are_executed_as_they_were_read);
    suite_add_tcase(suite, tests);
    return suite;
}
