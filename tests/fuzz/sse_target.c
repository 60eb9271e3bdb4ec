/*
 * Event streams: however a stream is cut into pieces, the same events come out as from a plain
 * reading line by line. A written event comes back as one event, for any text in its fields.
 */
#include <string.h>

#include "fuzz.h"
#include "taskgate/core/buffer.h"
#include "taskgate/mcp/sse.h"

/* Writes the event as text, so that two lists of events compare as bytes. */
static void note(struct buffer *out, struct str name, struct str data)
{
    buffer_append_format(out, "[%zu:", name.length);
    buffer_append(out, name);
    buffer_append_format(out, "|%zu:", data.length);
    buffer_append(out, data);
    buffer_append_char(out, ']');
}

static void note_raw(struct buffer *out, struct str raw)
{
    struct sse_event event;
    sse_event_read(&event, raw);
    if (event.has_data)
        note(out, event.name, buffer_str(&event.data));
    sse_event_finish(&event);
}

/* In pieces: the first byte says how they are cut. */
static void read_in_pieces(struct str stream, size_t step, struct buffer *out)
{
    struct sse_splitter splitter;
    struct buffer waiting;
    buffer_init(&waiting);
    sse_splitter_init(&splitter);
    for (size_t at = 0; at < stream.length;) {
        size_t length = step < stream.length - at ? step : stream.length - at, first = 0;
        struct str piece = str_slice(stream.bytes + at, length);
        while (piece.length) {
            struct sse_splitter before = splitter;
            size_t last = sse_splitter_feed(&splitter, piece, &first);
            FUZZ_EXPECT(last <= piece.length && first <= last && (first == 0) == (last == 0));
            if (last == 0) {
                buffer_append(&waiting, piece);
                break;
            }
            /* One event at a time: the bytes after the first are fed again. */
            splitter = before;
            FUZZ_EXPECT(sse_splitter_feed(&splitter, str_slice(piece.bytes, first), NULL) == first);
            buffer_append(&waiting, str_slice(piece.bytes, first));
            note_raw(out, buffer_str(&waiting));
            buffer_clear(&waiting);
            piece = str_slice(piece.bytes + first, piece.length - first);
        }
        at += length;
    }
    buffer_finish(&waiting);
}

struct reference {
    struct buffer name, data;
    bool has_data, has_line;
};

static void dispatch(struct reference *reference, struct buffer *out)
{
    if (reference->has_data)
        note(out, buffer_str(&reference->name), buffer_str(&reference->data));
    buffer_clear(&reference->name);
    buffer_clear(&reference->data);
    reference->has_data = reference->has_line = false;
}

static void take_line(struct reference *reference, struct str line, struct buffer *out)
{
    static const struct str mark = {"\xEF\xBB\xBF", 3};
    bool had_mark = false;
    /* Wider than the standard on purpose: a mark is ignored in front of every event. */
    while (!reference->has_line && str_starts_with(line, mark)) {
        line = str_slice(line.bytes + 3, line.length - 3);
        had_mark = true;
    }
    if (line.length == 0) {
        if (!had_mark)
            dispatch(reference, out);
        return;
    }
    reference->has_line = true;
    const char *colon = memchr(line.bytes, ':', line.length);
    struct str field = str_slice(line.bytes, colon ? (size_t)(colon - line.bytes) : line.length);
    struct str value = STR_EMPTY;
    if (colon)
        value = str_slice(colon + 1, line.length - field.length - 1);
    if (value.length && value.bytes[0] == ' ')
        value = str_slice(value.bytes + 1, value.length - 1);
    if (str_equal(field, STR("event"))) {
        buffer_clear(&reference->name);
        buffer_append(&reference->name, value);
    } else if (str_equal(field, STR("data"))) {
        if (reference->has_data)
            buffer_append_char(&reference->data, '\n');
        buffer_append(&reference->data, value);
        reference->has_data = true;
    }
}

/* Line by line, as the standard describes it. The text after the last line end is no line yet. */
static void read_plainly(struct str stream, struct buffer *out)
{
    struct reference reference = {.has_data = false};
    buffer_init(&reference.name);
    buffer_init(&reference.data);
    for (size_t start = 0, at = 0; at < stream.length; at++) {
        char c = stream.bytes[at];
        if (c != '\n' && c != '\r')
            continue;
        take_line(&reference, str_slice(stream.bytes + start, at - start), out);
        if (c == '\r' && at + 1 < stream.length && stream.bytes[at + 1] == '\n')
            at++;
        start = at + 1;
    }
    buffer_finish(&reference.name);
    buffer_finish(&reference.data);
}

static void expect_one_event(struct str written)
{
    struct sse_splitter splitter;
    size_t first = 0;
    sse_splitter_init(&splitter);
    FUZZ_EXPECT(sse_splitter_feed(&splitter, written, &first) == written.length);
    FUZZ_EXPECT(first == written.length);
}

/* Line ends become LF, those of a name vanish. */
static void normalise(struct buffer *out, struct str text, bool keeps_line_ends)
{
    for (size_t i = 0; i < text.length; i++) {
        bool is_pair = text.bytes[i] == '\r' && i + 1 < text.length && text.bytes[i + 1] == '\n';
        bool is_end = text.bytes[i] == '\r' || text.bytes[i] == '\n';
        if (is_pair)
            i++;
        if (!is_end)
            buffer_append_char(out, text.bytes[i]);
        else if (keeps_line_ends)
            buffer_append_char(out, '\n');
    }
}

static void check_writing(struct fuzz_input input)
{
    struct str name = fuzz_text(&input, fuzz_byte(&input) % 16);
    struct str data = fuzz_text(&input, input.left);
    struct buffer written, again, expected_name, expected_data;
    struct sse_event event;
    buffer_init(&written);
    buffer_init(&again);
    buffer_init(&expected_name);
    buffer_init(&expected_data);
    normalise(&expected_name, name, false);
    normalise(&expected_data, data, true);

    sse_write_event(&written, name, name, data);
    expect_one_event(buffer_str(&written));
    sse_event_read(&event, buffer_str(&written));
    FUZZ_EXPECT(event.has_data);
    FUZZ_EXPECT(str_equal(event.name, buffer_str(&expected_name)));
    FUZZ_EXPECT(str_equal(buffer_str(&event.data), buffer_str(&expected_data)));
    sse_event_finish(&event);

    sse_write_with_data(&again, buffer_str(&written), STR("{}"));
    expect_one_event(buffer_str(&again));
    sse_event_read(&event, buffer_str(&again));
    FUZZ_EXPECT(str_equal(event.name, buffer_str(&expected_name)));
    FUZZ_EXPECT(str_equal(buffer_str(&event.data), STR("{}")));
    sse_event_finish(&event);

    buffer_finish(&written);
    buffer_finish(&again);
    buffer_finish(&expected_name);
    buffer_finish(&expected_data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct buffer whole, pieces;
    size_t step = 1 + fuzz_byte(&input) % 32;
    struct str stream = str_slice((const char *)input.bytes, input.left);
    buffer_init(&whole);
    buffer_init(&pieces);
    read_plainly(stream, &whole);
    read_in_pieces(stream, step, &pieces);
    FUZZ_EXPECT(str_equal(buffer_str(&whole), buffer_str(&pieces)));
    buffer_finish(&whole);
    buffer_finish(&pieces);
    check_writing(input);
    return 0;
}
