/* Whether a reply is another request's, however its bytes are cut. */
#include "mcp_test.h"

#include <string.h>

#include "taskgate/mcp/reply_check.h"

static const struct {
    const char *id, *text;
    enum reply_verdict verdict; /* at the end */
} messages[] = {
    {"1", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", REPLY_PASSES},
    {"1", "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}", REPLY_FOREIGN},
    {"1", "{\"jsonrpc\":\"2.0\",\"id\":12,\"result\":{}}", REPLY_FOREIGN},
    {"1", "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"result\":{}}", REPLY_FOREIGN},
    {"1", "{\"jsonrpc\":\"2.0\",\"id\":1}", REPLY_PASSES},
    {"12", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", REPLY_FOREIGN},
    {"\"a\"", "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{}}", REPLY_PASSES},
    {"\"a\"", "{\"jsonrpc\":\"2.0\",\"id\":\"ab\",\"result\":{}}", REPLY_FOREIGN},
    {"1", " { \"result\" : {\"id\":1} , \"jsonrpc\":\"2.0\", \"id\" : 2 }", REPLY_FOREIGN},
    {"1", "{\"result\":{\"id\":2},\"jsonrpc\":\"2.0\",\"id\":1}", REPLY_PASSES},
    {"1", "{\"result\":[{\"a\":\"}]\\\"\\\\\"},[]],\"id\":12}", REPLY_FOREIGN},
    {"1", "{\"result\":{\"text\":\"\\\",\\\"id\\\":1\"},\"id\":2,\"_meta\":{}}", REPLY_FOREIGN},
    {"1", "{\"_meta\":{},\"id\":2,\"result\":{}}", REPLY_FOREIGN},
    {"1", "{\"result\":\"text \\\\\",\"id\":11}", REPLY_FOREIGN},
    {"1", "{\"result\":true,\"id\":\"2\"}", REPLY_FOREIGN},
    {"1", "{\"id\":2,\"error\":{}}", REPLY_FOREIGN},
    {"1", "{\"error\":{\"code\":1},\"id\":2}", REPLY_FOREIGN},
    {"1", "{\"id\":null,\"error\":{}}", REPLY_PASSES},
    {"1", "{\"error\":{},\"id\":null}", REPLY_PASSES},
    {"1", "{\"error\":{}}", REPLY_PASSES},
    {"1", "{\"id\":2,\"method\":\"ping\"}", REPLY_PASSES},
    {"1", "{\"method\":\"x\",\"params\":{\"id\":2},\"id\":2}", REPLY_PASSES},
    {"1", "{\"id\":2}", REPLY_PASSES},
    {"1", "{\"resultX\":1,\"id\":2}", REPLY_PASSES},
    {"1", "{\"identity\":2,\"result\":1,\"id\":1}", REPLY_PASSES},
    {"1", "[{\"id\":2,\"result\":{}}]", REPLY_PASSES},
    {"1", "not JSON", REPLY_PASSES},
    {"1", "{not JSON", REPLY_PASSES},
    {"1", "", REPLY_UNKNOWN},
    {"1", "{\"result\":{", REPLY_UNKNOWN},
    {"1", "{\"id\":\"1\",\"result\":{}}", REPLY_PASSES},
    {"1", "{\"id\":1.0,\"result\":{}}", REPLY_PASSES},
    {"\"a/b\"", "{\"id\":\"a\\/\\u0062\",\"result\":{}}", REPLY_PASSES},
    {"\"a\"", "{\"id\":\"b\",\"result\":{}}", REPLY_FOREIGN},
    {"\"a\"", "{\"id\":\"a\\\"\",\"result\":{}}", REPLY_FOREIGN},
    {"\"a\"", "{\"id\":0,\"result\":{}}", REPLY_FOREIGN},
    {"9007199254740993", "{\"id\":9007199254740992,\"result\":{}}", REPLY_PASSES},
    {"1",
     "{\"id\":"
     "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
     REPLY_UNKNOWN},
};

START_TEST(a_reply_with_another_id_is_told_however_it_is_cut)
{
    struct str text = str_from(messages[_i].text);
    for (size_t piece = 1; piece <= text.length + 1; piece++) {
        struct reply_check check;
        enum reply_verdict verdict = REPLY_UNKNOWN;
        reply_check_init(&check, str_from(messages[_i].id));
        for (size_t at = 0; at < text.length; at += piece) {
            size_t count = text.length - at < piece ? text.length - at : piece;
            verdict = reply_check_feed(&check, str_slice(text.bytes + at, count));
        }
        ck_assert_msg(verdict == messages[_i].verdict, "%s in pieces of %zu: %d", messages[_i].text,
                      piece, (int)verdict);
        reply_check_finish(&check);
    }
}
END_TEST

#define OURS "data: {\"result\":{},\"jsonrpc\":\"2.0\",\"id\":1}"
#define PROGRESS "event: message\nid: 2\ndata: {\"method\":\"notifications/progress\"}\n\n"
#define ASKING "data: {\"method\":\"ping\",\"jsonrpc\":\"2.0\",\"id\":7}\r\n\r\n"

static const struct {
    const char *before, *foreign, *after;
} streams[] = {
    {"", "data: {\"result\":{},\"id\":2}\n\n", ""},
    {PROGRESS ASKING, "event: message\ndata: {\"result\":{},\"id\":2}\n\n", PROGRESS},
    {OURS "\n\n", "data:{\"id\":2,\"result\":{}}\n\n", ""},
    {": {\"result\":{},\"id\":2}\n\n" OURS "\r\r", "data: {\"result\":\ndata: {},\"id\":2}\r\n\r\n",
     ""},
    {"data\n\nretry: 1\n\n", "id: 1\r\ndata: {\"error\":\r\ndata: {}, \"id\":\r\ndata: 2}\r\n\r\n",
     ""},
    {OURS "\n\n" PROGRESS ASKING, "", ""},
    {"datax: {\"result\":{},\"id\":2}\n\n dat: a\n\ndata: hello\n\ndata: "
     "{\"id\":1,\"result\":3}\n\n",
     "", ""},
};

START_TEST(an_event_with_another_request_s_reply_is_told)
{
    struct buffer text;
    buffer_init(&text);
    buffer_append_text(&text, streams[_i].before);
    buffer_append_text(&text, streams[_i].foreign);
    buffer_append_text(&text, streams[_i].after);
    for (size_t piece = 1; piece <= text.length; piece++) {
        struct reply_event_check check;
        bool is_foreign = false;
        size_t at = 0, passed = 0;
        reply_event_check_init(&check, STR("1"));
        for (; at < text.length && !is_foreign; at += piece) {
            size_t count = text.length - at < piece ? text.length - at : piece;
            passed =
                at + reply_event_check_feed(&check, str_slice(text.bytes + at, count), &is_foreign);
        }
        ck_assert_int_eq(is_foreign, streams[_i].foreign[0] != '\0');
        if (piece >= text.length)
            ck_assert_uint_eq(passed, is_foreign ? strlen(streams[_i].before) : text.length);
        reply_event_check_finish(&check);
    }
    buffer_finish(&text);
}
END_TEST

Suite *reply_check_suite(void)
{
    Suite *suite = suite_create("reply_check");
    TCase *tests = tcase_create("replies");
    tcase_add_loop_test(tests, a_reply_with_another_id_is_told_however_it_is_cut, 0,
                        (int)(sizeof messages / sizeof messages[0]));
    tcase_add_loop_test(tests, an_event_with_another_request_s_reply_is_told, 0,
                        (int)(sizeof streams / sizeof streams[0]));
    suite_add_tcase(suite, tests);
    return suite;
}
