/* Server-sent events: splitting, reading, writing. */
#include "mcp_test.h"

#include <string.h>

#include "taskgate/mcp/sse.h"

/* Splits `stream` as it comes in `sizes[i]`-byte pieces (the last size repeats; 0: random) and
 * writes each event as "name|id|data;". Empty events write nothing. */
struct pieces {
    const size_t *sizes;
    size_t count;
    struct chance chance;
};

static size_t next_size(struct pieces *pieces, size_t turn)
{
    size_t size = pieces->sizes[turn < pieces->count ? turn : pieces->count - 1];
    return size ? size : 1 + chance_below(&pieces->chance, 7);
}

static void say_event(struct buffer *said, struct str raw)
{
    struct sse_event event;
    sse_event_read(&event, raw);
    if (event.has_data || event.name.length || event.id.bytes) {
        buffer_append(said, event.name);
        buffer_append_char(said, '|');
        buffer_append(said, event.id);
        buffer_append_text(said, event.has_data ? "|" : "!");
        buffer_append(said, buffer_str(&event.data));
        buffer_append_char(said, ';');
    }
    sse_event_finish(&event);
}

/* Says all whole events in `held`, one by one, as a caller that rewrites them would. */
static void say_events(struct buffer *said, struct buffer *held, size_t last)
{
    struct sse_splitter splitter;
    sse_splitter_init(&splitter);
    size_t start = 0, first;
    while (start < last &&
           sse_splitter_feed(&splitter, str_slice(held->bytes + start, last - start), &first)) {
        say_event(said, str_slice(held->bytes + start, first));
        start += first;
        sse_splitter_init(&splitter);
    }
    buffer_drop(held, last);
}

static void split(struct str stream, struct pieces *pieces, struct buffer *said)
{
    struct sse_splitter splitter;
    sse_splitter_init(&splitter);
    struct buffer held;
    buffer_init(&held);
    size_t at = 0;
    for (size_t turn = 0; at < stream.length; turn++) {
        size_t size = next_size(pieces, turn);
        if (size > stream.length - at)
            size = stream.length - at;
        struct str piece = str_slice(stream.bytes + at, size);
        size_t before = held.length, first = SIZE_MAX;
        size_t last = sse_splitter_feed(&splitter, piece, &first);
        ck_assert_uint_le(first, last);
        ck_assert_uint_le(last, size);
        ck_assert((first == 0) == (last == 0));
        buffer_append(&held, piece);
        if (last)
            say_events(said, &held, before + last);
        at += size;
    }
    buffer_finish(&held);
}

static const struct {
    const char *stream, *events;
} streams[] = {
    {"data: a\n\n", "||a;"},
    {"data: a\r\n\r\n", "||a;"},
    {"data: a\r\r", "||a;"},
    {"data: a\n\ndata: b\n\n", "||a;||b;"},
    {"data: a\r\rdata: b\r\r", "||a;||b;"},
    {"data: a\r\n\r\ndata: b\r\n\r\n", "||a;||b;"},
    {"data: a\n\r\ndata: b\r\n\ndata: c\r\r\n", "||a;||b;||c;"},
    {"data: a\r\n\ndata: b\n\rdata: c\n\n", "||a;||b;||c;"},
    {"data: a", ""},
    {"data: a\n", ""},
    {"data: a\r\n", ""},
    {"\n\r\n\rdata: a\n\n", "||a;"},
    {"event: e\nid: 7\ndata: a\ndata: b\n\n", "e|7|a\nb;"},
    {"data\n\ndata:\n\ndata\ndata\n\n", "||;||;||\n;"},
    {":ping\n\ndata: a\n\n", "||a;"},
    {"id: 1\ndata:\n\n", "|1|;"},
    {"id\n\n", "|!;"},
    {"\xEF\xBB\xBF"
     "data: a\n\n",
     "||a;"},
    {"data:  two spaces \n\n", "|| two spaces ;"},
    {"data:{\"a\":\"b: c\"}\n\n", "||{\"a\":\"b: c\"};"},
    {"event: x\nevent: y\nretry: 10\nDATA: no\ndata : no\n\n", "y|!;"},
};
#define STREAM_COUNT (int)(sizeof streams / sizeof streams[0])

START_TEST(the_first_event_is_found_whatever_its_length)
{
    static char bytes[2000];
    for (size_t length = 2; length + 6 <= sizeof bytes; length++) {
        memset(bytes, 'x', length - 2);
        memcpy(bytes + length - 2, "\n\ny\n\n", 6);
        ck_assert_uint_eq(sse_first_event(str_slice(bytes, length + 3)), length == 2 ? 1 : length);
        ck_assert_uint_eq(sse_first_event(str_slice(bytes, length - 1)), length == 2 ? 1 : 0);
    }
}
END_TEST

