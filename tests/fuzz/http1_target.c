/*
 * The reader of responses of the small HTTP/1.1 client: however the bytes are cut, the same head,
 * body, end and fault come out. An accepted response has one frame alone, and its body equals a
 * plain reading of that frame. A head is accepted, with the same headers, if picohttpparser takes
 * it and it has no fault that this reader adds.
 */
#include <string.h>

#include "fuzz.h"
#include "http1_response.h"
#include "taskgate/core/buffer.h"

/* All that came of a response, as text where it can be compared as such. */
struct outcome {
    struct buffer heads, body;
    enum http1_event last;
    const char *fault;
    size_t head_end, rest; /* bytes up to the body; bytes behind the end */
    bool keeps_alive, is_sized, is_chunked, is_bodiless;
    uint64_t length;
};

static void note_head(struct outcome *outcome, const struct http1_head *head)
{
    buffer_append_format(&outcome->heads, "%d\n", head->status);
    FUZZ_EXPECT(head->status >= 200 && head->status < 600 && outcome->body.length == 0);
    outcome->is_bodiless = head->status == 204 || head->status == 304;
    for (size_t i = 0; i < head->count; i++) {
        struct str name = head->headers[i].name, value = head->headers[i].value;
        buffer_append(&outcome->heads, name);
        buffer_append_char(&outcome->heads, ':');
        buffer_append(&outcome->heads, value);
        buffer_append_char(&outcome->heads, '\n');
        for (size_t k = 0; k < value.length; k++)
            FUZZ_EXPECT(value.bytes[k] != '\r' && value.bytes[k] != '\n' && value.bytes[k] != '\0');
        if (str_equal(name, STR("content-length"))) {
            uint64_t length;
            FUZZ_EXPECT(str_to_u64(value, &length));
            FUZZ_EXPECT(!outcome->is_sized || outcome->length == length);
            outcome->is_sized = true;
            outcome->length = length;
        }
        if (str_equal(name, STR("transfer-encoding"))) {
            FUZZ_EXPECT(!outcome->is_chunked && str_equal_ignore_case(value, STR("chunked")));
            outcome->is_chunked = true;
        }
    }
    FUZZ_EXPECT(!outcome->is_sized || !outcome->is_chunked);
}

/* Lengths of the pieces come from `cuts`; without any it is one piece. Bytes that a step does not
 * use come again with more after them. */
static void read_response(struct outcome *outcome, struct str bytes, struct str cuts)
{
    static struct http1_head head;
    struct http1_response response = {.place = HTTP1_IN_HEAD};
    struct buffer held;
    size_t at = 0, used = 0, cut = 0;
    buffer_init(&held);
    *outcome = (struct outcome){.last = HTTP1_MORE};
    while (outcome->last == HTTP1_MORE && at < bytes.length) {
        size_t count = bytes.length - at;
        size_t wanted =
            cuts.length ? 1 + (size_t)((unsigned char)cuts.bytes[cut++ % cuts.length]) : count;
        count = wanted < count ? wanted : count;
        buffer_append(&held, str_slice(bytes.bytes + at, count));
        at += count;
        do {
            struct http1_step step = http1_response_read(&response, &head, held.bytes, held.length);
            FUZZ_EXPECT(step.used <= held.length);
            FUZZ_EXPECT((step.event == HTTP1_BODY) == (step.body.length > 0));
            outcome->last = step.event;
            used += step.used;
            if (step.event == HTTP1_HEAD) {
                FUZZ_EXPECT(outcome->heads.length == 0);
                outcome->head_end = used;
                note_head(outcome, &head);
            }
            buffer_append(&outcome->body, step.body);
            buffer_drop(&held, step.used);
        } while (outcome->last == HTTP1_HEAD || outcome->last == HTTP1_BODY);
    }
    outcome->rest = bytes.length - used;
    if (outcome->last == HTTP1_MORE)
        outcome->last = http1_response_close(&response);
    outcome->fault = response.fault;
    outcome->keeps_alive = response.keeps_alive;
    FUZZ_EXPECT(outcome->last == HTTP1_END || outcome->last == HTTP1_BROKEN);
    FUZZ_EXPECT((outcome->last == HTTP1_BROKEN) == (response.fault != NULL));
    buffer_finish(&held);
}

static void finish(struct outcome *outcome)
{
    buffer_finish(&outcome->heads);
    buffer_finish(&outcome->body);
}

/* A head that has no end is not read again for each piece: it may be seen to be wrong, or to have
 * no end, and both are the end of it. */
static bool is_endless_head(const struct outcome *outcome)
{
    return outcome->fault && strstr(outcome->fault, "closed within the response headers");
}

static void compare(const struct outcome *a, const struct outcome *b)
{
    FUZZ_EXPECT(str_equal(buffer_str(&a->heads), buffer_str(&b->heads)));
    FUZZ_EXPECT(str_equal(buffer_str(&a->body), buffer_str(&b->body)));
    FUZZ_EXPECT(a->last == b->last && a->head_end == b->head_end);
    FUZZ_EXPECT((a->fault == NULL) == (b->fault == NULL));
    if (a->fault && !is_endless_head(a) && !is_endless_head(b))
        FUZZ_EXPECT(strcmp(a->fault, b->fault) == 0);
    FUZZ_EXPECT(a->last != HTTP1_END || (a->rest == b->rest && a->keeps_alive == b->keeps_alive));
}

/* ---- A plain reading of the frame ------------------------------------------------------ */

