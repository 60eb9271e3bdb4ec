/* The parts of a URI, each put into its one spelling. */
#include <string.h>

#include "taskgate/core/owned.h"
#include "taskgate/policy/policy.h"
#include "taskgate/policy/uri.h"

static bool uri_is_letter(unsigned char c)
{
    return (c | 0x20u) >= 'a' && (c | 0x20u) <= 'z';
}

static bool uri_is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

static bool is_unreserved(unsigned char c)
{
    return uri_is_letter(c) || uri_is_digit(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

static void uri_append_lower(struct buffer *out, size_t from)
{
    for (size_t i = from; i < out->length; i++) {
        unsigned c = (unsigned char)out->bytes[i];
        /* The digits of escapes stay in upper case. */
        if (c == '%')
            i += 2;
        else if (c >= 'A' && c <= 'Z')
            out->bytes[i] = (char)(c | 0x20u);
    }
}

/* Escapes in their one spelling, all else as it is. */
static void append_escapes(struct buffer *out, struct str text)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.length; i++) {
        int high = -1, low = -1;
        if (text.bytes[i] == '%' && text.length - i > 2) {
            high = str_hex_digit(text.bytes[i + 1]);
            low = str_hex_digit(text.bytes[i + 2]);
        }
        if (high < 0 || low < 0) {
            /* A stray "%" must not make an escape with decoded text after it. */
            buffer_append(out, text.bytes[i] == '%' ? STR("%25") : str_slice(text.bytes + i, 1));
            continue;
        }
        unsigned char decoded = (unsigned char)(high << 4 | low);
        if (is_unreserved(decoded)) {
            buffer_append(out, str_slice((const char *)&decoded, 1));
        } else {
            buffer_append_char(out, '%');
            buffer_append_char(out, digits[high]);
            buffer_append_char(out, digits[low]);
        }
        i += 2;
    }
}

/* Drops the last segment of the output from `root` on. */
static void drop_segment(struct buffer *out, size_t root)
{
    if (out->length > root)
        out->length--; /* the slash behind it */
    while (out->length > root && out->bytes[out->length - 1] != '/')
        out->length--;
}

/* Removes dot segments from the output from `start` on. A path without a slash at its front
 * gets none. */
static void remove_dots(struct buffer *out, size_t start)
{
    size_t end = out->length, at = start;
    if (at < end && out->bytes[at] == '/')
        at++;
    size_t root = at;
    out->length = root;
    while (at < end) {
        const char *slash = memchr(out->bytes + at, '/', end - at);
        size_t length = slash ? (size_t)(slash - out->bytes) - at : end - at;
        struct str segment = str_slice(out->bytes + at, length);
        size_t whole = length + (slash ? 1 : 0);
        if (str_equal(segment, STR(".."))) {
            drop_segment(out, root);
        } else if (!str_equal(segment, STR("."))) {
            memmove(out->bytes + out->length, out->bytes + at, whole);
            out->length += whole;
        }
        at += whole;
    }
}

static bool is_scheme_mark(char c)
{
    return c == '+' || c == '-' || c == '.';
}

/* The scheme with its colon, empty where there is none. */
static struct str scheme_of(struct str uri)
{
    size_t i = 0;
    while (i < uri.length &&
           (uri_is_letter((unsigned char)uri.bytes[i]) ||
            (i > 0 && (uri_is_digit((unsigned char)uri.bytes[i]) || is_scheme_mark(uri.bytes[i])))))
        i++;
    bool has_scheme = i > 0 && i < uri.length && uri.bytes[i] == ':';
    return str_slice(uri.bytes, has_scheme ? i + 1 : 0);
}

/* How much of `text` comes before the first of `ends`. */
static size_t length_before(struct str text, const char *ends)
{
    size_t i = 0;
    while (i < text.length && (!text.bytes[i] || !strchr(ends, text.bytes[i])))
        i++;
    return i;
}

static struct str uri_take(struct str *rest, size_t length)
{
    struct str taken = str_slice(rest->bytes, length);
    *rest = str_slice(rest->bytes + length, rest->length - length);
    return taken;
}

static void append_authority(struct buffer *out, struct str authority)
{
    const char *at = authority.length ? memrchr(authority.bytes, '@', authority.length) : NULL;
    struct str user = uri_take(&authority, at ? (size_t)(at - authority.bytes) + 1 : 0);
    append_escapes(out, user);
    size_t host = out->length;
    append_escapes(out, authority);
    uri_append_lower(out, host);
}

/* Without an authority two slashes at the front of a path would look like the start of one. */
static void join_slashes(struct buffer *out, size_t path)
{
    size_t end = path;
    while (end + 1 < out->length && out->bytes[end] == '/' && out->bytes[end + 1] == '/')
        end++;
    memmove(out->bytes + path, out->bytes + end, out->length - end);
    out->length -= end - path;
}

static void normalize(struct buffer *out, struct str uri)
{
    struct str rest = uri, scheme = scheme_of(uri);
    size_t start = out->length;
    buffer_append(out, uri_take(&rest, scheme.length));
    uri_append_lower(out, start);
    bool has_authority = str_starts_with(rest, STR("//"));
    if (has_authority) {
        buffer_append(out, uri_take(&rest, 2));
        append_authority(out, uri_take(&rest, length_before(rest, "/?#")));
    }
    size_t path = out->length;
    append_escapes(out, uri_take(&rest, length_before(rest, "?#")));
    remove_dots(out, path);
    if (!has_authority && out->length > path)
        join_slashes(out, path);
    append_escapes(out, rest);
}

void uri_normalize(struct buffer *out, struct str uri)
{
    size_t start = out->length;
    if (uri.length)
        normalize(out, uri);
    if (out->length == start)
        return;
    struct str made = str_slice(out->bytes + start, out->length - start);
    /* Text after dot segments, or a decoded escape, may now be a scheme. */
    if (scheme_of(uri).length || !scheme_of(made).length)
        return;
    OWNED_BUFFER(again);
    normalize(&again, made);
    out->length = start;
    buffer_append(out, buffer_str(&again));
}

/* Rules and `expose` on URIs: as they are written and as they are normalized. */

bool policy_is_uri_visible(const struct policy *policy, const struct config_source *source,
                           struct str uri)
{
    OWNED_BUFFER(normal);
    uri_normalize(&normal, uri);
    return policy_is_exposed(policy, source, uri) &&
           policy_is_exposed(policy, source, buffer_str(&normal));
}

static unsigned strictness(enum config_action action)
{
    switch (action) {
    case ACTION_FORWARD:
        return 0;
    case ACTION_APPROVE:
    case ACTION_POLICY:
        return 1;
    case ACTION_DENY:
        break;
    }
    return 2;
}

void policy_decide_uri(const struct policy *policy, const struct policy_request *request,
                       struct policy_decision *decision)
{
    struct policy_request written = *request, normalized;
    struct policy_decision other;
    OWNED_BUFFER(normal);
    uri_normalize(&normal, request->name);
    written.is_no_tool = true;
    normalized = written;
    normalized.name = buffer_str(&normal);
    policy_decide(policy, &written, decision);
    policy_decide(policy, &normalized, &other);
    if (strictness(other.action) > strictness(decision->action))
        *decision = other;
}
