/* The reader of responses on its own: bytes in, events out, however they are cut. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http1_response.h"
#include "suite.h"
#include "taskgate/core/buffer.h"

/* The parsed response: its head, its body, and its end. */
struct outcome {
    int heads;
    int status;
    struct buffer text; /* the body, then "|done", "|more" or "|broken" */
    size_t rest;        /* bytes behind its end */
    bool keeps_alive;
};

/* Feeds `bytes` in pieces of `piece`, as a connection does: unused bytes come again. */
static void read_in_pieces(struct outcome *outcome, struct str bytes, size_t piece,
                           bool then_closed)
{
    struct http1_response response = {.place = HTTP1_IN_HEAD};
    static struct http1_head head;
    struct buffer held;
    enum http1_event event = HTTP1_MORE;
    *outcome = (struct outcome){.status = 0};
    buffer_init(&held);
    for (size_t at = 0; at < bytes.length && event == HTTP1_MORE; at += piece) {
        size_t count = bytes.length - at < piece ? bytes.length - at : piece;
        buffer_append(&held, str_slice(bytes.bytes + at, count));
        do {
            struct http1_step step = http1_response_read(&response, &head, held.bytes, held.length);
            ck_assert_uint_le(step.used, held.length);
            event = step.event;
            if (event == HTTP1_HEAD) {
                outcome->heads++;
                outcome->status = head.status;
            } else if (event == HTTP1_BODY) {
                ck_assert_uint_gt(step.body.length, 0);
                buffer_append(&outcome->text, step.body);
            }
            buffer_drop(&held, step.used);
        } while (event == HTTP1_HEAD || event == HTTP1_BODY);
        if (event == HTTP1_END)
            outcome->rest = held.length + bytes.length - at - count;
    }
    if (event == HTTP1_MORE && then_closed)
        event = http1_response_close(&response);
    ck_assert((event == HTTP1_BROKEN) == (response.fault != NULL));
    outcome->keeps_alive = response.keeps_alive;
    buffer_append_text(&outcome->text, event == HTTP1_END    ? "|done"
                                       : event == HTTP1_MORE ? "|more"
                                                             : "|broken");
    buffer_finish(&held);
}

static void expect_outcome(struct str bytes, size_t piece, int status, const char *text)
{
    struct outcome outcome;
    read_in_pieces(&outcome, bytes, piece, true);
    ck_assert_msg(str_equal(buffer_str(&outcome.text), str_from(text)),
                  "in pieces of %zu:\n%.*s\ngave: %.*s", piece, STR_ARGS(bytes),
                  STR_ARGS(buffer_str(&outcome.text)));
    ck_assert_int_eq(outcome.heads, status > 0);
    if (status > 0)
        ck_assert_int_eq(outcome.status, status);
    buffer_finish(&outcome.text);
}

#define OK "HTTP/1.1 200 OK\r\n"
#define CHUNKED OK "Transfer-Encoding: chunked\r\n\r\n"

