/* Challenges and metadata of a protected resource. */
#include "token_answer.h"

#include <string.h>

#include "taskgate/core/buffer.h"
#include "taskgate/http/guard.h"
#include "taskgate/json/members.h"

/* The address at which the client has found the gateway: the authority that it asked for. The
 * scheme is that of the audience, since a proxy in front may have ended TLS; on this machine it is
 * plain http. */
static void write_base(const struct call *call, struct buffer *out)
{
    bool is_local = http_guard_is_loopback_name(http_authority(call->exchange));
    bool is_https = str_starts_with(str_from(call->source->auth.audience), STR("https://"));
    bool is_tls = http_is_tls(call->exchange) || (is_https && !is_local);
    buffer_append_text(out, is_tls ? "https://" : "http://");
    buffer_append(out, http_authority(call->exchange));
}

/* ---- challenges ---- */

/* Inside a quoted-string; what would end it is left out. */
static void append_quoted(struct buffer *out, const char *name, struct str value)
{
    buffer_append_format(out, "%s%s=\"", str_equal(buffer_str(out), STR("Bearer")) ? " " : ", ",
                         name);
    for (size_t i = 0; i < value.length; i++) {
        unsigned char c = (unsigned char)value.bytes[i];
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\')
            buffer_append_char(out, (char)c);
    }
    buffer_append_char(out, '"');
}

static void write_challenge(const struct call *call, enum token_error error, struct buffer *out)
{
    const struct config_strings *scopes = &call->source->auth.scopes;
    struct buffer text = {0};
    struct str path = http_path(call->exchange);
    buffer_append_text(out, "Bearer");
    write_base(call, &text);
    buffer_append_text(&text, METADATA_PATH);
    if (!str_equal(path, STR("/")))
        buffer_append(&text, path);
    append_quoted(out, "resource_metadata", buffer_str(&text));
    buffer_clear(&text);
    for (size_t i = 0; i < scopes->count; i++)
        buffer_append_format(&text, "%s%s", i ? " " : "", scopes->items[i]);
    if (scopes->count > 0)
        append_quoted(out, "scope", buffer_str(&text));
    if (*token_error_code(error)) {
        append_quoted(out, "error", str_from(token_error_code(error)));
        append_quoted(out, "error_description", str_from(token_error_description(error)));
    }
    buffer_finish(&text);
}

void token_answer_refusal(struct call *call, enum token_error error)
{
    struct buffer body = {0}, challenge = {0};
    struct http_header headers[2] = {{STR("content-type"), STR("application/json")}};
    const char *code = token_error_code(error);
    buffer_append_char(&body, '{');
    json_add_text(&body, "error", *code ? code : "unauthorized");
    json_add_text(&body, "error_description", token_error_description(error));
    buffer_append_char(&body, '}');
    if (token_error_status(error) == 503) {
        headers[1] = (struct http_header){STR("retry-after"), STR("5")};
    } else {
        write_challenge(call, error, &challenge);
        headers[1] = (struct http_header){STR("www-authenticate"), buffer_str(&challenge)};
    }
    call_respond(call, token_error_status(error), headers, 2, buffer_str(&body));
    buffer_finish(&challenge);
    buffer_finish(&body);
}

/* ---- metadata ---- */

static void add_list(struct buffer *out, const char *key, char *const *items, size_t count)
{
    json_add_key(out, key);
    buffer_append_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        buffer_append_json_string(out, str_from(items[i]));
    }
    buffer_append_char(out, ']');
}

void token_answer_metadata(struct call *call)
{
    const struct config_auth *auth = &call->source->auth;
    struct str path = http_path(call->exchange), audience = str_from(auth->audience);
    struct http_header type = {STR("content-type"), STR("application/json")};
    struct buffer body = {0}, resource = {0};
    char *header[] = {"header"};
    if (str_starts_with(audience, STR("https://")) || str_starts_with(audience, STR("http://"))) {
        buffer_append(&resource, audience);
    } else {
        size_t behind = strlen(METADATA_PATH);
        write_base(call, &resource);
        buffer_append(&resource, str_slice(path.bytes + behind, path.length - behind));
    }
    buffer_append_char(&body, '{');
    json_add_key(&body, "resource");
    buffer_append_json_string(&body, buffer_str(&resource));
    add_list(&body, "authorization_servers", &auth->issuer, 1);
    if (auth->scopes.count > 0)
        add_list(&body, "scopes_supported", auth->scopes.items, auth->scopes.count);
    add_list(&body, "bearer_methods_supported", header, 1);
    buffer_append_char(&body, '}');
    call_respond(call, 200, &type, 1, buffer_str(&body));
    buffer_finish(&resource);
    buffer_finish(&body);
}
