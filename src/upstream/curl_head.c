/*
 * Status and headers of a response, as libcurl gives them: one line at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "curl_internal.h"
#include "taskgate/core/memory.h"

#define MAX_HEAD_BYTES ((size_t)256 * 1024)
#define MAX_HEADERS 1000

void curl_head_init(struct curl_head *head)
{
    *head = (struct curl_head){.status = 0};
    buffer_init(&head->text);
}

void curl_head_finish(struct curl_head *head)
{
    buffer_finish(&head->text);
    free(head->spans);
}

static void start_over(struct curl_head *head, int status)
{
    head->status = status;
    head->count = 0;
    buffer_clear(&head->text);
}

/* "HTTP/1.1 404 Not Found"; 0 when it is none. */
static int parse_status(struct str line)
{
    struct str version, rest;
    if (!str_starts_with(line, STR("HTTP/")) || !str_cut(line, ' ', &version, &rest) ||
        rest.length < 3)
        return 0;
    uint64_t status;
    return str_to_u64(str_slice(rest.bytes, 3), &status) && status >= 100 ? (int)status : 0;
}

static size_t append_lower(struct buffer *text, struct str s)
{
    size_t at = text->length;
    for (size_t i = 0; i < s.length; i++) {
        int c = (unsigned char)s.bytes[i];
        if (c >= 'A' && c <= 'Z')
            c += 'a' - 'A';
        buffer_append_char(text, (char)c);
    }
    return at;
}

static void add_header(struct curl_head *head, struct str name, struct str value)
{
    if (head->count == head->capacity) {
        head->capacity = head->capacity == 0 ? 16 : 2 * head->capacity;
        head->spans =
            memory_grow_array(head->spans, head->capacity, sizeof(struct curl_header_span));
    }
    struct curl_header_span *span = &head->spans[head->count++];
    span->name_at = append_lower(&head->text, name);
    span->name_length = name.length;
    span->value_at = head->text.length;
    span->value_length = value.length;
    buffer_append(&head->text, value);
}

/* A line that begins with white space continues the value before it (RFC 9112 §5.2). */
static void continue_header(struct curl_head *head, struct str more)
{
    if (head->count == 0)
        return;
    buffer_append_char(&head->text, ' ');
    buffer_append(&head->text, more);
    head->spans[head->count - 1].value_length += 1 + more.length;
}

const char *curl_head_add_line(struct curl_head *head, struct str line)
{
    if (head->is_complete)
        return NULL;
    bool continues = line.length > 0 && (line.bytes[0] == ' ' || line.bytes[0] == '\t');
    line = str_trim(line);
    if (head->text.length + line.length > MAX_HEAD_BYTES || head->count >= MAX_HEADERS)
        return "the response headers are too large";

    int status = parse_status(line);
    struct str name, value;
    if (status != 0)
        start_over(head, status);
    else if (line.length == 0)
        head->is_complete = head->status >= 200;
    else if (continues)
        continue_header(head, line);
    else if (str_starts_with(line, STR(":")))
        return "a response header has no name";
    else if (str_cut(line, ':', &name, &value))
        add_header(head, str_trim(name), str_trim(value));
    return NULL;
}

struct http_header *curl_head_headers(const struct curl_head *head)
{
    struct http_header *headers = memory_alloc_array(head->count + 1, sizeof(*headers));
    for (size_t i = 0; i < head->count; i++) {
        const struct curl_header_span *span = &head->spans[i];
        headers[i].name = str_slice(head->text.bytes + span->name_at, span->name_length);
        headers[i].value = str_slice(head->text.bytes + span->value_at, span->value_length);
    }
    return headers;
}
