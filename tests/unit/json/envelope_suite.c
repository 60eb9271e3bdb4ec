/* The output of envelope_read() for accepted messages: kinds, spans, decoded texts. */
#include <stdlib.h>
#include <string.h>

#include "json_test.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/envelope.h"

static void read_ok(struct envelope *envelope, struct str body)
{
    struct error error = {""};
    enum envelope_status status = envelope_read(envelope, body, &error);
    ck_assert_msg(status == ENVELOPE_OK, "%.*s: %s", STR_ARGS(body), error.message);
}

START_TEST(a_tool_call_is_read_as_spans_of_its_bytes)
{
    const char *body = " {\"jsonrpc\":\"2.0\", \"id\" : 17 ,\"method\":\"tools/call\",\n"
                       "\"params\":{\"name\":\"delete\",\"arguments\": {\"a\":[1, 2]} ,"
                       "\"_meta\":{\"progressToken\":\"t\",\"x\":1},"
                       "\"task\" : {\"ttl\": 60000 } }}\r\n";
    struct envelope envelope;
    read_ok(&envelope, str_from(body));
    ck_assert_int_eq(envelope.kind, ENVELOPE_REQUEST);
    expect_str(envelope.jsonrpc, "\"2.0\"");
    expect_str(envelope.id, "17");
    expect_str(envelope.method, "tools/call");
    expect_str(envelope.params,
               "{\"name\":\"delete\",\"arguments\": {\"a\":[1, 2]} ,"
               "\"_meta\":{\"progressToken\":\"t\",\"x\":1},\"task\" : {\"ttl\": 60000 } }");
    expect_str(envelope.name.raw, "\"delete\"");
    expect_str(envelope.name.text, "delete");
    expect_str(envelope.arguments.raw, "{\"a\":[1, 2]}");
    ck_assert_ptr_null(envelope.arguments.text.bytes);
    expect_str(envelope.meta.raw, "{\"progressToken\":\"t\",\"x\":1}");
    expect_str(envelope.progress_token, "\"t\"");
    expect_str(envelope.task.raw, "{\"ttl\": 60000 }");
    expect_str(envelope.task_ttl, "60000");
    expect_str(envelope.task_member, "\"task\" : {\"ttl\": 60000 }");
    ck_assert_uint_eq(envelope.uri.raw.length, 0);
    ck_assert_uint_eq(envelope.result.length, 0);
    /* Spans, not copies. */
    ck_assert_ptr_eq(envelope.arguments.raw.bytes, strstr(body, "{\"a\""));
    ck_assert_ptr_eq(envelope.method.bytes, strstr(body, "tools/call"));
    ck_assert_ptr_null(envelope.decoded.bytes);
    envelope_finish(&envelope);
}
END_TEST

START_TEST(every_text_member_of_params_is_decoded)
{
    struct envelope envelope;
    read_ok(
        &envelope,
        STR("{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"t\\u0061sks\\/get\",\"params\":"
            "{\"name\":\"\\ud83d\\ude00\\n\",\"uri\":\"file:\\/\\/x\",\"taskId\":\"tg_\\u00e9\","
            "\"cursor\":\"\"}}"));
    expect_str(envelope.id, "\"a\"");
    expect_str(envelope.method, "tasks/get");
    expect_str(envelope.name.raw, "\"\\ud83d\\ude00\\n\"");
    expect_str(envelope.name.text, "\xF0\x9F\x98\x80\n");
    expect_str(envelope.uri.text, "file://x");
    expect_str(envelope.task_id.text, "tg_\xC3\xA9");
    expect_str(envelope.cursor.text, "");
    ck_assert_ptr_nonnull(envelope.cursor.text.bytes);
    envelope_finish(&envelope);
}
END_TEST

