/* Every refusal of envelope_read(): its status, its place in the body, and its id. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_test.h"
#include "taskgate/core/buffer.h"
#include "taskgate/json/envelope.h"
#include "taskgate/json/text.h"

/* A whole message around the params or behind the envelope's usual members. */
#define PARAMS(text) "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"m\",\"params\":" text "}"
#define ENVELOPE(text) "{\"jsonrpc\":\"2.0\",\"id\":9," text "}"
#define ROW(text, status, message)                                                                 \
    {                                                                                              \
        {text, sizeof(text) - 1}, status, message                                                  \
    }
#define PARSE ENVELOPE_PARSE_ERROR
#define REQUEST ENVELOPE_INVALID_REQUEST

static const struct {
    struct str body;
    enum envelope_status status;
    const char *message;
} refusals[] = {
    /* No message at all. */
    ROW("", PARSE, "unexpected end at byte 0"),
    ROW(" \n\t\r", PARSE, "unexpected end at byte 4"),
    ROW("\xEF\xBB\xBF{}", PARSE, "expected a value at byte 0"),
    ROW("\f{}", PARSE, "expected a value at byte 0"),
    ROW(PARAMS("{}") "x", PARSE, "text behind the value at byte 49"),
    ROW(PARAMS("{}") PARAMS("{}"), PARSE, "text behind the value at byte 49"),
    ROW(PARAMS("{}") "\0", PARSE, "text behind the value at byte 49"),
    ROW("[]", REQUEST, "a batch at byte 0"),
    ROW(" [" PARAMS("{}") "]", REQUEST, "a batch at byte 1"),
    ROW("[1,", PARSE, "unexpected end at byte 3"),
    ROW("\"text\"", REQUEST, "not an object at byte 0"),
    ROW("12", REQUEST, "not an object at byte 0"),
    ROW("null", REQUEST, "not an object at byte 0"),
    /* Grammar. */
    ROW("{", PARSE, "unexpected end at byte 1"),
    ROW("{\"a\"", PARSE, "unexpected end at byte 4"),
    ROW("{\"a\"}", PARSE, "expected ':' at byte 4"),
    ROW("{\"a\":}", PARSE, "expected a value at byte 5"),
    ROW("{\"a\":1", PARSE, "unexpected end at byte 6"),
    ROW("{\"a\":1,}", PARSE, "expected a key at byte 7"),
    ROW("{,\"a\":1}", PARSE, "expected a key at byte 1"),
    ROW("{\"a\":1 \"b\":2}", PARSE, "expected ',' or '}' at byte 7"),
    ROW("{a:1}", PARSE, "expected a key at byte 1"),
    ROW("{'a':1}", PARSE, "expected a key at byte 1"),
    ROW("{\"a\":1]", PARSE, "expected ',' or '}' at byte 6"),
    ROW("{\"a\":[1}", PARSE, "expected ',' or ']' at byte 7"),
    ROW("{\"a\":[,]}", PARSE, "expected a value at byte 6"),
    ROW("{\"a\":[1,]}", PARSE, "expected a value at byte 8"),
    ROW("{\"a\":[1 2]}", PARSE, "expected ',' or ']' at byte 8"),
    ROW("{\"a\":/**/1}", PARSE, "expected a value at byte 5"),
    ROW("{\"a\":tru}", PARSE, "unknown word at byte 5"),
    ROW("{\"a\":truex}", PARSE, "expected ',' or '}' at byte 9"),
    ROW("{\"a\":NaN}", PARSE, "expected a value at byte 5"),
    ROW("{\"a\":nul", PARSE, "unknown word at byte 5"),
    ROW("{\"a\":01}", PARSE, "expected ',' or '}' at byte 6"),
    ROW("{\"a\":-}", PARSE, "expected a digit at byte 6"),
    ROW("{\"a\":+1}", PARSE, "expected a value at byte 5"),
    ROW("{\"a\":.5}", PARSE, "expected a value at byte 5"),
    ROW("{\"a\":1.}", PARSE, "expected a digit at byte 7"),
    ROW("{\"a\":1e}", PARSE, "expected a digit at byte 7"),
    ROW("{\"a\":1e+}", PARSE, "expected a digit at byte 8"),
    ROW("{\"a\":-", PARSE, "unexpected end at byte 6"),
    /* Strings. */
    ROW("{\"a\":\"b", PARSE, "unexpected end at byte 7"),
    ROW("{\"a\":\"b\\", PARSE, "unknown escape at byte 7"),
    ROW("{\"a\":\"\\x41\"}", PARSE, "unknown escape at byte 6"),
    ROW("{\"a\":\"\\u12g4\"}", PARSE, "\\u without four hex digits at byte 6"),
    ROW("{\"a\":\"\\u12", PARSE, "\\u without four hex digits at byte 6"),
    ROW("{\"a\":\"tab\there\"}", PARSE, "control character in a string at byte 9"),
    ROW("{\"a\":\"new\nline\"}", PARSE, "control character in a string at byte 9"),
    ROW("{\"a\":\"nul\0\"}", PARSE, "control character in a string at byte 9"),
    ROW("{\"a\":\"\\ud800\"}", PARSE, "lone surrogate at byte 6"),
    ROW("{\"a\":\"\\udc00\"}", PARSE, "lone surrogate at byte 6"),
    ROW("{\"a\":\"\\ud800\\u0041\"}", PARSE, "lone surrogate at byte 6"),
    ROW("{\"a\":\"\\ud800\\ud800\"}", PARSE, "lone surrogate at byte 6"),
    ROW("{\"a\":\"\\udc00\\udc00\"}", PARSE, "lone surrogate at byte 6"),
    ROW("{\"a\":\"\\ud800\\ue000\"}", PARSE, "lone surrogate at byte 6"),
    ROW("{\"a\":\"x\\udc00\\ud800\"}", PARSE, "lone surrogate at byte 7"),
    ROW("{\"a\\ud800\":1}", PARSE, "lone surrogate at byte 3"),
    /* UTF-8, in values and keys, at the sequence itself. */
    ROW("{\"a\":\"\xFF\"}", PARSE, "invalid UTF-8 at byte 6"),
    ROW("{\"a\":\"\xC3\xA9\xC3\"}", PARSE, "invalid UTF-8 at byte 8"),
    ROW("{\"a\":\"\xE2\x82\xAC\xC0\xAF\"}", PARSE, "invalid UTF-8 at byte 9"),
    ROW("{\"a\":\"\xED\xA0\x80\"}", PARSE, "invalid UTF-8 at byte 6"),
    ROW("{\"a\":\"\xF4\x90\x80\x80\"}", PARSE, "invalid UTF-8 at byte 6"),
    ROW("{\"a\":\"\xF0\x9F\x98\x80\x80\"}", PARSE, "invalid UTF-8 at byte 10"),
    ROW("{\"\xC3\":1}", PARSE, "invalid UTF-8 at byte 2"),
    ROW("{\"a\":\"\xC3\xA9", PARSE, "unexpected end at byte 8"),
    /* Duplicates, at any depth and however they are spelled. */
    ROW(ENVELOPE("\"id\":9,\"method\":\"m\""), REQUEST, "duplicate key at byte 24"),
    ROW(PARAMS("{\"a\":1,\"\\u0061\":2}"), REQUEST, "duplicate key at byte 53"),
    ROW(PARAMS("{\"x\":[[{\"\":1,\"\":2}]]}"), REQUEST, "duplicate key at byte 59"),
    ROW(PARAMS("{\"arguments\":{\"longer key 1\":1,\"longer key 2\":1,\"longer key 1\":1}}"),
        REQUEST, "duplicate key at byte 94"),
    ROW(PARAMS("{\"name\":\"a\",\"n\\u0061me\":\"b\"}"), REQUEST, "duplicate key at byte 58"),
    ROW(PARAMS("{\"\\u00e9\":1,\"\xC3\xA9\":2}"), REQUEST, "duplicate key at byte 58"),
    ROW(PARAMS("{\"\\ud83d\\ude00\":1,\"\xF0\x9F\x98\x80\":2}"), REQUEST,
        "duplicate key at byte 64"),
    ROW(PARAMS("{\"a\\/b\":1,\"a/b\":2}"), REQUEST, "duplicate key at byte 56"),
    /* A key that ends at a NUL would be another key, and perhaps equal to one beside it. */
    ROW(ENVELOPE("\"method\\u0000\":\"n\",\"method\":\"m\""), REQUEST, "a NUL in a key at byte 24"),
    ROW(PARAMS("{\"name\\u0000x\":1,\"name\":\"a\"}"), REQUEST, "a NUL in a key at byte 47"),
    ROW(PARAMS("{\"task\":{\"\\u0000\":1}}"), REQUEST, "a NUL in a key at byte 55"),
    ROW(PARAMS("{\"arguments\":{\"x\":[{\"a\":1,\"a\\u0000\":2}]}}"), REQUEST,
        "a NUL in a key at byte 72"),
    /* Unreadable text is reported as such, after any other mistake. */
    ROW("{\"a\":{\"b\":1,\"b\":1},", PARSE, "unexpected end at byte 19"),
    ROW("{\"ID\":1,", PARSE, "unexpected end at byte 8"),
    /* Of several mistakes, the first is reported. */
    ROW(ENVELOPE("\"Method\":1,\"a\":{\"b\":1,\"b\":1}"), REQUEST,
        "look-alike of a protocol key at byte 24"),
    /* Look-alikes of protocol keys. */
    ROW(PARAMS("{\"ref\":{\"name\":\"a\",\"Name\":\"b\"}}"), REQUEST,
        "look-alike of a protocol key in ref at byte 65"),
    ROW(PARAMS("{\"\uFF52ef\":{}}"), REQUEST, "look-alike of a protocol key in params at byte 47"),
    ROW(ENVELOPE("\"method\":\"m\",\"Params\":{}"), REQUEST,
        "look-alike of a protocol key at byte 37"),
    ROW(ENVELOPE("\"method\":\"m\",\"METHOD\":\"n\""), REQUEST,
        "look-alike of a protocol key at byte 37"),
    ROW(ENVELOPE("\"method\":\"m\",\"Id\":1"), REQUEST, "look-alike of a protocol key at byte 37"),
    ROW(ENVELOPE("\"method\":\"m\",\"JsonRpc\":1"), REQUEST,
        "look-alike of a protocol key at byte 37"),
    ROW(ENVELOPE("\"Result\":{}"), REQUEST, "look-alike of a protocol key at byte 24"),
    ROW(ENVELOPE("\"eRRor\":{}"), REQUEST, "look-alike of a protocol key at byte 24"),
    ROW(ENVELOPE("\"method\":\"m\",\"re\xC5\xBFult\":1"), REQUEST,
        "look-alike of a protocol key at byte 37"),
    ROW(ENVELOPE("\"method\":\"m\",\"\xC4\xB1\x64\":1"), REQUEST,
        "look-alike of a protocol key at byte 37"),
    ROW(ENVELOPE("\"method\":\"m\",\"\xC4\xB0\x44\":1"), REQUEST,
        "look-alike of a protocol key at byte 37"),
    ROW(PARAMS("{\"Name\":1}"), REQUEST, "look-alike of a protocol key in params at byte 47"),
    ROW(PARAMS("{\"\\u004eame\":1}"), REQUEST, "look-alike of a protocol key in params at byte 47"),
    ROW(PARAMS("{\"taskid\":1}"), REQUEST, "look-alike of a protocol key in params at byte 47"),
    ROW(PARAMS("{\"URI\":1}"), REQUEST, "look-alike of a protocol key in params at byte 47"),
    ROW(PARAMS("{\"Cursor\":1}"), REQUEST, "look-alike of a protocol key in params at byte 47"),
    ROW(PARAMS("{\"Arguments\":1}"), REQUEST, "look-alike of a protocol key in params at byte 47"),
    ROW(PARAMS("{\"_Meta\":1}"), REQUEST, "look-alike of a protocol key in params at byte 47"),
    ROW(PARAMS("{\"protocolversion\":1}"), REQUEST,
        "look-alike of a protocol key in params at byte 47"),
    ROW(PARAMS("{\"tas\xE2\x84\xAA\":1}"), REQUEST,
        "look-alike of a protocol key in params at byte 47"),
    ROW(PARAMS("{\"ta\\u017fk\":1}"), REQUEST, "look-alike of a protocol key in params at byte 47"),
    ROW(PARAMS("{\"argument\xC5\xBF\":1}"), REQUEST,
        "look-alike of a protocol key in params at byte 47"),
    ROW(PARAMS("{\"task\":{\"TTL\":1}}"), REQUEST,
        "look-alike of a protocol key in task at byte 55"),
    ROW(PARAMS("{\"_meta\":{\"ProgressToken\":1}}"), REQUEST,
        "look-alike of a protocol key in _meta at byte 56"),
    ROW(PARAMS("{\"_meta\":{\"progre\xC3\x9FToken\":1}}"), REQUEST,
        "look-alike of a protocol key in _meta at byte 56"),
    ROW(PARAMS("{\"_meta\":{\"io.ModelContextProtocol/related-task\":1}}"), REQUEST,
        "look-alike of a protocol key in _meta at byte 56"),
    /* Ids that are none. */
    ROW("{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":null}", REQUEST,
        "id is neither a string nor an integer at byte 35"),
    ROW("{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":1.0}", REQUEST,
        "id is neither a string nor an integer at byte 35"),
    ROW("{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":1e3}", REQUEST,
        "id is neither a string nor an integer at byte 35"),
    ROW("{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":1E3}", REQUEST,
        "id is neither a string nor an integer at byte 35"),
    ROW("{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":true}", REQUEST,
        "id is neither a string nor an integer at byte 35"),
    ROW("{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":{}}", REQUEST,
        "id is neither a string nor an integer at byte 35"),
    ROW("{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":[1]}", REQUEST,
        "id is neither a string nor an integer at byte 35"),
    ROW("{\"jsonrpc\":\"1.0\",\"method\":\"m\",\"id\":null}", REQUEST,
        "id is neither a string nor an integer at byte 35"),
    /* Neither call nor response. */
    ROW("{\"jsonrpc\":\"2.0\",\"result\":1}", REQUEST, "neither a method nor an id at byte 0"),
    ROW("{\"jsonrpc\":\"2.0\"}", REQUEST, "neither a method nor an id at byte 0"),
};

