/* Security headers, JSON bodies and the one shape of an error. */
#include "reply.h"

#include <stdio.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"

#define RETRY_AFTER_S "60"
#define CHALLENGE "Bearer realm=\"taskgate\""

static const struct {
    int status;
    const char *code;
} errors[] = {
    [REPLY_INVALID_REQUEST] = {400, "invalid_request"},
    [REPLY_UNAUTHORIZED] = {401, "unauthorized"},
    [REPLY_INVALID_TOKEN] = {401, "unauthorized"},
    [REPLY_FORBIDDEN] = {403, "forbidden"},
    [REPLY_OWN_CALL] = {403, "own_call"},
    [REPLY_NOT_AN_APPROVER] = {403, "not_an_approver"},
    [REPLY_NOT_FOUND] = {404, "not_found"},
    [REPLY_METHOD_NOT_ALLOWED] = {405, "method_not_allowed"},
    [REPLY_CONFLICT] = {409, "conflict"},
    [REPLY_CHANGED] = {409, "changed"},
    [REPLY_DEFINITION_CHANGED] = {409, "definition_changed"},
    [REPLY_ALREADY_VOTED] = {409, "already_voted"},
    [REPLY_NO_VOTE] = {409, "no_vote"},
    [REPLY_NOT_A_GRANTER] = {403, "not_a_granter"},
    [REPLY_GRANT_NOT_ALLOWED] = {422, "grant_not_allowed"},
    [REPLY_GRANT_TOO_LARGE] = {422, "grant_too_large"},
    [REPLY_EDIT_NOT_ALLOWED] = {422, "edit_not_allowed"},
    [REPLY_EDIT_CHANGES_ROUTE] = {422, "edit_changes_route"},
    [REPLY_REASON_REQUIRED] = {422, "reason_required"},
    [REPLY_TYPED_REQUIRED] = {422, "typed_required"},
    [REPLY_TYPED_WRONG] = {422, "typed_wrong"},
    [REPLY_UNSUPPORTED_MEDIA_TYPE] = {415, "unsupported_media_type"},
    [REPLY_LIMITED] = {429, "rate_limited"},
    [REPLY_UNAVAILABLE] = {503, "unavailable"},
};

#define CONTENT_SECURITY_POLICY                                                                    \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "                \
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/* On every answer, not only the page: a browser may be led to open an answer of the API as a
 * document, and must not run its content. Nor may it keep it, as it may the page's files. */
static const struct http_header security_headers[] = {
    {{"content-security-policy", 23},
     {CONTENT_SECURITY_POLICY, sizeof CONTENT_SECURITY_POLICY - 1}},
    {{"x-content-type-options", 22}, {"nosniff", 7}},
    {{"referrer-policy", 15}, {"no-referrer", 11}},
    {{"cross-origin-opener-policy", 26}, {"same-origin", 11}},
};
#define SECURITY_HEADER_COUNT (sizeof security_headers / sizeof *security_headers)

static size_t common_headers(const char *content_type, struct str cache_control,
                             struct http_header headers[REPLY_MAX_HEADERS])
{
    size_t count = 0;
    headers[count++] = (struct http_header){STR("content-type"), str_from(content_type)};
    for (size_t i = 0; i < SECURITY_HEADER_COUNT; i++)
        headers[count++] = security_headers[i];
    headers[count++] = (struct http_header){STR("cache-control"), cache_control};
    return count;
}

size_t reply_headers(const char *content_type, struct http_header headers[REPLY_MAX_HEADERS])
{
    return common_headers(content_type, STR("no-store"), headers);
}

static void reply_respond(struct http_exchange *exchange, int status, const char *content_type,
                          struct str body, struct http_header extra)
{
    struct http_header headers[REPLY_MAX_HEADERS];
    size_t count = reply_headers(content_type, headers);
    if (extra.name.length)
        headers[count++] = extra;
    http_respond(exchange, status, headers, count, body);
}

void reply_text(struct http_exchange *exchange, int status, const char *content_type,
                struct str body)
{
    reply_respond(exchange, status, content_type, body, (struct http_header){STR_EMPTY, STR_EMPTY});
}

/* Whether If-None-Match has this tag, or any: compared weakly (RFC 9110 §13.1.2). */
static bool reply_is_known(struct str if_none_match, struct str tag)
{
    while (if_none_match.length > 0) {
        struct str item;
        str_cut(if_none_match, ',', &item, &if_none_match);
        item = str_trim(item);
        if (str_starts_with(item, STR("W/")))
            item = str_slice(item.bytes + 2, item.length - 2);
        if (str_equal(item, tag) || str_equal(item, STR("*")))
            return true;
    }
    return false;
}

void reply_page(struct http_exchange *exchange, const struct reply_page *page)
{
    struct http_header headers[REPLY_MAX_HEADERS];
    size_t count = common_headers(page->content_type, STR("no-cache"), headers);
    headers[count++] = (struct http_header){STR("etag"), page->tag};
    headers[count++] = (struct http_header){STR("vary"), STR("accept-encoding")};
    if (page->link.length > 0)
        headers[count++] = (struct http_header){STR("link"), page->link};
    if (page->is_gzip)
        headers[count++] = (struct http_header){STR("content-encoding"), STR("gzip")};
    if (page->is_https_only)
        headers[count++] =
            (struct http_header){STR("strict-transport-security"), STR("max-age=31536000")};
    bool is_there = reply_is_known(http_header(exchange, "if-none-match"), page->tag);
    http_respond(exchange, is_there ? 304 : 200, headers, count, is_there ? STR_EMPTY : page->body);
}