static const struct {
    struct str bytes;
    int status; /* 0: no head */
    const char *text;
} responses[] = {
    /* frames */
    {STR(OK "Content-Length: 3\r\n\r\nabc"), 200, "abc|done"},
    {STR(OK "Content-Length: 3\r\n\r\nab"), 200, "ab|broken"},
    {STR(OK "Content-Length: 0\r\n\r\n"), 200, "|done"},
    {STR(OK "Content-Length: 3\r\ncontent-length: 3\r\n\r\nabc"), 200, "abc|done"},
    {STR(OK "Content-Length: \t 003 \r\n\r\nabc"), 200, "abc|done"},
    {STR(OK "\r\nabc"), 200, "abc|done"},
    {STR(OK "\r\n"), 200, "|done"},
    {STR("HTTP/1.0 404 Not Found\r\n\r\nabc"), 404, "abc|done"},
    {STR("HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n"), 204, "|done"},
    {STR("HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n"), 304, "|done"},
    {STR("HTTP/1.1 299 \r\nContent-Length: 1\r\n\r\na"), 299, "a|done"},
    {STR("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 x\r\nA: b\r\n\r\n" OK "\r\na"), 200, "a|done"},
    {STR("HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n" OK "\r\na"), 200, "a|done"},
    /* chunks */
    {STR(CHUNKED "3\r\nabc\r\n0\r\n\r\n"), 200, "abc|done"},
    {STR(OK "transfer-encoding: CHUNKED\r\n\r\n3\r\nabc\r\n00\r\n\r\n"), 200, "abc|done"},
    {STR(CHUNKED "00A\r\n0123456789\r\n1;a=\"b\"\r\na\r\n2 ;c\r\nbc\r\n0;x\r\n\r\n"), 200,
     "0123456789abc|done"},
    {STR(CHUNKED "1 \t\r\na\r\n0\r\nA: b\r\nC: d\r\n\r\n"), 200, "a|done"},
    {STR(CHUNKED "3\r\nabc\r\n0\r\n"), 200, "abc|broken"},
    {STR(CHUNKED "3\r\nabc\r\n"), 200, "abc|broken"},
    {STR(CHUNKED "3\r\nab"), 200, "ab|broken"},
    {STR(CHUNKED), 200, "|broken"},
    {STR(CHUNKED "\r\n"), 200, "|broken"},
    {STR(CHUNKED "x\r\n"), 200, "|broken"},
    {STR(CHUNKED "-1\r\n"), 200, "|broken"},
    {STR(CHUNKED "+1\r\na\r\n"), 200, "|broken"},
    {STR(CHUNKED " 1\r\na\r\n"), 200, "|broken"},
    {STR(CHUNKED "0x1\r\na\r\n"), 200, "|broken"},
    {STR(CHUNKED "1 1\r\na\r\n"), 200, "|broken"},
    {STR(CHUNKED "1\na\r\n"), 200, "|broken"},
    {STR(CHUNKED "1\r\r\na\r\n"), 200, "|broken"},
    {STR(CHUNKED "1;a\nb\r\nc\r\n"), 200, "|broken"},
    {STR(CHUNKED "1;\0\r\na\r\n"), 200, "|broken"},
    {STR(CHUNKED "3\r\nabcd\r\n"), 200, "abc|broken"},
    {STR(CHUNKED "3\r\nabc\n0\r\n\r\n"), 200, "abc|broken"},
    {STR(CHUNKED "3\r\nabc\r\r\n0\r\n\r\n"), 200, "abc|broken"},
    {STR(CHUNKED "3\r\nabc\r\n0\r\n\n"), 200, "abc|broken"},
    {STR(CHUNKED "3\r\nabc\r\n0\r\nA: b\n\r\n"), 200, "abc|broken"},
    {STR(CHUNKED "3\r\nabc\r\n0\r\nA: \0\r\n\r\n"), 200, "abc|broken"},
    {STR(CHUNKED "1000000000000000\r\n"), 200, "|broken"},
    {STR(CHUNKED "ffffffffffffffff\r\n"), 200, "|broken"},
    /* two readings of one frame */
    {STR(OK "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), 0,
     "|broken"},
    {STR(OK "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), 0,
     "|broken"},
    {STR(OK "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc"), 0, "|broken"},
    {STR(OK "Content-Length: 3, 3\r\n\r\nabc"), 0, "|broken"},
    {STR(OK "Content-Length: +3\r\n\r\nabc"), 0, "|broken"},
    {STR(OK "Content-Length: -3\r\n\r\nabc"), 0, "|broken"},
    {STR(OK "Content-Length: 0x3\r\n\r\nabc"), 0, "|broken"},
    {STR(OK "Content-Length: 3 3\r\n\r\nabc"), 0, "|broken"},
    {STR(OK "Content-Length:\r\n\r\nabc"), 0, "|broken"},
    {STR(OK "Content-Length: 9223372036854775808\r\n\r\nabc"), 0, "|broken"},
    {STR(OK "Content-Length: 99999999999999999999\r\n\r\nabc"), 0, "|broken"},
    {STR(OK "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"), 0, "|broken"},
    {STR(OK "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"), 0, "|broken"},
    {STR(OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 0,
     "|broken"},
    {STR(OK "Transfer-Encoding: identity\r\n\r\nabc"), 0, "|broken"},
    {STR(OK "Transfer-Encoding:\r\n\r\nabc"), 0, "|broken"},
    {STR(OK "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"), 0, "|broken"},
    {STR("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 0, "|broken"},
    {STR("HTTP/1.1 204 x\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n"), 0,
     "|broken"},
    /* heads that are none */
    {STR(""), 0, "|broken"},
    {STR(OK "Content-Length: 3\r\n"), 0, "|broken"},
    {STR(OK "A: b\r\n c\r\n\r\n"), 0, "|broken"},
    {STR(OK " A: b\r\n\r\n"), 0, "|broken"},
    {STR(OK "A : b\r\n\r\n"), 0, "|broken"},
    {STR(OK "A\r\n\r\n"), 0, "|broken"},
    {STR(OK ": b\r\n\r\n"), 0, "|broken"},
    {STR(OK "A: b\n\r\n"), 0, "|broken"},
    {STR(OK "A: b\r\n\n"), 0, "|broken"},
    {STR(OK "A: b\rC: d\r\n\r\n"), 0, "|broken"},
    {STR(OK "A: \0\r\n\r\n"), 0, "|broken"},
    {STR(OK "A\0: b\r\n\r\n"), 0, "|broken"},
    {STR("HTTP/1.1 200 OK\nContent-Length: 3\r\n\r\nabc"), 0, "|broken"},
    {STR("\r\n" OK "\r\n"), 0, "|broken"},
    {STR("HTTP/2 200 OK\r\n\r\n"), 0, "|broken"},
    {STR("HTTP/1.2 200 OK\r\n\r\n"), 0, "|broken"},
    {STR("HTTP/1.1 20 OK\r\n\r\n"), 0, "|broken"},
    {STR("HTTP/1.1 2000 OK\r\n\r\n"), 0, "|broken"},
    {STR("HTTP/1.1  200 OK\r\n\r\n"), 0, "|broken"},
    {STR("HTTP/1.1 099 OK\r\n\r\n"), 0, "|broken"},
    {STR("HTTP/1.1 600 OK\r\n\r\n"), 0, "|broken"},
    {STR("HTTP/1.1 101 Switching Protocols\r\n\r\n"), 0, "|broken"},
    {STR("ICY 200 OK\r\n\r\n"), 0, "|broken"},
    {STR("{\"jsonrpc\":\"2.0\"}"), 0, "|broken"},
};
#define RESPONSES (int)(sizeof(responses) / sizeof(responses[0]))

START_TEST(a_response_is_read_strictly_however_its_bytes_come)
{
    struct str bytes = responses[_i].bytes;
    for (size_t piece = 1; piece <= bytes.length + 1; piece++)
        expect_outcome(bytes, piece, responses[_i].status, responses[_i].text);
}
END_TEST

/* Names of any length; what stands beside the letters in ASCII stays. */
START_TEST(names_are_in_lower_case_and_values_without_blanks_around)
{
    static const char name[] = "AZaz09-_^`|~.!#$%&'*+ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char lowered[] = "azaz09-_^`|~.!#$%&'*+abcdefghijklmnopqrstuvwxyz";
    static struct http1_head head;
    for (int length = 1; length < (int)sizeof(name); length++) {
        struct http1_response response = {.place = HTTP1_IN_HEAD};
        char bytes[200];
        int count =
            snprintf(bytes, sizeof(bytes),
                     OK "%.*s: \t A Value \t\r\nX:\r\nContent-Length: 0 \r\n\r\n", length, name);
        struct http1_step step = http1_response_read(&response, &head, bytes, (size_t)count);
        ck_assert_int_eq(step.event, HTTP1_HEAD);
        ck_assert_uint_eq(head.count, 3);
        ck_assert(str_equal(head.headers[0].name, str_slice(lowered, (size_t)length)));
        ck_assert(str_equal(head.headers[0].value, STR("A Value")));
        ck_assert(str_equal(head.headers[1].value, STR_EMPTY));
        ck_assert(str_equal(head.headers[2].value, STR("0")));
    }
}
END_TEST

static const struct {
    const char *bytes;
    bool keeps_alive;
} lives[] = {
    {OK "Content-Length: 0\r\n\r\n", true},
    {OK "Connection: keep-alive\r\nContent-Length: 0\r\n\r\n", true},
    {OK "Connection: close\r\nContent-Length: 0\r\n\r\n", false},
    {OK "Connection: x , CLOSE\r\nContent-Length: 0\r\n\r\n", false},
    {OK "Connection: keep-alive\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", false},
    {"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", false},
    {"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n", true},
};

START_TEST(a_response_says_whether_its_connection_lives_on)
{
    struct outcome outcome;
    read_in_pieces(&outcome, str_from(lives[_i].bytes), 1000, false);
    ck_assert_int_eq(outcome.keeps_alive, lives[_i].keeps_alive);
    buffer_finish(&outcome.text);
}
END_TEST

/* Found by fuzzing: a length that was none left its value to chance, and the next one was
 * compared with that. */
START_TEST(the_first_of_two_faults_is_told)
{
    static const struct {
        const char *headers, *fault;
    } cases[] = {
        {"Content-Length: x\r\nContent-Length: 0\r\n",
         "the response has a Content-Length that is no length"},
        {"Content-Length: 1\r\nContent-Length: 2\r\nContent-Length: x\r\n",
         "the response has two lengths"},
        {"Transfer-Encoding: gzip\r\nContent-Length: x\r\n",
         "the response has a Transfer-Encoding other than \"chunked\""},
    };
    static struct http1_head head;
    struct http1_response response = {.place = HTTP1_IN_HEAD};
    struct buffer bytes;
    buffer_init(&bytes);
    buffer_append_format(&bytes, OK "%s\r\n", cases[_i].headers);
    struct http1_step step = http1_response_read(&response, &head, bytes.bytes, bytes.length);
    ck_assert_int_eq(step.event, HTTP1_BROKEN);
    ck_assert_str_eq(response.fault, cases[_i].fault);
    buffer_finish(&bytes);
}
END_TEST

START_TEST(bytes_behind_a_response_are_not_its_own)
{
    static const char *const whole[] = {
        OK "Content-Length: 3\r\n\r\nabc",
        CHUNKED "3\r\nabc\r\n0\r\n\r\n",
        CHUNKED "3\r\nabc\r\n0\r\nA: b\r\n\r\n",
        "HTTP/1.1 204 x\r\n\r\n",
    };
    struct buffer bytes;
    buffer_init(&bytes);
    buffer_append_text(&bytes, whole[_i]);
    buffer_append_text(&bytes, OK "\r\nevil");
    for (size_t piece = 1; piece <= bytes.length; piece++) {
        struct outcome outcome;
        read_in_pieces(&outcome, buffer_str(&bytes), piece, false);
        ck_assert_uint_eq(outcome.rest, bytes.length - strlen(whole[_i]));
        ck_assert(str_equal(buffer_str(&outcome.text), _i == 3 ? STR("|done") : STR("abc|done")));
        buffer_finish(&outcome.text);
    }
    buffer_finish(&bytes);
}
END_TEST

/* `repeated` between `before` and `after`, so often that all of it is about `length` long. */
static const struct {
    const char *before, *repeated, *after;
    size_t length;
    int status;
    const char *text;
} sizes[] = {
    {OK "A: ", "aaaaaaaaaa", "\r\nContent-Length: 1\r\n\r\na", 64000, 200, "a|done"},
    {OK "A: ", "aaaaaaaaaa", "\r\nContent-Length: 1\r\n\r\na", 66000, 0, "|broken"},
    {OK "A: ", "aaaaaaaaaa", "", 66000, 0, "|broken"},
    {OK, "A: b\r\n", "Content-Length: 1\r\n\r\na", 1500, 200, "a|done"},
    {OK, "A: b\r\n", "Content-Length: 1\r\n\r\na", 1560, 0, "|broken"},
    {"", "HTTP/1.1 100 x\r\n\r\n", OK "\r\na", 64000, 200, "a|done"},
    {"", "HTTP/1.1 100 x\r\n\r\n", OK "\r\na", 66000, 0, "|broken"},
    {CHUNKED "1;", "eeeeeeeeee", "\r\na\r\n0\r\n\r\n", 4000, 200, "a|done"},
    {CHUNKED "1;", "eeeeeeeeee", "\r\na\r\n0\r\n\r\n", 4300, 200, "|broken"},
    {CHUNKED "1", "          ", "\r\na\r\n0\r\n\r\n", 4300, 200, "|broken"},
    {CHUNKED "0\r\n", "A: bbbbbb\r\n", "\r\n", 64000, 200, "|done"},
    {CHUNKED "0\r\n", "A: bbbbbb\r\n", "\r\n", 90000, 200, "|broken"},
};

START_TEST(an_endless_response_is_cut_off)
{
    struct buffer bytes;
    buffer_init(&bytes);
    buffer_append_text(&bytes, sizes[_i].before);
    while (bytes.length < sizes[_i].length)
        buffer_append_text(&bytes, sizes[_i].repeated);
    buffer_append_text(&bytes, sizes[_i].after);
    static const size_t pieces[] = {10, 4096, 1000000};
    for (size_t i = 0; i < 3; i++)
        expect_outcome(buffer_str(&bytes), pieces[i], sizes[_i].status, sizes[_i].text);
    buffer_finish(&bytes);
}
END_TEST

TCase *response_tests(void)
{
    TCase *tests = tcase_create("response_tests");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, a_response_is_read_strictly_however_its_bytes_come, 0, RESPONSES);
    tcase_add_test(tests, names_are_in_lower_case_and_values_without_blanks_around);
    tcase_add_loop_test(tests, a_response_says_whether_its_connection_lives_on, 0, 7);
    tcase_add_loop_test(tests, the_first_of_two_faults_is_told, 0, 3);
    tcase_add_loop_test(tests, bytes_behind_a_response_are_not_its_own, 0, 4);
    tcase_add_loop_test(tests, an_endless_response_is_cut_off, 0, 12);
    return tests;
}