/* Reads from memory without a byte to spare. */
static void expect_refusal(struct str text, enum envelope_status status, const char *message,
                           const char *id)
{
    struct str body = exact_copy(text);
    struct envelope envelope;
    struct error error = {""};
    ck_assert_int_eq(envelope_read(&envelope, body, &error), status);
    ck_assert_msg(str_ends_with(str_from(error.message), str_from(message)),
                  "%.*s: got <%s>, want <%s>", STR_ARGS(text), error.message, message);
    expect_str(envelope.id, id);
    envelope_finish(&envelope);
    free((char *)body.bytes);
}

START_TEST(refusals_tell_where_and_no_id)
{
    expect_refusal(refusals[_i].body, refusals[_i].status, refusals[_i].message, "");
}
END_TEST

static const struct {
    struct str body;
    enum envelope_status status;
    const char *message, *id;
} answerable[] = {
    {STR(ENVELOPE("\"method\":7")), REQUEST, "method is not a string at byte 33", "9"},
    {STR(ENVELOPE("\"method\":null")), REQUEST, "method is not a string at byte 33", "9"},
    {STR(ENVELOPE("\"method\":\"a\\u0000b\"")), REQUEST, "a NUL in method at byte 33", "9"},
    {STR(ENVELOPE("\"method\":\"m\",\"result\":1")), REQUEST,
     "a method beside a result or an error at byte 0", "9"},
    {STR(ENVELOPE("\"method\":\"m\",\"error\":1")), REQUEST,
     "a method beside a result or an error at byte 0", "9"},
    {STR(ENVELOPE("\"result\":1,\"error\":1")), REQUEST,
     "neither a method nor exactly one of result and error at byte 0", "9"},
    {STR(ENVELOPE("\"x\":1")), REQUEST,
     "neither a method nor exactly one of result and error at byte 0", "9"},
    {STR("{\"jsonrpc\":\"1.0\",\"id\":9,\"method\":\"m\"}"), REQUEST,
     "jsonrpc is not \"2.0\" at byte 11", "9"},
    {STR("{\"jsonrpc\":2.0,\"method\":\"m\",\"id\":\"late\"}"), REQUEST,
     "jsonrpc is not \"2.0\" at byte 11", "\"late\""},
    {STR("{\"jsonrpc\":\"2.00\",\"method\":\"m\",\"id\":1}"), REQUEST,
     "jsonrpc is not \"2.0\" at byte 11", "1"},
    {STR("{\"method\":\"m\",\"params\":{},\"id\":9}"), REQUEST, "jsonrpc is not \"2.0\" at byte 0",
     "9"},
    {STR("{\"method\":\"m\"}"), REQUEST, "jsonrpc is not \"2.0\" at byte 0", ""},
    {STR(PARAMS("[]")), ENVELOPE_INVALID_PARAMS, "params is not an object at byte 46", "9"},
    {STR(PARAMS("null")), ENVELOPE_INVALID_PARAMS, "params is not an object at byte 46", "9"},
    {STR(PARAMS("\"x\"")), ENVELOPE_INVALID_PARAMS, "params is not an object at byte 46", "9"},
    {STR("{\"jsonrpc\":\"2.0\",\"params\":1,\"method\":\"m\",\"id\":\"z\"}"),
     ENVELOPE_INVALID_PARAMS, "params is not an object at byte 26", "\"z\""},
    {STR("{\"jsonrpc\":\"2.0\",\"params\":1,\"method\":\"m\"}"), ENVELOPE_INVALID_PARAMS,
     "params is not an object at byte 26", ""},
    {STR(PARAMS("{\"name\":\"delete\\u0000x\"}")), ENVELOPE_INVALID_PARAMS,
     "a NUL in params.name at byte 54", "9"},
    {STR(PARAMS("{\"uri\":\"file:///a\\u0000b\"}")), ENVELOPE_INVALID_PARAMS,
     "a NUL in params.uri at byte 53", "9"},
};

