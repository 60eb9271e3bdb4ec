/*
 * Head, then the body as the head frames it (RFC 9112 §6.3).
 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "http1_response.h"
#include "upstream_internal.h"

/*
 * One state per place between two chunks' data; each byte there is looked at once.
 */

#define MAX_SIZE_DIGITS 15 /* no sum of lengths overflows */
#define MAX_EXTENSION_BYTES 4096
#define MAX_TRAILER_BYTES 65536

static int http1_response_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static bool is_control(char c)
{
    return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f;
}

static enum http1_chunks_state after_size(struct http1_chunks *chunks, char c)
{
    if (c == '\r')
        return HTTP1_CHUNKS_SIZE_LF;
    if (c == ';')
        return HTTP1_CHUNKS_EXTENSION;
    return c == ' ' || c == '\t' ? HTTP1_CHUNKS_SIZE_SPACE : HTTP1_CHUNKS_BROKEN;
}

static enum http1_chunks_state in_size(struct http1_chunks *chunks, char c)
{
    int digit = http1_response_hex_digit(c);
    if (digit < 0)
        return chunks->digits > 0 ? after_size(chunks, c) : HTTP1_CHUNKS_BROKEN;
    chunks->left = chunks->left * 16 + (unsigned)digit;
    return ++chunks->digits <= MAX_SIZE_DIGITS ? HTTP1_CHUNKS_SIZE : HTTP1_CHUNKS_BROKEN;
}

/* Of an extension or a trailer, which nobody reads: to the end of its line. */
static enum http1_chunks_state http1_response_in_line(struct http1_chunks *chunks, char c,
                                                      uint32_t most, enum http1_chunks_state same,
                                                      enum http1_chunks_state line_end)
{
    if (c == '\r')
        return line_end;
    return is_control(c) || ++chunks->extra > most ? HTTP1_CHUNKS_BROKEN : same;
}

static enum http1_chunks_state after_line_feed(struct http1_chunks *chunks)
{
    switch (chunks->state) {
    case HTTP1_CHUNKS_SIZE_LF:
        chunks->digits = chunks->extra = 0;
        return chunks->left > 0 ? HTTP1_CHUNKS_DATA : HTTP1_CHUNKS_TRAILER;
    case HTTP1_CHUNKS_DATA_LF:
        return HTTP1_CHUNKS_SIZE;
    case HTTP1_CHUNKS_TRAILER_LF:
        return HTTP1_CHUNKS_TRAILER;
    default:
        return HTTP1_CHUNKS_DONE;
    }
}

static enum http1_chunks_state next(struct http1_chunks *chunks, char c)
{
    switch (chunks->state) {
    case HTTP1_CHUNKS_SIZE:
        return in_size(chunks, c);
    case HTTP1_CHUNKS_SIZE_SPACE:
        return ++chunks->extra <= MAX_EXTENSION_BYTES ? after_size(chunks, c) : HTTP1_CHUNKS_BROKEN;
    case HTTP1_CHUNKS_EXTENSION:
        return http1_response_in_line(chunks, c, MAX_EXTENSION_BYTES, HTTP1_CHUNKS_EXTENSION,
                                      HTTP1_CHUNKS_SIZE_LF);
    case HTTP1_CHUNKS_DATA_CR:
        return c == '\r' ? HTTP1_CHUNKS_DATA_LF : HTTP1_CHUNKS_BROKEN;
    case HTTP1_CHUNKS_TRAILER:
    case HTTP1_CHUNKS_TRAILER_LINE:
        return http1_response_in_line(
            chunks, c, MAX_TRAILER_BYTES, HTTP1_CHUNKS_TRAILER_LINE,
            chunks->state == HTTP1_CHUNKS_TRAILER ? HTTP1_CHUNKS_END_LF : HTTP1_CHUNKS_TRAILER_LF);
    case HTTP1_CHUNKS_SIZE_LF:
    case HTTP1_CHUNKS_DATA_LF:
    case HTTP1_CHUNKS_TRAILER_LF:
    case HTTP1_CHUNKS_END_LF:
        return c == '\n' ? after_line_feed(chunks) : HTTP1_CHUNKS_BROKEN;
    case HTTP1_CHUNKS_DATA:
    case HTTP1_CHUNKS_DONE:
    case HTTP1_CHUNKS_BROKEN:
        break;
    }
    return chunks->state;
}