void reply_json(struct http_exchange *exchange, int status, const struct buffer *body)
{
    reply_text(exchange, status, "application/json", buffer_str(body));
}

/* `member` is JSON text behind the message, or "". */
static void send_error(struct http_exchange *exchange, enum reply_error error, const char *message,
                       const char *member, struct http_header extra)
{
    OWNED_BUFFER(body);
    buffer_append_format(&body, "{\"error\":{\"code\":\"%s\",\"message\":", errors[error].code);
    buffer_append_json_string(&body, str_from(message));
    buffer_append_text(&body, member);
    buffer_append(&body, STR("}}"));
    reply_respond(exchange, errors[error].status, "application/json", buffer_str(&body), extra);
}

int reply_error_status(enum reply_error error)
{
    ASSERT_NUMBERS(error, <, sizeof errors / sizeof *errors);
    return errors[error].status;
}

const char *reply_error_code(enum reply_error error)
{
    ASSERT_NUMBERS(error, <, sizeof errors / sizeof *errors);
    return errors[error].code;
}

void reply_error(struct http_exchange *exchange, enum reply_error error, const char *message,
                 const char *state)
{
    struct http_header extra = {STR_EMPTY, STR_EMPTY};
    if (error == REPLY_UNAUTHORIZED)
        extra = (struct http_header){STR("www-authenticate"), STR(CHALLENGE)};
    if (error == REPLY_INVALID_TOKEN)
        extra = (struct http_header){STR("www-authenticate"),
                                     STR(CHALLENGE ", error=\"invalid_token\"")};
    OWNED char *member = state ? memory_format(",\"state\":\"%s\"", state) : memory_copy_text("");
    send_error(exchange, error, message, member, extra);
}

void reply_error_at(struct http_exchange *exchange, enum reply_error error, const char *message,
                    const char *path)
{
    OWNED_BUFFER(member);
    if (path)
        json_add_text(&member, "path", path);
    buffer_append_char(&member, '\0');
    send_error(exchange, error, message, member.bytes, (struct http_header){STR_EMPTY, STR_EMPTY});
}

void reply_refusal(struct http_exchange *exchange, enum reply_error error, const char *message,
                   int details)
{
    struct http_header extra = {STR_EMPTY, STR_EMPTY};
    char member[32] = "";
    if (error == REPLY_LIMITED)
        extra = (struct http_header){STR("retry-after"), STR(RETRY_AFTER_S)};
    if (details != 0)
        snprintf(member, sizeof member, ",\"details\":%d", details);
    send_error(exchange, error, message, member, extra);
}

static void reply_append_escaped(struct buffer *out, struct str text)
{
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.bytes[i];
        if (strchr("&<>\"'", c) || c < ' ' || c == 0x7F)
            buffer_append_format(out, "&#%d;", c < ' ' || c == 0x7F ? ' ' : c);
        else
            buffer_append_char(out, (char)c);
    }
}

void reply_notice(struct http_exchange *exchange, int status, const char *title,
                  const char *message)
{
    OWNED_BUFFER(body);
    buffer_append_text(&body, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                              "<title>taskgate</title><meta name=\"viewport\" "
                              "content=\"width=device-width, initial-scale=1\">"
                              "<link rel=\"stylesheet\" href=\"/page.css\"></head>"
                              "<body><main><section class=\"message\"><h2>");
    reply_append_escaped(&body, str_from(title));
    buffer_append_text(&body, "</h2><p>");
    reply_append_escaped(&body, str_from(message));
    buffer_append_text(&body, "</p><p><a href=\"/\">Back to the page</a></p></section></main>"
                              "</body></html>\n");
    reply_text(exchange, status, "text/html; charset=utf-8", buffer_str(&body));
}

void reply_redirect(struct http_exchange *exchange, struct str location,
                    const char *const cookies[2])
{
    struct http_header headers[REPLY_MAX_HEADERS];
    size_t count = reply_headers("text/plain; charset=utf-8", headers);
    headers[count++] = (struct http_header){STR("location"), location};
    for (size_t i = 0; i < 2; i++) {
        if (cookies[i])
            headers[count++] = (struct http_header){STR("set-cookie"), str_from(cookies[i])};
    }
    http_respond(exchange, 302, headers, count, STR_EMPTY);
}

void reply_json_with_cookie(struct http_exchange *exchange, int status, const struct buffer *body,
                            const char *cookie)
{
    reply_respond(exchange, status, "application/json", buffer_str(body),
                  (struct http_header){STR("set-cookie"), str_from(cookie)});
}

void reply_method_not_allowed(struct http_exchange *exchange, const char *allow)
{
    send_error(exchange, REPLY_METHOD_NOT_ALLOWED, "this path has other methods, see Allow", "",
               (struct http_header){STR("allow"), str_from(allow)});
}