static size_t line_end(struct str bytes, size_t at)
{
    const char *found =
        at < bytes.length ? memmem(bytes.bytes + at, bytes.length - at, "\r\n", 2) : NULL;
    FUZZ_EXPECT(found != NULL);
    return (size_t)(found - bytes.bytes);
}

/* Of a whole chunked body; returns where it ends. */
static size_t join_chunks(struct str bytes, size_t at, struct buffer *body)
{
    for (;;) {
        size_t end = line_end(bytes, at);
        char *stop;
        char digits[20] = "";
        memcpy(digits, bytes.bytes + at, end - at < 19 ? end - at : 19);
        unsigned long long size = strtoull(digits, &stop, 16);
        FUZZ_EXPECT(stop != digits && (*stop == '\0' || strchr("; \t\r", *stop)));
        at = end + 2;
        if (size == 0)
            break;
        FUZZ_EXPECT(size <= bytes.length - at);
        buffer_append(body, str_slice(bytes.bytes + at, size));
        at += size;
        FUZZ_EXPECT(line_end(bytes, at) == at);
        at += 2;
    }
    for (size_t end; (end = line_end(bytes, at)) != at;)
        at = end + 2;
    return at + 2;
}

static void check_frame(const struct outcome *outcome, struct str bytes)
{
    struct buffer body;
    size_t end = outcome->head_end;
    buffer_init(&body);
    if (outcome->is_bodiless) {
    } else if (outcome->is_chunked) {
        end = join_chunks(bytes, end, &body);
    } else {
        size_t length = outcome->is_sized ? (size_t)outcome->length : bytes.length - end;
        FUZZ_EXPECT(length <= bytes.length - end);
        buffer_append(&body, str_slice(bytes.bytes + end, length));
        end += length;
    }
    FUZZ_EXPECT(str_equal(buffer_str(&body), buffer_str(&outcome->body)));
    FUZZ_EXPECT(end == bytes.length - outcome->rest);
    buffer_finish(&body);
}

/* ---- Another reader's head --------------------------------------------------------------- */

struct phr_header {
    const char *name; /* NULL: a line that continues the value before it */
    size_t name_len;
    const char *value; /* white space at its end included */
    size_t value_len;
};

/* In h2o's library. Returns the length of the head, -2 when it is not yet complete, -1 when it is
 * none. */
int phr_parse_response(const char *buf, size_t len, int *minor_version, int *status,
                       const char **msg, size_t *msg_len, struct phr_header *headers,
                       size_t *num_headers, size_t last_len);

/* Its headers as note_head() writes them. false: a line is folded, or ends without CR LF. */
static bool write_headers(struct buffer *out, const struct phr_header *headers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct phr_header *header = &headers[i];
        if (header->name == NULL || header->value[header->value_len] != '\r')
            return false;
        for (size_t k = 0; k < header->name_len; k++) {
            char c = header->name[k];
            buffer_append_char(out, (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c));
        }
        buffer_append_char(out, ':');
        buffer_append(out, str_trim(str_slice(header->value, header->value_len)));
        buffer_append_char(out, '\n');
    }
    return true;
}

/* Of the first head. `outcome` is of the whole bytes in one piece. */
static void compare_head(const struct outcome *outcome, struct str bytes)
{
    static struct phr_header headers[HTTP1_MAX_HEADERS];
    size_t count = HTTP1_MAX_HEADERS, reason_length;
    const char *reason;
    int version, status;
    struct buffer expected;
    int used = phr_parse_response(bytes.bytes, bytes.length, &version, &status, &reason,
                                  &reason_length, headers, &count, 0);
    bool is_none = outcome->fault && strstr(outcome->fault, "is not HTTP/1.1");
    bool is_short = outcome->fault && (is_endless_head(outcome) ||
                                       strstr(outcome->fault, "closed without a response"));
    if (used > 0 && status >= 100 && status < 200)
        return; /* an interim head, which is passed over */
    FUZZ_EXPECT((used == -1) == is_none);
    if (used < 0) {
        FUZZ_EXPECT(outcome->fault && (is_none || is_short || strstr(outcome->fault, "too large")));
        return;
    }
    FUZZ_EXPECT(!is_short);
    buffer_init(&expected);
    buffer_append_format(&expected, "%d\n", status);
    bool is_strict = reason[reason_length] == '\r' && bytes.bytes[used - 2] == '\r' &&
                     write_headers(&expected, headers, count);
    FUZZ_EXPECT(is_strict || outcome->fault);
    if (outcome->heads.length > 0) {
        FUZZ_EXPECT(is_strict && (size_t)used == outcome->head_end);
        FUZZ_EXPECT(str_equal(buffer_str(&expected), buffer_str(&outcome->heads)));
    }
    if (is_strict && outcome->heads.length == 0)
        FUZZ_EXPECT(!strstr(outcome->fault, "CR LF") && !strstr(outcome->fault, "folded"));
    buffer_finish(&expected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct str cuts = fuzz_text(&input, 1 + fuzz_byte(&input) % 8);
    struct str bytes = fuzz_text(&input, input.left);
    struct outcome whole, pieces, each;
    read_response(&whole, bytes, STR_EMPTY);
    read_response(&pieces, bytes, cuts);
    read_response(&each, bytes, STR("\0"));
    if (bytes.length > 0)
        compare_head(&whole, bytes);
    compare(&whole, &pieces);
    compare(&whole, &each);
    if (whole.last == HTTP1_END)
        check_frame(&whole, bytes);
    finish(&each);
    finish(&pieces);
    finish(&whole);
    return 0;
}