size_t http1_chunks_decode(struct http1_chunks *chunks, char *bytes, size_t length, size_t *used)
{
    size_t from = 0, to = 0;
    while (from < length && chunks->state < HTTP1_CHUNKS_DONE) {
        if (chunks->state != HTTP1_CHUNKS_DATA) {
            chunks->state = next(chunks, bytes[from++]);
            continue;
        }
        size_t count = chunks->left < length - from ? (size_t)chunks->left : length - from;
        if (to != from)
            memmove(bytes + to, bytes + from, count);
        from += count;
        to += count;
        chunks->left -= count;
        if (chunks->left == 0)
            chunks->state = HTTP1_CHUNKS_DATA_CR;
    }
    *used = from;
    return to;
}

static struct http1_step broken(struct http1_response *response, const char *fault)
{
    response->place = HTTP1_FAILED;
    response->fault = fault;
    return (struct http1_step){.event = HTTP1_BROKEN};
}

/* ---- the head ---- */

/* Framing headers. */
struct frame {
    bool has_length;
    bool is_chunked;
    bool says_close;
    bool says_keep_alive;
    uint64_t length;
    const char *fault;
};

/* The first fault is the one that is told. */
static void blame(struct frame *frame, const char *fault)
{
    if (frame->fault == NULL)
        frame->fault = fault;
}

static void read_length(struct frame *frame, struct str value)
{
    uint64_t length = 0;
    if (!str_to_u64(value, &length) || length > INT64_MAX)
        blame(frame, "the response has a Content-Length that is no length");
    else if (frame->has_length && frame->length != length)
        blame(frame, "the response has two lengths");
    frame->has_length = true;
    frame->length = length;
}

static void read_coding(struct frame *frame, struct str value)
{
    if (frame->is_chunked || !str_equal_ignore_case(value, STR("chunked")))
        blame(frame, "the response has a Transfer-Encoding other than \"chunked\"");
    frame->is_chunked = true;
}

static void read_connection(struct frame *frame, struct str value)
{
    struct str token;
    while (value.length > 0) {
        str_cut(value, ',', &token, &value);
        frame->says_close |= str_equal_ignore_case(str_trim(token), STR("close"));
        frame->says_keep_alive |= str_equal_ignore_case(str_trim(token), STR("keep-alive"));
    }
}

static void http1_response_read_header(struct frame *frame, const struct http_header *header)
{
    if (header->known == HTTP_NAME_CONTENT_LENGTH)
        read_length(frame, header->value);
    else if (header->known == HTTP_NAME_TRANSFER_ENCODING)
        read_coding(frame, header->value);
    else if (header->known == HTTP_NAME_CONNECTION)
        read_connection(frame, header->value);
}

#define EVERY_BYTE(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Eight bytes of ASCII at a time: those above '@' and not above 'Z' have their high bit set in
 * only the first sum, and it becomes the bit that tells the cases apart. */
static uint64_t lower_word(uint64_t word)
{
    uint64_t seven = word & EVERY_BYTE(0x7f);
    uint64_t is_upper = (seven + EVERY_BYTE(0x80 - 'A')) & ~(seven + EVERY_BYTE(0x80 - 'Z' - 1)) &
                        ~word & EVERY_BYTE(0x80);
    return word | is_upper >> 2;
}

static void lower_eight(char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, 8);
    word = lower_word(word);
    memcpy(bytes, &word, 8);
}

/* The last eight may be read twice. */
static void lower(char *bytes, size_t length)
{
    size_t i = 0;
    for (; i + 8 < length; i += 8)
        lower_eight(bytes + i);
    if (length >= 8)
        lower_eight(bytes + length - 8);
    for (; length < 8 && i < length; i++)
        if (bytes[i] >= 'A' && bytes[i] <= 'Z')
            bytes[i] = (char)(bytes[i] | 0x20);
}

/* What comes of bytes that begin a head, or a part of it. */
enum head_outcome { HEAD_READ, HEAD_IS_SHORT, HEAD_IS_NONE };

