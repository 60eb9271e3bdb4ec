/* Finding the `id` of a response in bytes that pass. */
#include "taskgate/mcp/reply_check.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/json/text.h"

enum place {
    BEFORE_MESSAGE,
    BEFORE_KEY,
    IN_KEY,
    BEFORE_COLON,
    BEFORE_VALUE,
    IN_ID_STRING,
    IN_ID_WORD, /* a number or null */
    IN_STRING,
    IN_WORD,
    NESTED,
    IN_NESTED_STRING,
};

void reply_check_init(struct reply_check *check, struct str id)
{
    *check = (struct reply_check){.id = id, .place = BEFORE_MESSAGE};
    buffer_init(&check->seen);
}

void reply_check_finish(struct reply_check *check)
{
    buffer_finish(&check->seen);
}

/* ---- ids ---- */

static struct str id_text(struct str id, struct buffer *decoded)
{
    return json_type(id) == JSON_STRING && json_decode_string(id, decoded) ? buffer_str(decoded)
                                                                           : id;
}

/* 1, 1.0 and 1e0; a server that reads numbers as doubles changes long ones. */
static bool is_same_number(struct str a, struct str b)
{
    char texts[2][64];
    char *ends[2];
    if (a.length == 0 || b.length == 0 || a.length >= 64 || b.length >= 64)
        return false;
    memcpy(texts[0], a.bytes, a.length);
    memcpy(texts[1], b.bytes, b.length);
    texts[0][a.length] = texts[1][b.length] = '\0';
    double first = strtod(texts[0], &ends[0]), second = strtod(texts[1], &ends[1]);
    return *ends[0] == '\0' && *ends[1] == '\0' && !(first < second) && !(first > second);
}

bool reply_id_is(struct str id, struct str other)
{
    struct buffer decoded[2];
    if (str_equal(id, other))
        return true;
    buffer_init(&decoded[0]);
    buffer_init(&decoded[1]);
    struct str a = id_text(id, &decoded[0]), b = id_text(other, &decoded[1]);
    bool has_number = json_type(id) == JSON_NUMBER || json_type(other) == JSON_NUMBER;
    bool is_same = str_equal(a, b) || (has_number && is_same_number(a, b));
    buffer_finish(&decoded[0]);
    buffer_finish(&decoded[1]);
    return is_same;
}

static void take_id(struct reply_check *check, struct str id)
{
    bool is_too_long = id.length > 6 * check->id.length + 64; /* \u and six bytes each */
    check->place = BEFORE_KEY;
    if (!is_too_long && (str_equal(id, STR("null")) || reply_id_is(check->id, id)))
        check->verdict = REPLY_PASSES;
    else if (check->is_response)
        check->verdict = REPLY_FOREIGN;
    check->has_other_id = true;
}

/* ---- skipping ---- */

/* To behind the string's closing quote, or to `end` when that is not there yet: `is_over` tells. */
static const char *skip_string(struct reply_check *check, const char *at, const char *end,
                               bool *is_over)
{
    *is_over = false;
    if (check->after_escape && at < end) {
        check->after_escape = false;
        at++;
    }
    while (at < end) {
        const char *quote = memchr(at, '"', (size_t)(end - at));
        const char *stop = quote != NULL ? quote : end;
        size_t backslashes = 0;
        while (stop - backslashes > at && stop[-1 - (ptrdiff_t)backslashes] == '\\')
            backslashes++;
        bool is_escaped = backslashes % 2 == 1;
        if (quote == NULL) {
            check->after_escape = is_escaped;
            return end;
        }
        at = quote + 1;
        if (!is_escaped) {
            *is_over = true;
            return at;
        }
    }
    return at;
}

static const char *skip_nested(struct reply_check *check, const char *at, const char *end)
{
    for (; at < end; at++) {
        switch (*at) {
        case '{':
        case '[':
            check->depth++;
            break;
        case '}':
        case ']':
            if (--check->depth == 0) {
                check->place = BEFORE_KEY;
                return at + 1;
            }
            break;
        case '"':
            check->place = IN_NESTED_STRING;
            return at + 1;
        default:
            break;
        }
    }
    return at;
}

