/* Whether a reply is another request's, however its bytes are cut. */
#include "mcp_test.h"

#include <string.h>

#include "taskgate/mcp/reply_check.h"

static const struct {
    const char *id, *text;
    enum reply_verdict verdict; /* at the end */
} messages[] = {
    {"1", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", REPLY_OURS},
    {"1", "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}", REPLY_FOREIGN},
    {"1", "{\"jsonrpc\":\"2.0\",\"id\":12,\"result\":{}}", REPLY_FOREIGN},
    {"1", "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"result\":{}}", REPLY_FOREIGN},
    {"1", "{\"jsonrpc\":\"2.0\",\"id\":1}", REPLY_NONE},
    {"12", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", REPLY_FOREIGN},
    {"\"a\"", "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{}}", REPLY_OURS},
    {"\"a\"", "{\"jsonrpc\":\"2.0\",\"id\":\"ab\",\"result\":{}}", REPLY_FOREIGN},
    {"1", " { \"result\" : {\"id\":1} , \"jsonrpc\":\"2.0\", \"id\" : 2 }", REPLY_FOREIGN},
    {"1", "{\"result\":{\"id\":2},\"jsonrpc\":\"2.0\",\"id\":1}", REPLY_OURS},
    {"1", "{\"result\":[{\"a\":\"}]\\\"\\\\\"},[]],\"id\":12}", REPLY_FOREIGN},
    {"1", "{\"result\":{\"text\":\"\\\",\\\"id\\\":1\"},\"id\":2,\"_meta\":{}}", REPLY_FOREIGN},
    {"1", "{\"_meta\":{},\"id\":2,\"result\":{}}", REPLY_FOREIGN},
    {"1", "{\"result\":\"text \\\\\",\"id\":11}", REPLY_FOREIGN},
    {"1", "{\"result\":true,\"id\":\"2\"}", REPLY_FOREIGN},
    {"1", "{\"id\":2,\"error\":{}}", REPLY_FOREIGN},
    {"1", "{\"error\":{\"code\":1},\"id\":2}", REPLY_FOREIGN},
    {"1", "{\"id\":[1],\"result\":{}}", REPLY_FOREIGN},
    {"1", "{\"id\":null,\"error\":{}}", REPLY_NONE},
    {"1", "{\"error\":{},\"id\":null}", REPLY_NONE},
    {"1", "{\"error\":{}}", REPLY_NONE},
    {"1", "{\"id\":\"\",\"error\":{}}", REPLY_NONE},
    {"1", "{\"id\":\"server-error\",\"error\":{}}", REPLY_NONE},
    {"1", "{\"id\":null,\"result\":{}}", REPLY_FOREIGN},
    {"1", "{\"result\":{},\"id\":\"server-error\"}", REPLY_FOREIGN},
    {"\"\"", "{\"id\":\"\",\"result\":{}}", REPLY_OURS},
    {"1", "{}", REPLY_NONE},
    {"1", "{\"result\":{}}", REPLY_NONE},
    {"1", "{\"id\":2,\"method\":\"ping\"}", REPLY_NONE},
    {"1", "{\"method\":\"x\",\"params\":{\"id\":2},\"id\":2}", REPLY_NONE},
    {"1", "{\"id\":2}", REPLY_NONE},
    {"1", "{\"resultX\":1,\"id\":2}", REPLY_NONE},
    {"1", "{\"identity\":2,\"result\":1,\"id\":1}", REPLY_OURS},
    {"1", "[{\"id\":2,\"result\":{}}]", REPLY_NONE},
    {"1", "not JSON", REPLY_NONE},
    {"1", "{not JSON", REPLY_NONE},
    {"1", "", REPLY_NONE},
    {"1", "{\"result\":{", REPLY_NONE},
    {"1", "{\"id\":1,\"result\":{", REPLY_NONE},
    {"1",
     "\xEF\xBB\xBF"
     "{\"id\":1,\"result\":{}}",
     REPLY_NONE},
    {"1", "{\"id\":1,\"result\":{},\"id\":2}", REPLY_FOREIGN},
    {"1", "{\"id\":1,\"id\":1,\"result\":{}}", REPLY_FOREIGN},
    {"1", "{\"id\":1,\"result\":{},\"result\":{}}", REPLY_FOREIGN},
    {"1", "{\"id\":1,\"error\":{},\"error\":{}}", REPLY_FOREIGN},
    {"1", "{\"id\":1,\"result\":{},\"error\":{}}", REPLY_FOREIGN},
    {"1", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"id\":1}", REPLY_FOREIGN},
    {"1", "{\"id\":1,\"result\":{},\"method\":\"ping\"}", REPLY_FOREIGN},
    {"1", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}{\"id\":2,\"result\":{}}", REPLY_FOREIGN},
    {"1", "{\"id\":1,\"\\u0069d\":2,\"result\":{}}", REPLY_FOREIGN},
    {"1", "{\"id\":\"1\",\"result\":{}}", REPLY_OURS},
    {"1", "{\"id\":1.0,\"result\":{}}", REPLY_OURS},
    {"1", "{\"id\":1e0,\"result\":{}}", REPLY_OURS},
    {"\"a/b\"", "{\"id\":\"a\\/\\u0062\",\"result\":{}}", REPLY_OURS},
    {"\"a\"", "{\"id\":\"b\",\"result\":{}}", REPLY_FOREIGN},
    {"\"a\"", "{\"id\":\"a\\\"\",\"result\":{}}", REPLY_FOREIGN},
    {"\"a\"", "{\"id\":0,\"result\":{}}", REPLY_FOREIGN},
    {"9007199254740993", "{\"id\":9007199254740992,\"result\":{}}", REPLY_OURS},
    {"1", "{\"id\":\"nan\",\"result\":{}}", REPLY_FOREIGN},
    {"1", "{\"id\":nan,\"result\":{}}", REPLY_FOREIGN},
    {"1", "{\"id\":\"0x1\",\"result\":{}}", REPLY_FOREIGN},
    {"1", "{\"id\":\" 1\",\"result\":{}}", REPLY_FOREIGN},
    {"\"nan\"", "{\"id\":1,\"result\":{}}", REPLY_FOREIGN},
    {"\"inf\"", "{\"id\":1e999,\"result\":{}}", REPLY_FOREIGN},
    {"1",
     "{\"id\":"
     "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
     REPLY_NONE},
};

START_TEST(a_reply_with_another_id_is_told_however_it_is_cut)
{
    struct str text = str_from(messages[_i].text);
    for (size_t piece = 1; piece <= text.length + 1; piece++) {
        struct reply_check check;
        reply_check_init(&check, str_from(messages[_i].id));
        for (size_t at = 0; at < text.length; at += piece) {
            size_t count = text.length - at < piece ? text.length - at : piece;
            reply_check_feed(&check, str_slice(text.bytes + at, count));
        }
        bool is_answer = reply_check_is_answer(&check);
        enum reply_verdict verdict = reply_check_end(&check);
        ck_assert_msg(verdict == messages[_i].verdict, "%s in pieces of %zu: %d", messages[_i].text,
                      piece, (int)verdict);
        ck_assert_int_eq(is_answer, verdict == REPLY_OURS);
        reply_check_finish(&check);
    }
}
END_TEST

#define OURS "data: {\"result\":{},\"jsonrpc\":\"2.0\",\"id\":1}"
#define PROGRESS "event: message\nid: 2\ndata: {\"method\":\"notifications/progress\"}\n\n"
#define ASKING "data: {\"method\":\"ping\",\"jsonrpc\":\"2.0\",\"id\":7}\r\n\r\n"

static const struct {
    const char *before, *foreign, *after;
    bool is_answered;
} streams[] = {
    {"", "data: {\"result\":{},\"id\":2}\n\n", "", false},
    {PROGRESS ASKING, "event: message\ndata: {\"result\":{},\"id\":2}\n\n", PROGRESS, false},
    {OURS "\n\n", "data:{\"id\":2,\"result\":{}}\n\n", "", true},
    {": {\"result\":{},\"id\":2}\n\n" OURS "\r\r", "data: {\"result\":\ndata: {},\"id\":2}\r\n\r\n",
     "", true},
    {"data\n\nretry: 1\n\n", "id: 1\r\ndata: {\"error\":\r\ndata: {}, \"id\":\r\ndata: 2}\r\n\r\n",
     "", false},
    {OURS "\n\n" PROGRESS ASKING, "", "", true},
    {"datax: {\"result\":{},\"id\":2}\n\n dat: a\n\ndata:\n\ndata: {\"id\":1,\"result\":3}\n\n", "",
     "", true},
    /* A byte order mark before the field. */
    {"",
     "\xEF\xBB\xBF"
     "data: {\"result\":{},\"id\":2}\n\n",
     "", false},
    {"\xEF\xBB\xBF" OURS "\n\n", "", "", true},
    /* No message, and no response. */
    {"", "data: hello\n\n", "", false},
    {"", "data: {}\n\n", "", false},
    {"", "data: {\"result\":{}}\n\n", "", false},
    {"", "data: [{\"result\":{},\"id\":1}]\n\n", "", false},
    /* Another type of event is no message, whatever its data is. */
    {"event: ping\ndata: 12:00\n\nevent:beat\r\ndata: {\"id\":2,\"result\":1}\r\n\r\n" OURS "\n\n",
     "", "", true},
    {"event: message\ndata: {\"method\":\"x\"}\n\nevent:\n" OURS "\n\n", "", "", true},
    {"event: messages\ndata: x\n\n", "event: message\ndata: x\n\n", "", false},
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
        ck_assert_int_eq(check.is_answered, streams[_i].is_answered);
        ck_assert(is_foreign || reply_event_check_end(&check));
        if (piece >= text.length)
            ck_assert_uint_eq(passed, is_foreign ? strlen(streams[_i].before) : text.length);
        reply_event_check_finish(&check);
    }
    buffer_finish(&text);
}
END_TEST

START_TEST(an_event_without_its_empty_line_is_told_at_the_end)
{
    static const struct {
        const char *text;
        bool passes;
    } ends[] = {{OURS, true},
                {OURS "\n", true},
                {"data: {\"id\":2,\"result\":{}", false},
                {"data: {\"id\":1,\"result\":", false},
                {"event: ping\ndata: x", true},
                {": comment", true}};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct reply_event_check check;
        bool is_foreign;
        reply_event_check_init(&check, STR("1"));
        reply_event_check_feed(&check, str_from(ends[i].text), &is_foreign);
        ck_assert_msg((!is_foreign && reply_event_check_end(&check)) == ends[i].passes, "%s",
                      ends[i].text);
        reply_event_check_finish(&check);
    }
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
    tcase_add_test(tests, an_event_without_its_empty_line_is_told_at_the_end);
    suite_add_tcase(suite, tests);
    return suite;
}