/* The unread rest of the bytes. */
struct head_reader {
    char *at, *end;
};

/* A byte at a time, over what came since the head was too short: its end must be among it. Lines
 * that end without CR LF are the reader's to refuse. */
static enum head_outcome look_for_end(const char *bytes, size_t length, size_t looked_at)
{
    int line_ends = 0;
    for (size_t i = looked_at < 3 ? 0 : looked_at - 3; i < length; i++) {
        if (bytes[i] == '\r') {
            if (++i == length)
                return HEAD_IS_SHORT;
            if (bytes[i] != '\n')
                return HEAD_IS_NONE;
        }
        line_ends = bytes[i] == '\n' ? line_ends + 1 : 0;
        if (line_ends == 2)
            return HEAD_READ;
    }
    return HEAD_IS_SHORT;
}

/* The first control character that may not be in a value; `end` if none. */
static char *find_control(char *at, char *end)
{
#ifdef __SSE2__
    for (; end - at >= 16; at += 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)(const void *)at);
        __m128i is_low = _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(0x1f)), block);
        __m128i is_control =
            _mm_or_si128(_mm_andnot_si128(_mm_cmpeq_epi8(block, _mm_set1_epi8('\t')), is_low),
                         _mm_cmpeq_epi8(block, _mm_set1_epi8(0x7f)));
        unsigned mask = (unsigned)_mm_movemask_epi8(is_control);
        if (mask != 0)
            return at + __builtin_ctz(mask);
    }
#endif
    while (at < end && !is_control(*at))
        at++;
    return at;
}

static enum head_outcome http1_response_read_line(struct head_reader *reader, struct frame *frame,
                                                  struct str *text)
{
    char *to = find_control(reader->at, reader->end);
    *text = str_slice(reader->at, (size_t)(to - reader->at));
    if (to == reader->end)
        return HEAD_IS_SHORT;
    if (*to == '\n')
        blame(frame, "the response has a line that ends without CR LF");
    else if (*to != '\r')
        return HEAD_IS_NONE;
    else if (++to == reader->end)
        return HEAD_IS_SHORT;
    reader->at = to + 1;
    return *to == '\n' ? HEAD_READ : HEAD_IS_NONE;
}

static enum head_outcome read_status(struct head_reader *reader, struct frame *frame, int *version,
                                     int *status)
{
    const char *at = reader->at;
    struct str reason;
    int digits[4];
    if (reader->end - at < 9)
        return HEAD_IS_SHORT;
    if (memcmp(at, "HTTP/1.", 7) != 0 || at[7] < '0' || at[7] > '9' || at[8] != ' ')
        return HEAD_IS_NONE;
    if (reader->end - at < 13)
        return HEAD_IS_SHORT;
    digits[0] = at[7] - '0';
    for (int i = 1; i < 4; i++) {
        digits[i] = at[8 + i] - '0';
        if (digits[i] < 0 || digits[i] > 9)
            return HEAD_IS_NONE;
    }
    if (at[12] != ' ')
        return HEAD_IS_NONE;
    *version = digits[0];
    *status = digits[1] * 100 + digits[2] * 10 + digits[3];
    reader->at += 13;
    return http1_response_read_line(reader, frame, &reason);
}

/* The colon behind the name at `at`, whose letters become lower case; NULL: it is not there. */
static char *lower_to_colon(char *at, char *end)
{
#ifdef __SSE2__
    if (end - at >= 16) { /* as nearly all names are shorter */
        const __m128i places = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        __m128i block = _mm_loadu_si128((const __m128i *)(const void *)at);
        unsigned colons = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(block, _mm_set1_epi8(':')));
        if (colons != 0) {
            int length = __builtin_ctz(colons);
            __m128i is_upper = _mm_and_si128(_mm_cmpgt_epi8(block, _mm_set1_epi8('A' - 1)),
                                             _mm_cmplt_epi8(block, _mm_set1_epi8('Z' + 1)));
            __m128i is_name = _mm_cmplt_epi8(places, _mm_set1_epi8((char)length));
            __m128i change = _mm_and_si128(_mm_and_si128(is_upper, is_name), _mm_set1_epi8(0x20));
            _mm_storeu_si128((__m128i *)(void *)at, _mm_or_si128(block, change));
            return at + length;
        }
    }