START_TEST(refusals_of_readable_requests_keep_the_id)
{
    expect_refusal(answerable[_i].body, answerable[_i].status, answerable[_i].message,
                   answerable[_i].id);
}
END_TEST

START_TEST(nothing_but_the_id_is_left_of_a_refused_message)
{
    struct envelope envelope;
    struct str body =
        STR("{\"jsonrpc\":\"1.0\",\"id\":9,\"method\":\"m\",\"params\":{\"name\":\"x\"}}");
    ck_assert_int_eq(envelope_read(&envelope, body, NULL), ENVELOPE_INVALID_REQUEST);
    ck_assert_uint_eq(envelope.method.length, 0);
    ck_assert_uint_eq(envelope.params.length, 0);
    ck_assert_uint_eq(envelope.name.raw.length, 0);
    envelope_finish(&envelope);
}
END_TEST

/* A message of `depth` levels: two of its own, the rest arrays or objects. */
static void write_nested(struct buffer *body, int depth, const char *open, const char *close)
{
    buffer_append_text(body, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"a\":");
    for (int i = 2; i < depth; i++)
        buffer_append_text(body, open);
    buffer_append_text(body, "1");
    for (int i = 2; i < depth; i++)
        buffer_append_text(body, close);
    buffer_append_text(body, "}}");
}