START_TEST(events_are_the_same_in_any_pieces)
{
    const size_t whole[] = {SIZE_MAX}, bytes[] = {1}, twos[] = {2}, random[] = {0};
    const size_t *const cuts[] = {whole, bytes, twos};
    struct buffer said;
    buffer_init(&said);
    struct str stream = str_from(streams[_i].stream);
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        split(stream, &(struct pieces){cuts[i], 1, {1}}, &said);
        expect_str(buffer_str(&said), streams[_i].events);
        buffer_clear(&said);
    }
    for (size_t at = 1; at < stream.length; at++) {
        const size_t once[] = {at, SIZE_MAX};
        split(stream, &(struct pieces){once, 2, {1}}, &said);
        expect_str(buffer_str(&said), streams[_i].events);
        buffer_clear(&said);
    }
    for (uint64_t seed = 0; seed < 200; seed++) {
        split(stream, &(struct pieces){random, 1, {seed}}, &said);
        expect_str(buffer_str(&said), streams[_i].events);
        buffer_clear(&said);
    }
    buffer_finish(&said);
}
END_TEST

START_TEST(boundaries_are_reported_where_they_are)
{
    static const struct {
        const char *bytes;
        size_t first, last;
    } rows[] = {
        {"", 0, 0},
        {"data: a\n", 0, 0},
        {"data: a\n\n", 9, 9},
        {"data: a\n\ndata", 9, 9},
        {"data: a\n\nb\n\n", 9, 12},
        {"data: a\r\n\r\n", 11, 11},
        {"data: a\r\n\r\nb\r\n\r\nc", 11, 16},
        {"a\r\r\nb\r\r\n", 4, 8},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sse_splitter splitter;
        sse_splitter_init(&splitter);
        size_t first = SIZE_MAX;
        ck_assert_uint_eq(sse_splitter_feed(&splitter, str_from(rows[i].bytes), &first),
                          rows[i].last);
        ck_assert_uint_eq(first, rows[i].first);
        ck_assert_uint_eq(sse_first_event(str_from(rows[i].bytes)), rows[i].first);
        sse_splitter_init(&splitter);
        ck_assert_uint_eq(sse_splitter_feed(&splitter, str_from(rows[i].bytes), NULL),
                          rows[i].last);
    }
}
END_TEST

/* A CR-only stream may fall silent after an event: its last CR must be enough. */
START_TEST(a_cr_ends_an_event_without_waiting_for_more)
{
    struct sse_splitter splitter;
    sse_splitter_init(&splitter);
    ck_assert_uint_eq(sse_splitter_feed(&splitter, STR("data: a\r\n\r"), NULL), 10);
    ck_assert_uint_eq(sse_splitter_feed(&splitter, STR("\ndata: b\n"), NULL), 0);
    ck_assert_uint_eq(sse_splitter_feed(&splitter, STR("\n"), NULL), 1);
}
END_TEST

START_TEST(an_id_that_is_there_but_empty_is_told_from_none)
{
    static const struct {
        const char *raw;
        bool has_id;
    } rows[] = {{"data: a\n\n", false}, {"id\n\n", true}, {"id:", true}, {"id: \n", true}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sse_event event;
        sse_event_read(&event, str_from(rows[i].raw));
        ck_assert_msg((event.id.bytes != NULL) == rows[i].has_id, "%s", rows[i].raw);
        ck_assert_uint_eq(event.id.length, 0);
        sse_event_finish(&event);
    }
    struct sse_event event;
    sse_event_read(&event, STR("id: a\0b\ndata: x\n\n"));
    ck_assert_ptr_null(event.id.bytes);
    sse_event_finish(&event);
    sse_event_read(&event, STR_EMPTY);
    ck_assert(!event.has_data);
    sse_event_finish(&event);
}
END_TEST

