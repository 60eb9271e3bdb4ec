/* JSON log lines on stderr, one write(2) each so that lines never mix. */
#include "taskgate/core/log.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/visible.h"

#define TEXT_BYTES_MAX ((size_t)16384)

static const char *const level_names[] = {"debug", "info", "warn", "error"};
static enum log_level minimum_level = LOG_LEVEL_INFO;

void log_set_level(enum log_level level)
{
    minimum_level = level;
}

bool log_level_parse(struct str name, enum log_level *level)
{
    for (unsigned i = 0; i < sizeof level_names / sizeof *level_names; i++) {
        if (str_equal(name, str_from(level_names[i]))) {
            *level = (enum log_level)i;
            return true;
        }
    }
    return false;
}

/* A text from a request may have megabytes, and the loop waits until the line is written. */
static void log_append_text(struct buffer *line, struct str text)
{
    size_t end = TEXT_BYTES_MAX;
    if (text.length <= end) {
        visible_append_json_string(line, text);
        return;
    }
    while (end > 0 && ((unsigned char)text.bytes[end] & 0xC0) == 0x80)
        end--; /* between two characters */
    visible_append_json_string(line, str_slice(text.bytes, end));
    line->length--; /* its quote */
    buffer_append_format(line, "... (%zu bytes)\"", text.length);
}

static void append_field(struct buffer *line, const struct log_field *field)
{
    buffer_append_char(line, ',');
    buffer_append_json_string(line, str_from(field->name));
    buffer_append_char(line, ':');
    switch (field->kind) {
    case LOG_FIELD_STR:
        log_append_text(line, field->text);
        break;
    case LOG_FIELD_JSON:
        visible_append_lines(line, field->text);
        break;
    case LOG_FIELD_NUMBER:
        buffer_append_format(line, "%" PRId64, field->number);
        break;
    case LOG_FIELD_BOOL:
        buffer_append_text(line, field->number ? "true" : "false");
        break;
    }
}

static void log_write_all(struct str bytes)
{
    while (bytes.length > 0) {
        ssize_t written = write(STDERR_FILENO, bytes.bytes, bytes.length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return; /* nowhere left to say it */
        bytes = str_slice(bytes.bytes + written, bytes.length - (size_t)written);
    }
}

void log_write(enum log_level level, const char *message, const struct log_field *fields,
               unsigned count)
{
    log_write_at(clock_now_ms(), level, message, fields, count);
}

void log_write_at(int64_t wall_ms, enum log_level level, const char *message,
                  const struct log_field *fields, unsigned count)
{
    if (level < minimum_level)
        return;
    char time[CLOCK_TEXT_BYTES];
    OWNED_BUFFER(line);
    buffer_append_format(&line,
                         "{\"time\":\"%s\",\"level\":\"%s\",\"msg\":", clock_format(wall_ms, time),
                         level_names[level]);
    visible_append_json_string(&line, str_from(message));
    for (unsigned i = 0; i < count; i++)
        append_field(&line, &fields[i]);
    buffer_append(&line, STR("}\n"));
    log_write_all(buffer_str(&line));
}