START_TEST(long_decoded_texts_stay_where_they_are)
{
    struct buffer body;
    struct envelope envelope;
    buffer_init(&body);
    buffer_append_text(&body, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\\u006d\",\"params\":{");
    buffer_append_format(&body, "\"name\":\"\\n%0600d\",", 0);
    buffer_append_format(&body, "\"uri\":\"\\t%0600d\"}}", 1);
    read_ok(&envelope, buffer_str(&body));
    expect_str(envelope.method, "m");
    ck_assert_uint_eq(envelope.name.text.length, 601);
    ck_assert_int_eq(envelope.name.text.bytes[0], '\n');
    ck_assert_int_eq(envelope.name.text.bytes[600], '0');
    ck_assert_int_eq(envelope.uri.text.bytes[0], '\t');
    ck_assert_int_eq(envelope.uri.text.bytes[600], '1');
    envelope_finish(&envelope);
    buffer_finish(&body);
}
END_TEST

START_TEST(a_member_of_another_shape_has_no_text)
{
    struct envelope envelope;
    read_ok(&envelope, STR("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":"
                           "{\"name\":7,\"taskId\":null,\"task\":\"x\",\"_meta\":[{\"ttl\":1}]}}"));
    expect_str(envelope.name.raw, "7");
    ck_assert_ptr_null(envelope.name.text.bytes);
    expect_str(envelope.task_id.raw, "null");
    ck_assert_ptr_null(envelope.task_id.text.bytes);
    expect_str(envelope.task.raw, "\"x\"");
    expect_str(envelope.meta.raw, "[{\"ttl\":1}]");
    ck_assert_uint_eq(envelope.task_ttl.length, 0);
    envelope_finish(&envelope);
}
END_TEST

START_TEST(escaped_keys_are_the_keys_they_stand_for)
{
    struct envelope envelope;
    read_ok(&envelope,
            STR("{\"\\u006asonrpc\":\"2\\u002e0\",\"\\u0069d\":5,\"method\":\"m\","
                "\"p\\u0061rams\":{\"n\\u0061me\":\"x\",\"t\\u0061sk\":{\"\\u0074tl\":1}}}"));
    expect_str(envelope.id, "5");
    expect_str(envelope.name.text, "x");
    expect_str(envelope.task_ttl, "1");
    expect_str(envelope.task_member, "\"t\\u0061sk\":{\"\\u0074tl\":1}");
    envelope_finish(&envelope);
}
END_TEST

static const struct {
    const char *body;
    enum envelope_kind kind;
    const char *id, *method, *result, *error;
} kinds[] = {
    {"{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":0}", ENVELOPE_REQUEST, "0", "ping", "", ""},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"m\"}", ENVELOPE_NOTIFICATION, "", "m", "", ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":1}}", ENVELOPE_RESPONSE, "1", "", "{\"a\":1}",
     ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}", ENVELOPE_RESPONSE, "1", "", "null", ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1}}", ENVELOPE_RESPONSE, "1", "", "",
     "{\"code\":1}"},
    /* Integers of any size, and unknown members, come back unchanged. */
    {"{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":-123456789012345678901234567890,\"x\":{}}",
     ENVELOPE_REQUEST, "-123456789012345678901234567890", "m", "", ""},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"\",\"id\":\"\"}", ENVELOPE_REQUEST, "\"\"", "", "", ""},
};

START_TEST(the_first_unknown_member_of_the_envelope_is_told)
{
    static const struct {
        const char *body, *unknown;
    } cases[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":{\"x\":1}}", ""},
        {"{\"jsonrpc\":\"2.0\",\"x\" : {\"method\":[1]} ,\"id\":1,\"method\":\"a\",\"y\":2}",
         "\"x\" : {\"method\":[1]}"},
        {"{\"\\u0069d\":1,\"jsonrpc\":\"2.0\",\"method\":\"a\",\"\\u0079\":null}",
         "\"\\u0079\":null"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct envelope envelope;
        read_ok(&envelope, str_from(cases[i].body));
        expect_str(envelope.unknown_member, cases[i].unknown);
        envelope_finish(&envelope);
    }
}
END_TEST

START_TEST(kinds_are_told_by_their_members)
{
    struct envelope envelope;
    read_ok(&envelope, str_from(kinds[_i].body));
    ck_assert_int_eq(envelope.kind, kinds[_i].kind);
    expect_str(envelope.id, kinds[_i].id);
    expect_str(envelope.method, kinds[_i].method);
    expect_str(envelope.result, kinds[_i].result);
    expect_str(envelope.error, kinds[_i].error);
    envelope_finish(&envelope);
}
END_TEST