START_TEST(a_retry_is_a_number_of_milliseconds_or_none)
{
    static const struct {
        const char *raw;
        int64_t retry_ms;
    } rows[] = {
        {"data: a\n\n", -1},   {"retry: 0\n\n", 0},    {"retry:2500\ndata: a\n", 2500},
        {"retry: -1\n\n", -1}, {"retry: 1.5\n\n", -1}, {"retry: 99999999999999999999\n\n", -1},
        {"retry\n\n", -1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sse_event event;
        sse_event_read(&event, str_from(rows[i].raw));
        ck_assert_msg(event.retry_ms == rows[i].retry_ms, "%s", rows[i].raw);
        sse_event_finish(&event);
    }
}
END_TEST

START_TEST(an_event_ends_at_its_empty_line)
{
    struct sse_event event;
    sse_event_read(&event, STR("\r\ndata: a\n\ndata: b\n\n"));
    expect_str(buffer_str(&event.data), "a");
    sse_event_finish(&event);
}
END_TEST

START_TEST(events_are_written_so_that_nothing_can_be_injected)
{
    static const struct {
        struct str name, id, data;
        const char *written;
    } rows[] = {
        {{"", 0}, {"", 0}, STR("a"), "data: a\n\n"},
        {{"", 0}, {"", 0}, {NULL, 0}, "data: \n\n"},
        {STR("task_status"), {"", 0}, STR("{}"), "event: task_status\ndata: {}\n\n"},
        {STR("e"), STR("7"), STR("a\nb"), "event: e\nid: 7\ndata: a\ndata: b\n\n"},
        {STR("e\ndata: x"), STR("1\r\n2"), STR("a"), "event: edata: x\nid: 12\ndata: a\n\n"},
        {{"", 0}, {"", 0}, STR("a\rb\r\nc\n"), "data: a\ndata: b\ndata: c\ndata: \n\n"},
        {{"", 0}, {"", 0}, STR("\n"), "data: \ndata: \n\n"},
        {{"", 0}, {"", 0}, STR("a\n\nid: 9"), "data: a\ndata: \ndata: id: 9\n\n"},
    };
    struct buffer out;
    buffer_init(&out);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sse_write_event(&out, rows[i].name, rows[i].id, rows[i].data);
        expect_written(&out, rows[i].written);
    }
}
END_TEST

START_TEST(replacing_data_keeps_all_other_lines)
{
    static const struct {
        const char *raw, *data, *written;
    } rows[] = {
        {"data: a\n\n", "b", "data: b\n\n"},
        {"event: message\r\nid: 7\r\ndata: a\r\ndata: b\r\nretry: 10\r\n\r\n", "{}",
         "event: message\nid: 7\nretry: 10\ndata: {}\n\n"},
        {"\n:hi\ndata\nid\n", "b\nc", ":hi\nid\ndata: b\ndata: c\n\n"},
        {"\xEF\xBB\xBF"
         "id:1\rdata:a\r\r",
         "b", "id:1\ndata: b\n\n"},
        {"data: a\n\nid: next\n\n", "b", "data: b\n\n"},
    };
    struct buffer out;
    buffer_init(&out);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sse_write_with_data(&out, str_from(rows[i].raw), str_from(rows[i].data));
        expect_written(&out, rows[i].written);
    }
}
END_TEST

/* For any input, pieces do not matter, and a written event reads back unchanged. */
START_TEST(mutated_streams_are_split_alike_and_read_back)
{
    const size_t whole[] = {SIZE_MAX}, random[] = {0};
    struct chance chance = {42};
    struct buffer stream, said, said_in_pieces, out;
    buffer_init(&stream);
    buffer_init(&said);
    buffer_init(&said_in_pieces);
    buffer_init(&out);
    for (size_t round = 0; round < 3000; round++) {
        buffer_clear(&stream);
        buffer_append_text(&stream, streams[round % STREAM_COUNT].stream);
        for (size_t i = chance_below(&chance, 6); i > 0; i--)
            chance_mutate(&chance, &stream);
        split(buffer_str(&stream), &(struct pieces){whole, 1, {1}}, &said);
        split(buffer_str(&stream), &(struct pieces){random, 1, {round}}, &said_in_pieces);
        ck_assert(str_equal(buffer_str(&said), buffer_str(&said_in_pieces)));

        struct sse_event event;
        sse_write_with_data(&out, buffer_str(&stream), buffer_str(&said));
        sse_event_read(&event, buffer_str(&out));
        ck_assert(event.has_data);
        sse_event_finish(&event);
        buffer_clear(&said);
        buffer_clear(&said_in_pieces);
        buffer_clear(&out);
    }
    buffer_finish(&stream);
    buffer_finish(&said);
    buffer_finish(&said_in_pieces);
    buffer_finish(&out);
}
END_TEST

Suite *sse_suite(void)
{
    Suite *suite = suite_create("sse");
    TCase *tests = tcase_create("sse");
    tcase_add_loop_test(tests, events_are_the_same_in_any_pieces, 0, STREAM_COUNT);
    tcase_add_test(tests, the_first_event_is_found_whatever_its_length);
    tcase_add_test(tests, boundaries_are_reported_where_they_are);
    tcase_add_test(tests, a_cr_ends_an_event_without_waiting_for_more);
    tcase_add_test(tests, an_id_that_is_there_but_empty_is_told_from_none);
    tcase_add_test(tests, a_retry_is_a_number_of_milliseconds_or_none);
    tcase_add_test(tests, an_event_ends_at_its_empty_line);
    tcase_add_test(tests, events_are_written_so_that_nothing_can_be_injected);
    tcase_add_test(tests, replacing_data_keeps_all_other_lines);
    tcase_add_test(tests, mutated_streams_are_split_alike_and_read_back);
    suite_add_tcase(suite, tests);
    return suite;
}
