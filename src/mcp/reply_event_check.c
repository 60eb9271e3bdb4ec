/* The messages of an event stream, each judged for the request that it answers. */
#include <string.h>

#include "taskgate/mcp/reply_check.h"

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

static const char *in_line(struct reply_event_check *check, const char *at, const char *end)
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
            at = in_line(check, at, end);
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
