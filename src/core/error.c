/* The error value. */
#include "taskgate/core/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool error_set(struct error *error, const char *format, ...)
{
    if (!error)
        return false;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    return false;
}

bool error_prefix(struct error *error, const char *what)
{
    if (!error)
        return false;
    char message[ERROR_MESSAGE_BYTES];
    memcpy(message, error->message, sizeof message);
    /* The cut at the end of a long message is meant. */
    int written = snprintf(error->message, sizeof error->message, "%.200s: ", what);
    size_t used = written > 0 ? (size_t)written : 0;
    size_t room = sizeof error->message - used - 1;
    size_t length = strnlen(message, room);
    memcpy(error->message + used, message, length);
    error->message[used + length] = '\0';
    return false;
}

bool error_suffix(struct error *error, const char *hint)
{
    if (!error)
        return false;
    size_t used = strnlen(error->message, sizeof error->message);
    if (used < sizeof error->message)
        snprintf(error->message + used, sizeof error->message - used, "; %s", hint);
    return false;
}
