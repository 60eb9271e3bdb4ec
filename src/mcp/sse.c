/* Reading the fields of one event, and writing events. */
#include "taskgate/mcp/sse.h"

/* Cuts the next line off `rest`; its end (LF, CR or CRLF) is in neither. False at the end. */
static bool sse_next_line(struct str *rest, struct str *line)
{
    if (rest->length == 0)
        return false;
    size_t end = 0;
    while (end < rest->length && rest->bytes[end] != '\n' && rest->bytes[end] != '\r')
        end++;
    *line = str_slice(rest->bytes, end);
    size_t next = end;
    if (next < rest->length) {
        bool is_cr = rest->bytes[next++] == '\r';
        if (is_cr && next < rest->length && rest->bytes[next] == '\n')
            next++;
    }
    *rest = str_slice(rest->bytes + next, rest->length - next);
    return true;
}

/* The event from its first field on. In front of it may stand a BOM, when it is the stream's
 * first, and line ends: the LF of a CRLF that came in two pieces is one. */
static struct str skip_prelude(struct str raw)
{
    const struct str ignored[] = {STR("\n"), STR("\r"), STR("\xEF\xBB\xBF")};
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0];) {
        if (str_starts_with(raw, ignored[i])) {
            raw = str_slice(raw.bytes + ignored[i].length, raw.length - ignored[i].length);
            i = 0;
        } else {
            i++;
        }
    }
    return raw;
}

/* The next line of an event; its empty line ends it. */
static bool next_field_line(struct str *rest, struct str *line)
{
    return sse_next_line(rest, line) && line->length > 0;
}

/* `value` keeps a place in the line even when it is empty: it is there, but says nothing. */
static void split_field(struct str line, struct str *field, struct str *value)
{
    size_t colon = 0;
    while (colon < line.length && line.bytes[colon] != ':')
        colon++;
    *field = str_slice(line.bytes, colon);
    size_t start = colon < line.length ? colon + 1 : colon;
    if (start < line.length && line.bytes[start] == ' ')
        start++;
    *value = str_slice(line.bytes + start, line.length - start);
}

static bool sse_has_nul(struct str s)
{
    for (size_t i = 0; i < s.length; i++) {
        if (s.bytes[i] == '\0')
            return true;
    }
    return false;
}

static void read_retry(struct sse_event *event, struct str value)
{
    uint64_t milliseconds;
    if (str_to_u64(value, &milliseconds) && milliseconds <= INT64_MAX)
        event->retry_ms = (int64_t)milliseconds;
}

void sse_event_read(struct sse_event *event, struct str raw)
{
    event->name = event->id = STR_EMPTY;
    event->has_data = false;
    event->retry_ms = -1;
    buffer_init(&event->data);

    struct str rest = skip_prelude(raw), line, field, value;
    while (next_field_line(&rest, &line)) {
        split_field(line, &field, &value);
        if (str_equal(field, STR("event"))) {
            event->name = value;
        } else if (str_equal(field, STR("id")) && !sse_has_nul(value)) {
            event->id = value;
        } else if (str_equal(field, STR("retry"))) {
            read_retry(event, value);
        } else if (str_equal(field, STR("data"))) {
            if (event->has_data)
                buffer_append_char(&event->data, '\n');
            buffer_append(&event->data, value);
            event->has_data = true;
        }
    }
}

void sse_event_finish(struct sse_event *event)
{
    buffer_finish(&event->data);
}

static void append_without_line_ends(struct buffer *out, struct str s)
{
    for (size_t i = 0; i < s.length; i++) {
        if (s.bytes[i] != '\n' && s.bytes[i] != '\r')
            buffer_append_char(out, s.bytes[i]);
    }
}

static void write_field(struct buffer *out, const char *field, struct str value)
{
    buffer_append_text(out, field);
    buffer_append_text(out, ": ");
    append_without_line_ends(out, value);
    buffer_append_char(out, '\n');
}

/* The data lines and the empty line that ends the event. */
static void sse_write_data(struct buffer *out, struct str data)
{
    buffer_reserve(out, data.length + sizeof "data: \n\n");
    struct str rest = data, line;
    bool ends_open = true; /* data is empty or ends with a line end: one more, empty line */
    while (sse_next_line(&rest, &line)) {
        buffer_append_text(out, "data: ");
        buffer_append(out, line);
        buffer_append_char(out, '\n');
        ends_open = line.bytes + line.length < data.bytes + data.length;
    }
    buffer_append_text(out, ends_open ? "data: \n\n" : "\n");
}

void sse_write_event(struct buffer *out, struct str name, struct str id, struct str data)
{
    if (name.length)
        write_field(out, "event", name);
    if (id.length)
        write_field(out, "id", id);
    sse_write_data(out, data);
}

void sse_write_with_data(struct buffer *out, struct str raw, struct str data)
{
    struct str rest = skip_prelude(raw), line, field, value;
    while (next_field_line(&rest, &line)) {
        split_field(line, &field, &value);
        if (str_equal(field, STR("data")))
            continue;
        buffer_append(out, line);
        buffer_append_char(out, '\n');
    }
    sse_write_data(out, data);
}

/* Finding where events end in a stream that arrives in pieces. */

void sse_splitter_init(struct sse_splitter *splitter)
{
    splitter->line_is_empty = true;
    splitter->after_cr = false;
}

/* An empty line ends an event, so every line end on an empty line is a boundary. A CR ends its
 * line at once: waiting for the LF that may follow would hold an event back for as long as the
 * stream is silent. The LF, when it comes, belongs to the same line end. */
size_t sse_splitter_feed(struct sse_splitter *splitter, struct str bytes, size_t *first)
{
    size_t last = 0, first_end = 0;
    bool ended_by_cr = false; /* the byte before this one ended an event, being a CR */
    for (size_t i = 0; i < bytes.length; i++) {
        char c = bytes.bytes[i];
        if (c == '\n' && splitter->after_cr) {
            splitter->after_cr = false;
            if (ended_by_cr) {
                first_end = first_end == last ? i + 1 : first_end;
                last = i + 1;
            }
            ended_by_cr = false;
            continue;
        }
        ended_by_cr = false;
        splitter->after_cr = c == '\r';
        if (c != '\n' && c != '\r') {
            splitter->line_is_empty = false;
            continue;
        }
        if (splitter->line_is_empty) {
            last = i + 1;
            first_end = first_end ? first_end : last;
            ended_by_cr = c == '\r';
        }
        splitter->line_is_empty = true;
    }
    if (first)
        *first = first_end;
    return last;
}

size_t sse_first_event(struct str bytes)
{
    struct sse_splitter splitter;
    size_t first = 0, seen = 0;
    for (size_t window = 256; first == 0 && seen < bytes.length; window *= 2) {
        seen = window < bytes.length ? window : bytes.length;
        sse_splitter_init(&splitter);
        sse_splitter_feed(&splitter, str_slice(bytes.bytes, seen), &first);
    }
    return first;
}
