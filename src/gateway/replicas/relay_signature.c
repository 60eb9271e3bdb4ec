/* The signed text, and the header that carries its signature. */
#include "relay_signature.h"

#include <inttypes.h>
#include <stdio.h>

#include "taskgate/core/random.h"

#define VERSION "v1"
#define WORD_COUNT 7

void relay_target_write(struct str path, struct str query, struct buffer *out)
{
    buffer_append(out, path);
    if (query.length > 0) {
        buffer_append_char(out, '?');
        buffer_append(out, query);
    }
}

void relay_nonce_make(char nonce[RELAY_NONCE_BYTES])
{
    unsigned char bytes[(RELAY_NONCE_BYTES - 1) / 2];
    random_bytes(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(nonce + 2 * i, 3, "%02x", bytes[i]);
}

/* With its length before it, so that no two lists of parts make the same text. */
static void add(struct buffer *text, struct str part)
{
    buffer_append_format(text, "%zu:", part.length);
    buffer_append(text, part);
    buffer_append_char(text, '\n');
}

static void digest_headers(const struct relay_signed *request, char digest[DIGEST_HEX_BYTES])
{
    struct buffer text;
    buffer_init(&text);
    for (size_t i = 0; i < request->header_count; i++) {
        add(&text, request->headers[i].name);
        add(&text, request->headers[i].value);
    }
    digest_sha256_hex(buffer_str(&text), digest);
    buffer_finish(&text);
}

static void sign(struct str key, const struct relay_signed *request,
                 char signature[DIGEST_HEX_BYTES])
{
    char body[DIGEST_HEX_BYTES], headers[DIGEST_HEX_BYTES];
    struct buffer text;
    digest_sha256_hex(request->body, body);
    digest_headers(request, headers);
    buffer_init(&text);
    add(&text, STR("taskgate relay " VERSION));
    add(&text, request->method);
    add(&text, request->target);
    add(&text, str_from(body));
    add(&text, str_from(headers));
    add(&text, request->from);
    add(&text, request->to);
    buffer_append_format(&text, "%" PRId64 "\n%" PRId64 "\n", request->epoch, request->time_ms);
    add(&text, request->nonce);
    digest_hmac_sha256_hex(key, buffer_str(&text), signature);
    buffer_finish(&text);
}

void relay_signature_write(struct str key, const struct relay_signed *request, struct buffer *out)
{
    char signature[DIGEST_HEX_BYTES];
    sign(key, request, signature);
    buffer_append_format(out, VERSION " %.*s %.*s %" PRId64 " %" PRId64 " %.*s %s",
                         STR_ARGS(request->from), STR_ARGS(request->to), request->epoch,
                         request->time_ms, STR_ARGS(request->nonce), signature);
}

static bool read_number(struct str text, int64_t *number)
{
    uint64_t value;
    if (!str_to_u64(text, &value) || value > INT64_MAX)
        return false;
    *number = (int64_t)value;
    return true;
}

bool relay_signature_read(struct str value, struct relay_signed *request, struct str *signature)
{
    struct str words[WORD_COUNT];
    for (size_t i = 0; i < WORD_COUNT; i++) {
        bool is_last = i == WORD_COUNT - 1;
        if (str_cut(value, ' ', &words[i], &value) == is_last || words[i].length == 0)
            return false;
    }
    request->from = words[1];
    request->to = words[2];
    request->nonce = words[5];
    *signature = words[6];
    return str_equal(words[0], STR(VERSION)) && read_number(words[3], &request->epoch) &&
           read_number(words[4], &request->time_ms) &&
           request->nonce.length == RELAY_NONCE_BYTES - 1;
}

bool relay_signature_is_good(struct str key, const struct relay_signed *request,
                             struct str signature)
{
    char expected[DIGEST_HEX_BYTES];
    sign(key, request, expected);
    return str_equal_constant_time(str_from(expected), signature);
}

bool relay_signature_is_in_time(const struct relay_signed *request, int64_t now_ms)
{
    /* Without a difference that could overflow: the sender chooses the number. */
    return request->time_ms >= now_ms - RELAY_SIGNATURE_WINDOW_MS &&
           request->time_ms <= now_ms + RELAY_SIGNATURE_WINDOW_MS;
}