START_TEST(depth_ends_exactly_at_its_limit)
{
    static const char *const brackets[][2] = {{"[", "]"}, {"{\"a\":", "}"}};
    for (int kind = 0; kind < 2; kind++) {
        struct buffer body;
        struct envelope envelope;
        struct error error;
        buffer_init(&body);
        write_nested(&body, ENVELOPE_MAX_DEPTH, brackets[kind][0], brackets[kind][1]);
        ck_assert_int_eq(envelope_read(&envelope, buffer_str(&body), &error), ENVELOPE_OK);
        envelope_finish(&envelope);
        buffer_clear(&body);
        write_nested(&body, ENVELOPE_MAX_DEPTH + 1, brackets[kind][0], brackets[kind][1]);
        ck_assert_int_eq(envelope_read(&envelope, buffer_str(&body), &error), ENVELOPE_PARSE_ERROR);
        ck_assert_ptr_nonnull(strstr(error.message, "nested too deep at byte "));
        envelope_finish(&envelope);
        buffer_finish(&body);
    }
}
END_TEST

START_TEST(a_body_of_brackets_only_costs_no_stack)
{
    size_t length = 1 << 20;
    struct buffer body;
    struct envelope envelope;
    buffer_init(&body);
    buffer_reserve(&body, length);
    memset(body.bytes, '[', length);
    body.length = length;
    ck_assert_int_eq(envelope_read(&envelope, buffer_str(&body), NULL), ENVELOPE_PARSE_ERROR);
    envelope_finish(&envelope);
    buffer_finish(&body);
}
END_TEST

