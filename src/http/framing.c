/*
 * The head of a request, looked at for what two readers read in two ways and h2o does not tell: a
 * line that goes on in the next one, and lengths that differ, of which h2o takes the first.
 */
#include <string.h>
#include <strings.h>

#include "http_internal.h"

static const char length_field[] = "content-length:";
#define LENGTH_FIELD_BYTES (sizeof(length_field) - 1)

/* The head behind the line; empty behind the last one. */
static struct str next_line(struct str rest, struct str *line)
{
    const char *feed = memchr(rest.bytes, '\n', rest.length);
    size_t length = feed != NULL ? (size_t)(feed - rest.bytes) : rest.length;
    *line = str_slice(rest.bytes, length);
    size_t taken = feed != NULL ? length + 1 : length;
    return str_slice(rest.bytes + taken, rest.length - taken);
}

static bool is_length(struct str line)
{
    return line.length > LENGTH_FIELD_BYTES && line.bytes[LENGTH_FIELD_BYTES - 1] == ':' &&
           (line.bytes[0] | 0x20) == 'c' &&
           strncasecmp(line.bytes, length_field, LENGTH_FIELD_BYTES) == 0;
}

const char *framing_fault(struct str head)
{
    struct str line, rest = next_line(head, &line), length = STR_EMPTY;
    while (rest.length > 0) {
        rest = next_line(rest, &line);
        if (line.length == 0 || line.bytes[0] == '\r')
            return NULL;
        if (line.bytes[0] == ' ' || line.bytes[0] == '\t')
            return "a folded header";
        if (!is_length(line))
            continue;
        struct str value =
            str_trim(str_slice(line.bytes + LENGTH_FIELD_BYTES, line.length - LENGTH_FIELD_BYTES));
        if (length.bytes != NULL && !str_equal(length, value))
            return "two lengths";
        length = value;
    }
    return NULL;
}
