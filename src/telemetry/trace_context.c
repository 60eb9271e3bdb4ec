/* Reading and writing of traceparent. */
#include "taskgate/telemetry/trace_context.h"

#include <string.h>

#define VERSION_AT 0
#define TRACE_ID_AT 3
#define SPAN_ID_AT 36
#define FLAGS_AT 53
#define VERSION_FORBIDDEN 0xff

/* Upper case is not allowed there (§3.2.2). */
static int trace_context_digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool trace_context_read_hex(const char *text, unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int high = trace_context_digit_of(text[2 * i]),
            low = trace_context_digit_of(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[i] = (unsigned char)(high * 16 + low);
    }
    return true;
}

static bool is_zero(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i])
            return false;
    }
    return true;
}

/* Version 00 ends with its flags. A later one may go on behind a dash (§4.3). */
static bool has_its_length(struct str text, unsigned char version)
{
    if (text.length == TRACEPARENT_LENGTH)
        return true;
    return version > 0 && text.length > TRACEPARENT_LENGTH && text.bytes[TRACEPARENT_LENGTH] == '-';
}

bool trace_context_parse(struct trace_context *context, struct str text)
{
    struct trace_context read;
    unsigned char version;
    if (text.length < TRACEPARENT_LENGTH || text.bytes[TRACE_ID_AT - 1] != '-' ||
        text.bytes[SPAN_ID_AT - 1] != '-' || text.bytes[FLAGS_AT - 1] != '-')
        return false;
    if (!trace_context_read_hex(text.bytes + VERSION_AT, &version, 1) ||
        version == VERSION_FORBIDDEN || !has_its_length(text, version) ||
        !trace_context_read_hex(text.bytes + TRACE_ID_AT, read.trace_id, TRACE_ID_BYTES) ||
        !trace_context_read_hex(text.bytes + SPAN_ID_AT, read.span_id, SPAN_ID_BYTES) ||
        !trace_context_read_hex(text.bytes + FLAGS_AT, &read.flags, 1))
        return false;
    if (is_zero(read.trace_id, TRACE_ID_BYTES) || is_zero(read.span_id, SPAN_ID_BYTES))
        return false;
    *context = read;
    return true;
}

void trace_context_write(const struct trace_context *context, char text[TRACEPARENT_BYTES])
{
    /* Of the flags only those are passed on whose meaning is known. */
    unsigned char flags = context->flags & TRACE_SAMPLED;
    memcpy(text, "00-", TRACE_ID_AT);
    str_write_hex(context->trace_id, TRACE_ID_BYTES, text + TRACE_ID_AT);
    text[SPAN_ID_AT - 1] = '-';
    str_write_hex(context->span_id, SPAN_ID_BYTES, text + SPAN_ID_AT);
    text[FLAGS_AT - 1] = '-';
    str_write_hex(&flags, 1, text + FLAGS_AT);
    text[TRACEPARENT_LENGTH] = '\0';
}

bool trace_context_equal(const struct trace_context *a, const struct trace_context *b)
{
    return memcmp(a->trace_id, b->trace_id, TRACE_ID_BYTES) == 0 &&
           memcmp(a->span_id, b->span_id, SPAN_ID_BYTES) == 0;
}

bool tracestate_is_fit(struct str state)
{
    if (state.length == 0 || state.length > TRACESTATE_MOST_BYTES)
        return false;
    for (size_t i = 0; i < state.length; i++) {
        if (state.bytes[i] != '\t' && (state.bytes[i] < ' ' || state.bytes[i] > '~'))
            return false;
    }
    return true;
}
