/* Forms for a token endpoint. */
#include "taskgate/identity/oauth.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <string.h>

#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"

/* application/x-www-form-urlencoded, with %20 for a blank: right in a query as well. */
static void oauth_write_form(struct buffer *out, const struct oauth_parameter *parameters,
                             size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!parameters[i].value.bytes)
            continue;
        if (out->length)
            buffer_append_char(out, '&');
        buffer_append_url_encoded(out, str_from(parameters[i].name));
        buffer_append_char(out, '=');
        buffer_append_url_encoded(out, parameters[i].value);
    }
}

/* RFC 6749 §2.3.1: both halves are encoded as in a form before they are joined. */
static void write_basic(struct buffer *out, const struct oauth_client *client)
{
    OWNED_BUFFER(pair);
    buffer_append_url_encoded(&pair, str_from(client->id));
    buffer_append_char(&pair, ':');
    buffer_append_url_encoded(&pair, str_from(client->secret));
    buffer_append_text(out, "Basic ");
    buffer_reserve(out, pair.length * 2 + 4);
    int length = EVP_EncodeBlock((unsigned char *)out->bytes + out->length,
                                 (const unsigned char *)pair.bytes, (int)pair.length);
    out->length += (size_t)length;
}

struct fetch *oauth_post(struct fetcher *fetcher, const char *url,
                         const struct oauth_client *client,
                         const struct oauth_parameter *parameters, size_t count, struct loop *loop,
                         fetch_callback callback, void *context)
{
    OWNED_BUFFER(body);
    OWNED_BUFFER(basic);
    bool is_basic = client->secret && !client->secret_in_body;
    const struct oauth_parameter own[] = {
        {"client_id", is_basic ? STR_EMPTY : str_from(client->id)},
        {"client_secret", client->secret_in_body ? str_from(client->secret) : STR_EMPTY},
    };
    oauth_write_form(&body, parameters, count);
    oauth_write_form(&body, own, 2);
    if (is_basic)
        write_basic(&basic, client);
    const struct http_header headers[] = {
        {STR("Content-Type"), STR("application/x-www-form-urlencoded")},
        {STR("Authorization"), buffer_str(&basic)},
    };
    const struct fetch_request request = {.method = "POST",
                                          .url = url,
                                          .headers = headers,
                                          .header_count = is_basic ? 2 : 1,
                                          .body = buffer_str(&body)};
    struct fetch *fetch = fetch_start(fetcher, &request, loop, callback, context);
    return fetch;
}

void oauth_error_code(struct str body, char code[OAUTH_ERROR_BYTES])
{
    OWNED_BUFFER(text);
    code[0] = '\0';
    if (json_check(body, NULL) && json_decode_string(json_member(body, "error"), &text)) {
        size_t length = text.length < OAUTH_ERROR_BYTES - 1 ? text.length : OAUTH_ERROR_BYTES - 1;
        for (size_t i = 0; i < length; i++) {
            unsigned char c = (unsigned char)text.bytes[i];
            code[i] = isalnum(c) || c == '_' ? (char)c : '?';
        }
        code[length] = '\0';
    }
}
