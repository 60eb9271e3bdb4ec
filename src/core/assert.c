/* The end of a process that found one of its own assumptions wrong. */
#include "taskgate/core/assert.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 1024

/* The line that is written. It needs no lock and no memory, which the failure may have found
 * broken. */
struct line {
    char bytes[LINE_BYTES];
    size_t length;
};

static void line_text(struct line *line, const char *text)
{
    for (; *text && line->length < LINE_BYTES - 1; text++)
        line->bytes[line->length++] = *text;
}

static void line_number(struct line *line, long long number)
{
    char digits[24], *at = digits + sizeof digits;
    unsigned long long rest =
        number < 0 ? 0 - (unsigned long long)number : (unsigned long long)number;
    *--at = '\0';
    do
        *--at = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (number < 0)
        *--at = '-';
    line_text(line, at);
}

static _Noreturn void assert_stop(const char *file, int line, const char *function,
                                  const char *condition, const long long *values)
{
    struct line text = {.length = 0};
    while (strncmp(file, "../", 3) == 0)
        file += 3;
    line_text(&text, "taskgate " TASKGATE_VERSION ": assertion failed: ");
    line_text(&text, condition);
    if (values) {
        line_text(&text, " (");
        line_number(&text, values[0]);
        line_text(&text, " and ");
        line_number(&text, values[1]);
        line_text(&text, ")");
    }
    line_text(&text, ", in ");
    line_text(&text, function);
    line_text(&text, "() at ");
    line_text(&text, file);
    line_text(&text, ":");
    line_number(&text, line);
    line_text(&text, "; please report this line and the log before it\n");
    ssize_t written = write(STDERR_FILENO, text.bytes, text.length);
    (void)written;
    abort();
}

_Noreturn void assert_failed(const char *file, int line, const char *function,
                             const char *condition)
{
    assert_stop(file, line, function, condition, NULL);
}

_Noreturn void assert_numbers_failed(const char *file, int line, const char *function,
                                     const char *condition, long long a, long long b)
{
    assert_stop(file, line, function, condition, (const long long[]){a, b});
}