#endif
    char *colon = memchr(at, ':', (size_t)(end - at));
    if (colon != NULL)
        lower(at, (size_t)(colon - at));
    return colon;
}

/* A name that has a row is a token; another one is looked at. */
static enum head_outcome http1_response_read_name(struct head_reader *reader,
                                                  struct http_header *header)
{
    char *at = reader->at, *colon = lower_to_colon(at, reader->end);
    header->name = str_slice(at, (size_t)((colon != NULL ? colon : reader->end) - at));
    if (colon == NULL)
        return request_header_is_token(header->name) ? HEAD_IS_SHORT : HEAD_IS_NONE;
    header->known = (uint8_t)http_name_find(header->name);
    if (!http_name_has_row((enum http_name)header->known) && !request_header_is_token(header->name))
        return HEAD_IS_NONE;
    for (at = colon + 1; at < reader->end && (*at == ' ' || *at == '\t');)
        at++;
    reader->at = at;
    return HEAD_READ;
}

static enum head_outcome http1_response_take_header(struct head_reader *reader, struct frame *frame,
                                                    struct http_header *header, bool is_first)
{
    if (!is_first && (*reader->at == ' ' || *reader->at == '\t')) {
        blame(frame, "the response has a folded header");
        return http1_response_read_line(reader, frame, &header->value);
    }
    enum head_outcome outcome = http1_response_read_name(reader, header);
    if (outcome == HEAD_READ)
        outcome = http1_response_read_line(reader, frame, &header->value);
    if (outcome != HEAD_READ)
        return outcome;
    if (header->value.length > 0 &&
        (unsigned char)header->value.bytes[header->value.length - 1] <= ' ')
        header->value = str_trim(header->value);
    header->is_clean = true;
    http1_response_read_header(frame, header);
    return HEAD_READ;
}

/* Names become lower case in place. */
static enum head_outcome read_lines(struct head_reader *reader, struct http1_head *head,
                                    struct frame *frame, int *version)
{
    enum head_outcome outcome = read_status(reader, frame, version, &head->status);
    struct str nothing;
    size_t count = 0;
    while (outcome == HEAD_READ && reader->at < reader->end && *reader->at != '\r' &&
           *reader->at != '\n') {
        if (count == HTTP1_MAX_HEADERS)
            return HEAD_IS_NONE;
        outcome = http1_response_take_header(reader, frame, &head->headers[count], count == 0);
        count++;
    }
    head->count = count;
    return outcome == HEAD_READ ? http1_response_read_line(reader, frame, &nothing) : outcome;
}

static const char *http1_response_judge(const struct frame *frame, int version, int status)
{
    if (frame->fault != NULL)
        return frame->fault;
    if (frame->is_chunked && frame->has_length)
        return "the response has both Content-Length and Transfer-Encoding";
    if (frame->is_chunked && version == 0)
        return "the response has a Transfer-Encoding in HTTP/1.0";
    if (version > 1 || status < 100 || status > 599 || status == 101)
        return "the response has a status line that makes no sense";
    return NULL;
}

static void enter_body(struct http1_response *response, const struct frame *frame, int version,
                       int status)
{
    response->keeps_alive = !frame->says_close && (version == 1 || frame->says_keep_alive);
    response->left = frame->length;
    if (status == 204 || status == 304 || (frame->has_length && frame->length == 0))
        response->place = HTTP1_COMPLETE;
    else if (frame->is_chunked)
        response->place = HTTP1_IN_CHUNKS;
    else
        response->place = frame->has_length ? HTTP1_IN_SIZED_BODY : HTTP1_IN_ENDLESS_BODY;
}