/* ---- members ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool key_is(const struct reply_check *check, const char *key)
{
    return str_equal(str_slice(check->key, check->key_length), str_from(key));
}

static void take_key(struct reply_check *check)
{
    check->place = BEFORE_COLON;
    if (key_is(check, "method"))
        check->verdict = REPLY_PASSES;
    else if (key_is(check, "result") || key_is(check, "error"))
        check->is_response = true;
    if (check->is_response && check->has_other_id)
        check->verdict = REPLY_FOREIGN;
}

/* A key that does not fit is none of those that count. */
static void in_key(struct reply_check *check, char c)
{
    if (check->after_escape)
        check->after_escape = false;
    else if (c == '"')
        take_key(check);
    else if (c == '\\')
        check->after_escape = true;
    if (check->place == IN_KEY && check->key_length < sizeof(check->key))
        check->key[check->key_length++] = c;
}

static void begin_value(struct reply_check *check, char c)
{
    bool is_id = key_is(check, "id");
    if (c == '{' || c == '[') {
        check->depth = 1;
        check->place = NESTED;
    } else if (c == '"') {
        check->place = is_id ? IN_ID_STRING : IN_STRING;
    } else {
        check->place = is_id ? IN_ID_WORD : IN_WORD;
    }
}

static void before_key(struct reply_check *check, char c)
{
    if (c == '"') {
        check->key_length = 0;
        check->place = IN_KEY;
    } else if (c != ',') {
        check->verdict = REPLY_PASSES; /* the end, or no JSON */
    }
}

/* Single bytes between and within keys. */
static void take_byte(struct reply_check *check, char c)
{
    if (check->place != IN_KEY && is_space(c))
        return;
    switch (check->place) {
    case BEFORE_MESSAGE:
        check->place = BEFORE_KEY;
        if (c != '{')
            check->verdict = REPLY_PASSES;
        break;
    case BEFORE_KEY:
        before_key(check, c);
        break;
    case IN_KEY:
        in_key(check, c);
        break;
    case BEFORE_COLON:
        check->place = BEFORE_VALUE;
        if (c != ':')
            check->verdict = REPLY_PASSES;
        break;
    default:
        break;
    }
}

static const char *skip_word(const char *at, const char *end)
{
    while (at < end && *at != ',' && *at != '}' && *at != ']' && !is_space(*at))
        at++;
    return at;
}

static const char *in_string(struct reply_check *check, const char *at, const char *end)
{
    bool is_over;
    at = skip_string(check, at, end, &is_over);
    if (is_over)
        check->place = check->place == IN_STRING ? BEFORE_KEY : NESTED;
    return at;
}

/* `at` stands behind the first byte of it, unless that came earlier. */
static const char *in_id(struct reply_check *check, const char *at, const char *end)
{
    bool is_string = check->place == IN_ID_STRING, is_over;
    const char *start = at;
    if (is_string) {
        at = skip_string(check, at, end, &is_over);
    } else {
        at = skip_word(at, end);
        is_over = at < end;
    }
    struct str part = str_slice(start, (size_t)(at - start));
    if (is_over && check->seen.length == 0) {
        take_id(check, part);
        return at;
    }
    buffer_append(&check->seen, part);
    if (is_over || check->seen.length > 6 * check->id.length + 64) {
        take_id(check, buffer_str(&check->seen));
        if (!is_over)
            check->place = is_string ? IN_STRING : IN_WORD;
        buffer_clear(&check->seen);
    }
    return at;
}

static const char *step(struct reply_check *check, const char *at, const char *end)
{
    switch (check->place) {
    case BEFORE_VALUE:
        if (is_space(*at))
            return at + 1;
        begin_value(check, *at);
        if (check->place == IN_ID_STRING)
            buffer_append_char(&check->seen, '"');
        return check->place == IN_ID_WORD || check->place == IN_WORD ? at : at + 1;
    case IN_ID_STRING:
    case IN_ID_WORD:
        return in_id(check, at, end);
    case IN_STRING:
    case IN_NESTED_STRING:
        return in_string(check, at, end);
    case IN_WORD:
        at = skip_word(at, end);
        if (at < end)
            check->place = BEFORE_KEY;
        return at;
    case NESTED:
        return skip_nested(check, at, end);
    default:
        take_byte(check, *at);
        return at + 1;
    }
}