START_TEST(look_alikes_elsewhere_are_left_alone)
{
    struct envelope envelope;
    /* Tools may name their arguments as they like, and look-alikes need a known name. */
    read_ok(&envelope,
            STR("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"nam\":1,\"names\":1,"
                "\"arguments\":{\"Name\":1,\"NAME\":2,\"TaskId\":3,\"ID\":4},\"n\xC3\xA4me\":1,"
                "\"Namen\":1,\"\":1},\"identity\":1,\"i\":2,\"iD \":3}"));
    expect_str(envelope.arguments.raw, "{\"Name\":1,\"NAME\":2,\"TaskId\":3,\"ID\":4}");
    envelope_finish(&envelope);
}
END_TEST

#define CALL_WITH(meta)                                                                            \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"name\":\"n\",\"_meta\":" meta    \
    ",\"arguments\":{}}}"
#define META                                                                                       \
    "{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"progressToken\":7,"             \
    "\"io.modelcontextprotocol/clientCapabilities\":{\"roots\":{}},\"x\":[1,{\"y\":null}]}"

/* It is read by memory the second time, in other bytes at another place. */
START_TEST(a_meta_that_was_read_before_is_read_to_the_same_end)
{
    for (int i = 0; i < 3; i++) {
        struct envelope envelope;
        char *body = memory_copy_text(i == 1 ? " " CALL_WITH(META) : CALL_WITH(META));
        read_ok(&envelope, str_from(body));
        expect_str(envelope.meta.raw, META);
        expect_str(envelope.reserved.version, "\"2026-07-28\"");
        expect_str(envelope.reserved.client_capabilities, "{\"roots\":{}}");
        expect_str(envelope.progress_token, "7");
        ck_assert_uint_eq(envelope.reserved.client_info.length, 0);
        ck_assert_ptr_eq(envelope.reserved.version.bytes, strstr(body, "\"2026-07-28\""));
        envelope_finish(&envelope);
        free(body);
    }
}
END_TEST

START_TEST(memory_makes_nothing_good_that_is_not)
{
    static const char *const bad[] = {
        CALL_WITH("{\"a\":1,\"a\":2}"),
        CALL_WITH("{\"ProgressToken\":1}"),
        CALL_WITH("{\"a\":{\"b\":1,\"b\":1}}"),
        CALL_WITH("{\"IO.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}"),
        CALL_WITH(META ",\"_meta\":" META),
        CALL_WITH(META "}"),
        CALL_WITH("{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"progressToken\":7,"
                  "\"progressToken\":7}"),
        /* refused for another reason, and then the same `_meta` beside it */
        "{\"jsonrpc\":\"2.0\",\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"_"
        "meta\":" META "}}",
    };
    struct envelope envelope;
    read_ok(&envelope, STR(CALL_WITH(META)));
    envelope_finish(&envelope);
    for (size_t i = 0; i < 3 * sizeof bad / sizeof *bad; i++) {
        struct error error;
        const char *body = bad[i / 3];
        ck_assert_msg(envelope_read(&envelope, str_from(body), &error) != ENVELOPE_OK, "%s", body);
        envelope_finish(&envelope);
    }
}
END_TEST

START_TEST(a_long_meta_and_many_metas_are_read_anew)
{
    for (int i = 0; i < 200; i++) {
        struct envelope envelope;
        struct buffer body;
        buffer_init(&body);
        buffer_append_format(
            &body,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"_meta\":{"
            "\"progressToken\":%d,\"pad\":\"%*d\"}}}",
            i % 7, i * 5, i % 7);
        read_ok(&envelope, buffer_str(&body));
        ck_assert_uint_eq(envelope.progress_token.length, 1);
        ck_assert_int_eq(envelope.progress_token.bytes[0], '0' + i % 7);
        envelope_finish(&envelope);
        buffer_finish(&body);
    }
}
END_TEST

#define CHANGING_META(token, trace, tail)                                                          \
    "{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"progressToken\":" token         \
    ",\"io.modelcontextprotocol/clientCapabilities\":{\"roots\":{}},\"traceparent\":" trace tail