static struct http1_step read_head(struct http1_response *response, struct http1_head *head,
                                   char *bytes, size_t length)
{
    struct frame frame = {.length = 0};
    struct head_reader reader = {bytes, bytes + length};
    enum head_outcome outcome = HEAD_READ;
    int version = 0;

    if (length == 0)
        return (struct http1_step){.event = HTTP1_MORE};
    if (response->looked_at > 0)
        outcome = look_for_end(bytes, length, response->looked_at);
    if (outcome == HEAD_READ)
        outcome = read_lines(&reader, head, &frame, &version);
    size_t used = (size_t)(reader.at - bytes);
    size_t head_bytes = response->interim_bytes + (outcome == HEAD_READ ? used : length);
    if (outcome == HEAD_IS_NONE)
        return broken(response, "the response is not HTTP/1.1");
    if (head_bytes > HTTP1_MAX_HEAD_BYTES)
        return broken(response, "the response headers are too large");
    if (outcome == HEAD_IS_SHORT) {
        response->looked_at = length;
        return (struct http1_step){.event = HTTP1_MORE};
    }
    response->looked_at = 0;

    const char *fault = http1_response_judge(&frame, version, head->status);
    if (fault != NULL)
        return broken(response, fault);
    if (head->status < 200) {
        response->interim_bytes = head_bytes;
        return (struct http1_step){.event = HTTP1_MORE, .used = used};
    }
    enter_body(response, &frame, version, head->status);
    return (struct http1_step){.event = HTTP1_HEAD, .used = used};
}

/* Interim heads are passed over. */
static struct http1_step read_heads(struct http1_response *response, struct http1_head *head,
                                    char *bytes, size_t length)
{
    struct http1_step step;
    size_t used = 0;
    do {
        step = read_head(response, head, bytes + used, length - used);
        used += step.used;
    } while (step.event == HTTP1_MORE && step.used > 0);
    step.used = used;
    return step;
}

/* ---- the body ---- */

static struct http1_step http1_response_piece(char *bytes, size_t length, size_t used)
{
    return (struct http1_step){.event = length > 0 ? HTTP1_BODY : HTTP1_MORE,
                               .used = used,
                               .body = str_slice(bytes, length)};
}

static struct http1_step read_sized(struct http1_response *response, char *bytes, size_t length)
{
    size_t count = length < response->left ? length : (size_t)response->left;
    response->left -= count;
    if (response->left == 0)
        response->place = HTTP1_COMPLETE;
    return http1_response_piece(bytes, count, count);
}

/* Data before a fault is given first, so that it does not matter how the bytes came. */
static struct http1_step read_chunks(struct http1_response *response, char *bytes, size_t length)
{
    size_t used;
    size_t count = http1_chunks_decode(&response->chunks, bytes, length, &used);
    struct http1_step end = {.event = HTTP1_END};
    if (response->chunks.state == HTTP1_CHUNKS_DONE)
        response->place = HTTP1_COMPLETE;
    else if (response->chunks.state == HTTP1_CHUNKS_BROKEN)
        end = broken(response, "the response has a malformed chunk");
    else
        end.event = HTTP1_MORE;
    end.used = used;
    return count > 0 ? http1_response_piece(bytes, count, used) : end;
}

struct http1_step http1_response_read(struct http1_response *response, struct http1_head *head,
                                      char *bytes, size_t length)
{
    switch (response->place) {
    case HTTP1_IN_HEAD:
        return read_heads(response, head, bytes, length);
    case HTTP1_IN_SIZED_BODY:
        return read_sized(response, bytes, length);
    case HTTP1_IN_CHUNKS:
        return read_chunks(response, bytes, length);
    case HTTP1_IN_ENDLESS_BODY:
        return http1_response_piece(bytes, length, length);
    case HTTP1_COMPLETE:
        return (struct http1_step){.event = HTTP1_END};
    case HTTP1_FAILED:
        break;
    }
    return (struct http1_step){.event = HTTP1_BROKEN};
}

enum http1_event http1_response_close(struct http1_response *response)
{
    if (response->place == HTTP1_IN_ENDLESS_BODY)
        response->place = HTTP1_COMPLETE;
    if (response->place == HTTP1_COMPLETE)
        return HTTP1_END;
    if (response->place == HTTP1_IN_HEAD)
        return broken(response, response->looked_at > 0
                                    ? "the connection was closed within the response headers"
                                    : "the connection was closed without a response")
            .event;
    return broken(response, "the connection was closed within the response body").event;
}

bool http1_response_is_in_body(const struct http1_response *response)
{
    return response->place == HTTP1_IN_SIZED_BODY || response->place == HTTP1_IN_CHUNKS ||
           response->place == HTTP1_IN_ENDLESS_BODY;
}
