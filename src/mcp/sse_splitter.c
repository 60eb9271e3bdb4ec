/* Finding where events end in a stream that arrives in pieces. */
#include "taskgate/mcp/sse.h"

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
