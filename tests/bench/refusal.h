/* Whether the answer to a JSON-RPC request is a refusal: an answer that no benchmark means. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The members that say so: of the message itself, and of a tool's result. */
enum { REFUSAL_MESSAGE_DEPTH = 1, REFUSAL_RESULT_DEPTH = 2 };

/* Past a string; `at` is at its first quote. */
static inline const char *refusal_skip_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        at += *at == '\\';
    return at < end ? at + 1 : end;
}

/* Whether the name (with its quotes) of a member at this depth, before `value`, says so. */
static inline bool refusal_is_said(const char *name, const char *value, const char *end, int depth)
{
    size_t left = (size_t)(end - value);
    if (depth == REFUSAL_MESSAGE_DEPTH)
        return strncmp(name, "\"error\":", 8) == 0;
    return depth == REFUSAL_RESULT_DEPTH && strncmp(name, "\"isError\":", 10) == 0 && left >= 5 &&
           memcmp(value, ":true", 5) == 0;
}

/* `body` is JSON without blanks between its tokens, or an event stream of it, chunked or not, or
 * the beginning of one, and ends with a NUL. */
static inline bool refusal_is(const char *body, size_t length)
{
    const char *at = body, *end = body + length;
    if (!memmem(body, length, "rror\":", 6)) /* most answers are no refusal */
        return false;
    for (int depth = 0; at < end;) {
        const char *name = at;
        if (*at == '"' && depth > 0)
            at = refusal_skip_string(at, end);
        else
            at++;
        depth += *name == '{' || *name == '[' ? 1 : *name == '}' || *name == ']' ? -1 : 0;
        if (*name == '"' && at < end && *at == ':' && refusal_is_said(name, at, end, depth))
            return true;
    }
    return false;
}