/* `count` keys with a common start, one of them twice when `twice` is not negative. */
static void write_keys(struct buffer *body, int count, int twice, const char *prefix)
{
    buffer_clear(body);
    for (int i = 0; i < count; i++)
        buffer_append_format(body, "%c\"%s%d\":%d", i == 0 ? '{' : ',', prefix, i, i);
    if (twice >= 0)
        buffer_append_format(body, ",\"%s%d\":0", prefix, twice);
    buffer_append_char(body, '}');
}

START_TEST(a_duplicate_is_found_among_any_number_of_keys)
{
    static const int counts[] = {1, 2, 15, 16, 17, 18, 47, 48, 49, 100, 1000, 5000};
    static const char *const prefixes[] = {"", "k", "long common start ", "\\u0061",
                                           "k\\n0123456789"};
    struct buffer body;
    struct error error;
    buffer_init(&body);
    for (size_t p = 0; p < sizeof prefixes / sizeof prefixes[0]; p++) {
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            write_keys(&body, counts[i], -1, prefixes[p]);
            ck_assert(json_check(buffer_str(&body), &error));
            for (int twice = 0; twice < counts[i]; twice += 1 + counts[i] / 10) {
                write_keys(&body, counts[i], twice, prefixes[p]);
                ck_assert_msg(!json_check(buffer_str(&body), &error), "%d of %d keys \"%s…\"",
                              twice, counts[i], prefixes[p]);
                ck_assert_ptr_nonnull(strstr(error.message, "duplicate key at byte "));
            }
        }
    }
    buffer_finish(&body);
}
END_TEST

