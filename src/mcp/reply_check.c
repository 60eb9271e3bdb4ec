/* Finding the `id` of a response in bytes that pass. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/json/text.h"
#include "taskgate/mcp/reply_check.h"

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
    AFTER_MESSAGE,
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

/* JSON's numbers have these bytes alone. strtod() knows more: "nan", "inf", "0x1", blanks. */
static bool reply_check_read_number(struct str text, double *number)
{
    char terminated[64], *end;
    if (text.length == 0 || text.length >= sizeof terminated)
        return false;
    for (size_t i = 0; i < text.length; i++) {
        if (text.bytes[i] == '\0' || !strchr("0123456789+-.eE", text.bytes[i]))
            return false;
        terminated[i] = text.bytes[i];
    }
    terminated[text.length] = '\0';
    *number = strtod(terminated, &end);
    return *end == '\0' && isfinite(*number);
}

/* 1, 1.0 and 1e0; a server that reads numbers as doubles changes long ones. */
static bool is_same_number(struct str a, struct str b)
{
    double first, second;
    return reply_check_read_number(a, &first) && reply_check_read_number(b, &second) &&
           !(first < second) && !(first > second);
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

/* ---- the verdict ---- */

/* The rest of the message cannot be read. */
static void reply_check_break_off(struct reply_check *check)
{
    check->verdict = check->verdict == REPLY_OURS ? REPLY_FOREIGN : REPLY_NONE;
}

static void reply_check_judge(struct reply_check *check)
{
    bool is_response = check->has_result || check->has_error;
    bool is_ambiguous = check->has_result && check->has_error;
    if (is_ambiguous || (check->names_another && is_response) ||
        (check->names_nobody && check->has_result))
        check->verdict = REPLY_FOREIGN;
}

/* An error that belongs to no request has the id null; official SDKs write these instead. */
static bool is_nobodys(struct str id)
{
    return str_equal(id, STR("null")) || str_equal(id, STR("\"\"")) ||
           str_equal(id, STR("\"server-error\""));
}

static void take_id(struct reply_check *check, struct str id)
{
    bool is_too_long = id.length > 6 * check->id.length + 64; /* \u and six bytes each */
    check->place = BEFORE_KEY;
    if (!is_too_long && reply_id_is(check->id, id))
        check->verdict = REPLY_OURS;
    else if (is_nobodys(id))
        check->names_nobody = true;
    else
        check->names_another = true;
    reply_check_judge(check);
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

/* A string without an escape is skipped here; the rest of one that has an escape, or that is cut,
 * by in_string(). */
static const char *skip_nested(struct reply_check *check, const char *at, const char *end)
{
    static const bool counts[256] = {
        ['{'] = true, ['['] = true, ['}'] = true, [']'] = true, ['"'] = true};
    for (; at < end; at++) {
        if (!counts[(unsigned char)*at])
            continue;
        if (*at == '"') {
            const char *quote = memchr(at + 1, '"', (size_t)(end - at - 1));
            if (quote == NULL || quote[-1] == '\\') {
                check->place = IN_NESTED_STRING;
                return at + 1;
            }
            at = quote;
        } else if (*at == '{' || *at == '[') {
            check->depth++;
        } else if (--check->depth == 0) {
            check->place = BEFORE_KEY;
            return at + 1;
        }
    }
    return at;
}

/* ---- members ---- */

static bool reply_check_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool key_is(const struct reply_check *check, const char *key)
{
    return str_equal(str_slice(check->key, check->key_length), str_from(key));
}

static void note_once(struct reply_check *check, bool *has)
{
    if (*has)
        check->verdict = REPLY_FOREIGN;
    *has = true;
}

static void take_key(struct reply_check *check)
{
    check->place = BEFORE_COLON;
    if (key_is(check, "id"))
        note_once(check, &check->has_id);
    else if (key_is(check, "result"))
        note_once(check, &check->has_result);
    else if (key_is(check, "error"))
        note_once(check, &check->has_error);
    else if (key_is(check, "method"))
        check->has_method = true;
    reply_check_judge(check);
}

/* A key that does not fit is none of those that count. One with an escape may be any of them, so
 * the message passes as a request of the server's alone, and never as a response. */
static void in_key(struct reply_check *check, char c)
{
    if (check->after_escape) {
        check->after_escape = false;
    } else if (c == '"') {
        take_key(check);
    } else if (c == '\\') {
        check->after_escape = check->has_method = true;
        check->key_length = sizeof(check->key);
    } else if (check->key_length < sizeof(check->key)) {
        check->key[check->key_length++] = c;
    }
}

static void begin_value(struct reply_check *check, char c)
{
    bool is_id = key_is(check, "id");
    if (c == '{' || c == '[') {
        check->depth = 1;
        check->place = NESTED;
        check->names_another |= is_id;
        reply_check_judge(check);
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
    } else if (c == '}') {
        check->place = AFTER_MESSAGE;
    } else if (c != ',') {
        reply_check_break_off(check);
    }
}

/* Single bytes between and within keys. */
static void take_byte(struct reply_check *check, char c)
{
    if (check->place != IN_KEY && reply_check_is_space(c))
        return;
    switch (check->place) {
    case BEFORE_MESSAGE:
        check->place = BEFORE_KEY;
        if (c != '{')
            reply_check_break_off(check);
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
            reply_check_break_off(check);
        break;
    case AFTER_MESSAGE:
        reply_check_break_off(check);
        break;
    default:
        break;
    }
}

static const char *skip_word(const char *at, const char *end)
{
    while (at < end && *at != ',' && *at != '}' && *at != ']' && !reply_check_is_space(*at))
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

/* `at` is after the first byte of it, unless that came earlier. */
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

static const char *reply_check_step(struct reply_check *check, const char *at, const char *end)
{
    switch (check->place) {
    case BEFORE_VALUE:
        if (reply_check_is_space(*at))
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

/* Most messages begin so, and with the id that is expected; most of them have an object as result
 * behind it. Returns how many bytes that is. */
static size_t take_usual_beginning(struct reply_check *check, struct str bytes)
{
    static const char usual[] = "{\"jsonrpc\":\"2.0\",\"id\":";
    const struct str result = STR(",\"result\":{");
    size_t length = sizeof(usual) - 1 + check->id.length;
    if (check->place != BEFORE_MESSAGE || check->id.length == 0 || bytes.length <= length ||
        memcmp(bytes.bytes, usual, sizeof(usual) - 1) != 0 ||
        memcmp(bytes.bytes + sizeof(usual) - 1, check->id.bytes, check->id.length) != 0)
        return 0;
    if (bytes.bytes[length] != ',' && bytes.bytes[length] != '}')
        return 0;
    check->has_id = true;
    check->verdict = REPLY_OURS;
    check->place = BEFORE_KEY;
    if (!str_starts_with(str_slice(bytes.bytes + length, bytes.length - length), result))
        return length;
    check->has_result = true;
    check->depth = 1;
    check->place = NESTED;
    return length + result.length;
}

static bool reads_on(const struct reply_check *check)
{
    return check->verdict == REPLY_UNKNOWN || check->verdict == REPLY_OURS;
}

enum reply_verdict reply_check_feed(struct reply_check *check, struct str bytes)
{
    const char *at = bytes.bytes, *end = at + bytes.length;
    if (bytes.length == 0)
        return check->verdict;
    while (check->place == BEFORE_MESSAGE && at < end && reply_check_is_space(*at))
        at++;
    at += take_usual_beginning(check, str_slice(at, (size_t)(end - at)));
    while (at < end && reads_on(check))
        at = reply_check_step(check, at, end);
    return check->verdict;
}

bool reply_check_is_answer(const struct reply_check *check)
{
    return check->verdict == REPLY_OURS && check->place == AFTER_MESSAGE &&
           (check->has_result || check->has_error) && !check->has_method;
}

/* Whether anything but white space has come. */
static bool reply_check_has_begun(const struct reply_check *check)
{
    return check->place != BEFORE_MESSAGE;
}

/* Whether a whole request or notification of the server's has come, which is REPLY_NONE. */
static bool reply_check_is_servers(const struct reply_check *check)
{
    return check->has_method && !check->has_result && !check->has_error &&
           check->place == AFTER_MESSAGE && check->verdict != REPLY_FOREIGN;
}

enum reply_verdict reply_check_end(struct reply_check *check)
{
    if (reads_on(check) && !reply_check_is_answer(check))
        check->verdict = check->has_method && (check->has_result || check->has_error)
                             ? REPLY_FOREIGN
                             : REPLY_NONE;
    return check->verdict;
}

/* The messages of an event stream, each judged for the request that it answers. */

enum line { IN_FIELD, IN_DATA, IN_TYPE, IN_OTHER_LINE };

static const char byte_order_mark[] = {'\xEF', '\xBB', '\xBF'};

void reply_event_check_init(struct reply_event_check *check, struct str id)
{
    *check = (struct reply_event_check){.line = IN_FIELD};
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

static struct str field_of(const struct reply_event_check *check)
{
    return str_slice(check->field, check->field_length);
}

/* A byte that does not fit makes a text that is none of those that count. */
static void add_to_field(struct reply_event_check *check, char c)
{
    if (check->field_length < sizeof check->field)
        check->field[check->field_length++] = c;
}

/* Whether the event that ends may pass; empty ones do. */
static bool end_event(struct reply_event_check *check)
{
    struct reply_check *message = &check->message;
    struct str id = message->id;
    bool passes = true;
    if (reply_check_has_begun(message) && !check->is_other_type) {
        bool is_ours = reply_check_end(message) == REPLY_OURS;
        check->is_answered |= is_ours;
        passes = is_ours || reply_check_is_servers(message);
    }
    reply_check_finish(message);
    reply_check_init(message, id);
    check->is_other_type = false;
    return passes;
}

/* Whether the line was empty: an empty line ends the event. */
static bool end_line(struct reply_event_check *check)
{
    bool is_empty = check->line == IN_FIELD && check->field_length == 0;
    if (check->line == IN_DATA)
        reply_check_feed(&check->message, STR("\n"));
    else if (check->line == IN_TYPE)
        check->is_other_type =
            check->field_length > 0 && !str_equal(field_of(check), STR("message"));
    check->line = IN_FIELD;
    check->field_length = check->mark_length = 0;
    return is_empty;
}

static void in_field(struct reply_event_check *check, char c)
{
    if (check->field_length == 0 && check->mark_length < sizeof byte_order_mark &&
        c == byte_order_mark[check->mark_length]) {
        check->mark_length++;
        return;
    }
    if (c != ':') {
        add_to_field(check, c);
        return;
    }
    check->line = str_equal(field_of(check), STR("data"))    ? IN_DATA
                  : str_equal(field_of(check), STR("event")) ? IN_TYPE
                                                             : IN_OTHER_LINE;
    check->field_length = 0;
}

static const char *reply_check_in_line(struct reply_event_check *check, const char *at,
                                       const char *end)
{
    if (check->line == IN_FIELD) {
        in_field(check, *at);
        return at + 1;
    }
    const char *stop = line_end(at, end);
    if (check->line == IN_DATA)
        reply_check_feed(&check->message, str_slice(at, (size_t)(stop - at)));
    for (; check->line == IN_TYPE && at < stop; at++)
        if (check->field_length > 0 || *at != ' ')
            add_to_field(check, *at);
    return stop;
}

size_t reply_event_check_feed(struct reply_event_check *check, struct str bytes, bool *is_foreign)
{
    const char *at = bytes.bytes, *end = at + bytes.length, *event = at;
    *is_foreign = false;
    while (bytes.length > 0 && at < end) {
        bool is_line_end = *at == '\n' || *at == '\r';
        if (*at == '\n' && check->is_after_cr) {
            check->is_after_cr = false;
            event += event == at; /* it belongs to the line before */
            at++;
            continue;
        }
        check->is_after_cr = *at == '\r';
        if (!is_line_end) {
            at = reply_check_in_line(check, at, end);
            *is_foreign = check->message.verdict == REPLY_FOREIGN && !check->is_other_type;
        } else if (end_line(check)) {
            *is_foreign = !end_event(check);
            event = *is_foreign ? event : at + 1;
            at++;
        } else {
            at++;
        }
        if (*is_foreign)
            return (size_t)(event - bytes.bytes);
    }
    return bytes.length;
}

bool reply_event_check_end(struct reply_event_check *check)
{
    end_line(check);
    return end_event(check);
}