/* A token and a trace that differ each time are read, and all else is read by memory. */
START_TEST(values_that_change_are_read_within_a_known_meta)
{
    static const char *const tokens[] = {"7", "\"token-1\"", "-12.5e3", "\"\\u0041\\n\"", "\"\""};
    static const char *const traces[] = {"\"00-1\"", "3", "\"\xC3\xA4\"", "\"00-22-333\"", "0"};
    for (int i = 0; i < 15; i++) {
        struct envelope envelope;
        struct buffer body;
        buffer_init(&body);
        buffer_append_format(&body, CALL_WITH(CHANGING_META("%s", "%s", "}")), tokens[i % 5],
                             traces[(i + i / 5) % 5]);
        read_ok(&envelope, buffer_str(&body));
        expect_str(envelope.reserved.version, "\"2026-07-28\"");
        expect_str(envelope.progress_token, tokens[i % 5]);
        expect_str(envelope.reserved.client_capabilities, "{\"roots\":{}}");
        expect_str(envelope.name.text, "n");
        ck_assert(envelope.meta.raw.bytes[envelope.meta.raw.length - 1] == '}');
        ck_assert(envelope.reserved.client_capabilities.bytes > envelope.progress_token.bytes);
        envelope_finish(&envelope);
        buffer_finish(&body);
    }
}
END_TEST

START_TEST(a_known_meta_passes_no_bad_value)
{
    static const char *const bad[] = {
        CALL_WITH(CHANGING_META("07", "1", "}")),
        CALL_WITH(CHANGING_META("1.", "1", "}")),
        CALL_WITH(CHANGING_META("\"\\x\"", "1", "}")),
        CALL_WITH(CHANGING_META("\"\xC3\"", "1", "}")),
        CALL_WITH(CHANGING_META("\"\x01\"", "1", "}")),
        CALL_WITH(CHANGING_META("{\"a\":1,\"a\":1}", "1", "}")),
        CALL_WITH(CHANGING_META("1", "\"", "}")),
        CALL_WITH(CHANGING_META("1", "1", ",\"traceparent\":2}")),
        CALL_WITH(CHANGING_META("1,\"ProgressToken\":2", "1", "}")),
        CALL_WITH(CHANGING_META("\"\xEF\xBC\xA1\",\"progressToken\":2", "1", "}")),
    };
    for (size_t i = 0; i < 2 * sizeof bad / sizeof *bad; i++) {
        struct envelope envelope;
        struct error error;
        const char *body = bad[i / 2];
        read_ok(&envelope, STR(CALL_WITH(CHANGING_META("1", "1", "}"))));
        envelope_finish(&envelope);
        ck_assert_msg(envelope_read(&envelope, str_from(body), &error) != ENVELOPE_OK, "%s", body);
        envelope_finish(&envelope);
    }
}
END_TEST

Suite *envelope_suite(void)
{
    Suite *suite = suite_create("envelope");
    TCase *tests = tcase_create("accepted");
    tcase_add_test(tests, a_tool_call_is_read_as_spans_of_its_bytes);
    tcase_add_test(tests, every_text_member_of_params_is_decoded);
    tcase_add_test(tests, long_decoded_texts_stay_where_they_are);
    tcase_add_test(tests, a_member_of_another_shape_has_no_text);
    tcase_add_test(tests, escaped_keys_are_the_keys_they_stand_for);
    tcase_add_test(tests, the_first_unknown_member_of_the_envelope_is_told);
    tcase_add_loop_test(tests, kinds_are_told_by_their_members, 0, sizeof kinds / sizeof kinds[0]);
    tcase_add_test(tests, look_alikes_elsewhere_are_left_alone);
    tcase_add_test(tests, a_meta_that_was_read_before_is_read_to_the_same_end);
    tcase_add_test(tests, memory_makes_nothing_good_that_is_not);
    tcase_add_test(tests, a_long_meta_and_many_metas_are_read_anew);
    tcase_add_test(tests, values_that_change_are_read_within_a_known_meta);
    tcase_add_test(tests, a_known_meta_passes_no_bad_value);
    suite_add_tcase(suite, tests);
    return suite;
}