START_TEST(a_hundred_thousand_keys_are_told_apart)
{
    struct buffer body;
    buffer_init(&body);
    write_keys(&body, 100000, -1, "k");
    ck_assert(json_check(buffer_str(&body), NULL));
    write_keys(&body, 100000, 77777, "k");
    ck_assert(!json_check(buffer_str(&body), NULL));
    buffer_finish(&body);
}
END_TEST

START_TEST(keys_of_inner_objects_are_their_own)
{
    struct buffer text;
    buffer_init(&text);
    /* Large objects inside a large object, each with the same keys, and one twice outside. */
    buffer_append_char(&text, '{');
    for (int i = 0; i < 40; i++) {
        buffer_append_format(&text, "\"k%d\":{", i);
        for (int j = 0; j < 40; j++)
            buffer_append_format(&text, "\"k%d\":[{\"k1\":1}],", j);
        buffer_append_text(&text, "\"k\":0},");
    }
    size_t length = text.length;
    buffer_append_text(&text, "\"last\":1}");
    ck_assert(json_check(buffer_str(&text), NULL));
    text.length = length;
    buffer_append_text(&text, "\"k0\":1}");
    ck_assert(!json_check(buffer_str(&text), NULL));
    buffer_finish(&text);
}
END_TEST

START_TEST(a_message_cut_anywhere_is_unreadable)
{
    struct str whole = STR(PARAMS("{\"name\":\"\xC3\xA9\\ud83d\\ude00\",\"a\":[1.5e3,true,null]}"));
    for (size_t length = 0; length < whole.length; length++) {
        struct str body = exact_copy(str_slice(whole.bytes, length));
        struct envelope envelope;
        ck_assert_int_eq(envelope_read(&envelope, body, NULL), ENVELOPE_PARSE_ERROR);
        envelope_finish(&envelope);
        free((char *)body.bytes);
    }
}
END_TEST

START_TEST(a_bad_byte_is_found_wherever_it_stands_in_a_string)
{
    static const char bad[] = {'\0', '\n', '\x1F', '\x80', '\xFF'};
    for (size_t length = 1; length < 150; length++) {
        for (size_t i = 0; i < length * sizeof bad; i++) {
            char text[160];
            memset(text, 'x', sizeof text);
            text[0] = text[length + 1] = '"';
            ck_assert(json_check(str_slice(text, length + 2), NULL));
            text[1 + i / sizeof bad] = bad[i % sizeof bad];
            ck_assert(!json_check(str_slice(text, length + 2), NULL));
        }
    }
}
END_TEST

Suite *refusal_suite(void)
{
    Suite *suite = suite_create("refusals");
    TCase *tests = tcase_create("refused");
    tcase_add_loop_test(tests, refusals_tell_where_and_no_id, 0,
                        sizeof refusals / sizeof refusals[0]);
    tcase_add_loop_test(tests, refusals_of_readable_requests_keep_the_id, 0,
                        sizeof answerable / sizeof answerable[0]);
    tcase_add_test(tests, nothing_but_the_id_is_left_of_a_refused_message);
    tcase_add_test(tests, depth_ends_exactly_at_its_limit);
    tcase_add_test(tests, a_body_of_brackets_only_costs_no_stack);
    tcase_add_test(tests, a_duplicate_is_found_among_any_number_of_keys);
    tcase_add_test(tests, a_hundred_thousand_keys_are_told_apart);
    tcase_add_test(tests, keys_of_inner_objects_are_their_own);
    tcase_add_test(tests, a_message_cut_anywhere_is_unreadable);
    tcase_add_test(tests, a_bad_byte_is_found_wherever_it_stands_in_a_string);
    suite_add_tcase(suite, tests);
    return suite;
}