/* Whether the message begins as most do, and with the id that is expected: no walk is needed. */
static bool begins_as_expected(const struct reply_check *check, struct str bytes)
{
    static const char usual[] = "{\"jsonrpc\":\"2.0\",\"id\":";
    const size_t length = sizeof(usual) - 1;
    if (check->place != BEFORE_MESSAGE || check->id.length == 0 ||
        bytes.length <= length + check->id.length || memcmp(bytes.bytes, usual, length) != 0 ||
        memcmp(bytes.bytes + length, check->id.bytes, check->id.length) != 0)
        return false;
    char behind = bytes.bytes[length + check->id.length];
    return behind == ',' || behind == '}';
}

enum reply_verdict reply_check_feed(struct reply_check *check, struct str bytes)
{
    const char *at = bytes.bytes, *end = at + bytes.length;
    if (check->verdict == REPLY_UNKNOWN && begins_as_expected(check, bytes))
        check->verdict = REPLY_PASSES;
    while (bytes.length > 0 && at < end && check->verdict == REPLY_UNKNOWN)
        at = step(check, at, end);
    return check->verdict;
}

/* ---- event streams ---- */

enum line { AT_LINE_START, IN_DATA, IN_OTHER_LINE, AFTER_CR };

static const char data_field[] = "data:";
#define DATA_FIELD_LENGTH (sizeof(data_field) - 1)

void reply_event_check_init(struct reply_event_check *check, struct str id)
{
    *check = (struct reply_event_check){.line = AT_LINE_START};
    reply_check_init(&check->message, id);
}

void reply_event_check_finish(struct reply_event_check *check)
{
    reply_check_finish(&check->message);
}

static const char *line_end(const char *at, const char *end)
{
    const char *feed = memchr(at, '\n', (size_t)(end - at));
    const char *stop = feed != NULL ? feed : end;
    const char *carriage = memchr(at, '\r', (size_t)(stop - at));
    return carriage != NULL ? carriage : stop;
}

/* Whether the line was empty: an empty line ends the event, and another message follows. */
static bool end_line(struct reply_event_check *check, char c)
{
    if (check->line == IN_DATA)
        reply_check_feed(&check->message, STR("\n"));
    bool is_empty = check->matched == 0 && check->line != IN_DATA && check->line != IN_OTHER_LINE;
    if (is_empty) {
        struct str id = check->message.id;
        reply_check_finish(&check->message);
        reply_check_init(&check->message, id);
    }
    check->matched = 0;
    check->line = c == '\r' ? AFTER_CR : AT_LINE_START;
    return is_empty;
}

static const char *in_line(struct reply_event_check *check, const char *at, const char *end)
{
    if (check->line == AT_LINE_START || check->line == AFTER_CR) {
        if (*at != data_field[check->matched]) {
            check->line = IN_OTHER_LINE;
            return at;
        }
        check->line = ++check->matched == DATA_FIELD_LENGTH ? IN_DATA : AT_LINE_START;
        return at + 1;
    }
    const char *stop = line_end(at, end);
    if (check->line == IN_DATA)
        reply_check_feed(&check->message, str_slice(at, (size_t)(stop - at)));
    return stop;
}

size_t reply_event_check_feed(struct reply_event_check *check, struct str bytes, bool *is_foreign)
{
    const char *at = bytes.bytes, *end = at + bytes.length, *event = at;
    *is_foreign = false;
    while (bytes.length > 0 && at < end) {
        if (*at == '\n' && check->line == AFTER_CR && check->matched == 0) {
            check->line = AT_LINE_START;
            event += event == at; /* it belongs to the empty line before */
            at++;
        } else if (*at == '\n' || *at == '\r') {
            bool is_empty = end_line(check, *at++);
            event = is_empty ? at : event;
        } else {
            at = in_line(check, at, end);
        }
        if (check->message.verdict == REPLY_FOREIGN) {
            *is_foreign = true;
            return (size_t)(event - bytes.bytes);
        }
    }
    return bytes.length;
}
