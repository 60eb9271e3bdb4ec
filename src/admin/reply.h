/*
 * Responses of the operators' side: every one with the same security headers, errors in one shape.
 * Behaviour 10.1.
 */
#pragma once

#include "taskgate/core/buffer.h"
#include "taskgate/http/server.h"

enum reply_error {
    REPLY_INVALID_REQUEST,
    REPLY_UNAUTHORIZED,
    REPLY_INVALID_TOKEN, /* as the one before, to somebody who has shown a token (RFC 6750 §3.1) */
    REPLY_FORBIDDEN,
    REPLY_OWN_CALL,
    REPLY_NOT_AN_APPROVER,
    REPLY_NOT_FOUND,
    REPLY_METHOD_NOT_ALLOWED,
    REPLY_CONFLICT,
    REPLY_CHANGED,
    REPLY_DEFINITION_CHANGED,
    REPLY_ALREADY_VOTED,
    REPLY_NO_VOTE,
    REPLY_NOT_A_GRANTER,
    REPLY_GRANT_NOT_ALLOWED,
    REPLY_GRANT_TOO_LARGE,
    REPLY_EDIT_NOT_ALLOWED,
    REPLY_EDIT_CHANGES_ROUTE,
    REPLY_REASON_REQUIRED,
    REPLY_TYPED_REQUIRED,
    REPLY_TYPED_WRONG,
    REPLY_UNSUPPORTED_MEDIA_TYPE,
    REPLY_LIMITED,
    REPLY_UNAVAILABLE,
};

#define REPLY_MAX_HEADERS 11

/* The headers of every response, with this content type; returns how many. */
size_t reply_headers(const char *content_type, struct http_header headers[REPLY_MAX_HEADERS]);
void reply_text(struct http_exchange *exchange, int status, const char *content_type,
                struct str body);
/* A file of the page, which a browser may keep but asks for each time: 304 without a body when it
 * has this one. */
struct reply_page {
    const char *content_type;
    struct str body, tag;
    struct str link; /* a header of this name; empty: none */
    bool is_gzip;
    bool is_https_only; /* the browser is to come by TLS alone from now on (RFC 6797) */
};
void reply_page(struct http_exchange *exchange, const struct reply_page *page);
void reply_json(struct http_exchange *exchange, int status, const struct buffer *body);
/* {"error": {"code", "message", "state"?}}; `state` may be NULL. */
void reply_error(struct http_exchange *exchange, enum reply_error error, const char *message,
                 const char *state);
/* The same with `path` in place of `state`; it may be NULL. */
void reply_error_at(struct http_exchange *exchange, enum reply_error error, const char *message,
                    const char *path);
/* The word for this error in an answer. */
int reply_error_status(enum reply_error error);
const char *reply_error_code(enum reply_error error);
/* As reply_error(), for a refusal of the gateway: `details` is the code that a client of the proxy
 * port would get; 0 leaves it out. */
void reply_refusal(struct http_exchange *exchange, enum reply_error error, const char *message,
                   int details);
/* A page for a browser that is on its way: `title` and `message` as text, with a way back. */
void reply_notice(struct http_exchange *exchange, int status, const char *title,
                  const char *message);
/* 302 to an address; `cookies` are Set-Cookie values, at most two, each may be NULL. */
void reply_redirect(struct http_exchange *exchange, struct str location,
                    const char *const cookies[2]);
/* JSON with one Set-Cookie value. */
void reply_json_with_cookie(struct http_exchange *exchange, int status, const struct buffer *body,
                            const char *cookie);
/* 405 with the methods that are allowed. */
void reply_method_not_allowed(struct http_exchange *exchange, const char *allow);
