/* One libcurl handle for each request: a sign-in is a handful of them. */
#include "issuer_client.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/config/secure_url.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/upstream/curl_library.h"

#define WELL_KNOWN "/.well-known/openid-configuration"
#define TIMEOUT_S 10L
#define BODY_MAX_BYTES ((size_t)1024 * 1024)

void issuer_client_finish(struct issuer_client *client)
{
    if (client->client_secret)
        explicit_bzero(client->client_secret, strlen(client->client_secret));
    free(client->issuer);
    free(client->client_id);
    free(client->client_secret);
    free(client->scope);
    free(client->authorization);
    free(client->token);
    free(client->device_authorization);
}

/* ---- requests ---- */

static size_t issuer_client_receive(char *bytes, size_t size, size_t count, void *context)
{
    struct buffer *body = context;
    if (body->length + size * count > BODY_MAX_BYTES)
        return 0;
    buffer_append(body, str_slice(bytes, size * count));
    return size * count;
}

static long issuer_client_perform(CURL *curl, const char *url, struct buffer *body,
                                  struct error *error)
{
    struct error cause = {""};
    long status = 0;
    buffer_clear(body);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    if (secure_url_is_plain(str_from(url)))
        curl_easy_setopt(curl, CURLOPT_PROXY, ""); /* on this machine */
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, TIMEOUT_S);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, issuer_client_receive);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, body);
    CURLcode code = curl_easy_perform(curl);
    if (code != CURLE_OK) {
        error_set(error, "%s cannot be reached: %s", url, curl_easy_strerror(code));
        return 0;
    }
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (json_check(buffer_str(body), &cause) && json_type(buffer_str(body)) == JSON_OBJECT)
        return status;
    error_set(error, "%s answered with HTTP %ld and no JSON", url, status);
    return 0;
}

/* The issuer's word goes to a browser, to libcurl and to the terminal. */
static bool is_good_address(const char *what, const char *url, struct error *error)
{
    struct error cause = {""};
    return secure_url_check(str_from(url), &cause) ||
           error_set(error, "%s is not one that may be called: %s", what, cause.message);
}

static CURL *issuer_client_start(const char *url, struct error *error)
{
    /* Credentials go by https, or not further than this machine. */
    if (!is_good_address("the address", url, error))
        return NULL;
    if (!curl_library_load(error))
        return NULL;
    CURL *curl = curl_easy_init();
    if (!curl)
        error_set(error, "libcurl could not be started");
    return curl;
}

static void append_encoded(struct buffer *out, const char *value)
{
    for (const char *c = value; *c; c++) {
        bool is_plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                        (*c >= '0' && *c <= '9') || strchr("-._~", *c);
        buffer_append_format(out, is_plain ? "%c" : "%%%02X", (unsigned char)*c);
    }
}

void issuer_client_add(struct buffer *form, const char *name, const char *value)
{
    buffer_append_format(form, "%s%s=", form->length > 0 ? "&" : "", name);
    append_encoded(form, value);
}

/* RFC 6749 §2.3.1: both are encoded as in a form first. */
static void use_basic(CURL *curl, const struct issuer_client *client)
{
    struct buffer id, secret;
    buffer_init(&id);
    buffer_init(&secret);
    append_encoded(&id, client->client_id);
    append_encoded(&secret, client->client_secret);
    buffer_append_char(&id, '\0');
    buffer_append_char(&secret, '\0');
    curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
    curl_easy_setopt(curl, CURLOPT_USERNAME, id.bytes);
    curl_easy_setopt(curl, CURLOPT_PASSWORD, secret.bytes);
    explicit_bzero(secret.bytes, secret.length);
    buffer_finish(&secret);
    buffer_finish(&id);
}

long issuer_client_post(const struct issuer_client *client, const char *url,
                        const struct buffer *form, struct buffer *body, struct error *error)
{
    CURL *curl = issuer_client_start(url, error);
    struct buffer whole;
    if (!curl)
        return 0;
    buffer_init(&whole);
    buffer_append(&whole, buffer_str(form));
    issuer_client_add(&whole, "client_id", client->client_id);
    if (client->client_secret && client->secret_by_post)
        issuer_client_add(&whole, "client_secret", client->client_secret);
    else if (client->client_secret)
        use_basic(curl, client);
    struct curl_slist *headers = curl_slist_append(NULL, "Accept: application/json");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, whole.bytes);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)whole.length);
    long status = issuer_client_perform(curl, url, body, error);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    explicit_bzero(whole.bytes, whole.length);
    buffer_finish(&whole);
    return status;
}

/* ---- metadata ---- */

char *issuer_client_member(const struct buffer *body, const char *name)
{
    size_t length;
    struct str value = json_member(buffer_str(body), name);
    char *text = json_type(value) == JSON_STRING ? json_string_text(value, &length) : NULL;
    if (text && strlen(text) == length)
        return text;
    free(text);
    return NULL;
}

static bool offers_post_alone(const struct buffer *body)
{
    struct str methods = json_member(buffer_str(body), "token_endpoint_auth_methods_supported");
    struct str method;
    size_t position = 0;
    bool basic = false, post = false;
    while (json_type(methods) == JSON_ARRAY && json_next_element(methods, &position, &method)) {
        basic = basic || json_string_equals(method, STR("client_secret_basic"));
        post = post || json_string_equals(method, STR("client_secret_post"));
    }
    return post && !basic;
}

/* An endpoint that the metadata may leave out. */
static bool issuer_client_read_endpoint(const struct buffer *body, const char *name, char **url,
                                        struct error *error)
{
    *url = issuer_client_member(body, name);
    return !*url || is_good_address(name, *url, error);
}

static bool read_metadata(struct issuer_client *client, const struct buffer *body,
                          struct error *error)
{
    char *issuer = issuer_client_member(body, "issuer");
    bool is_same = issuer && strcmp(issuer, client->issuer) == 0;
    free(issuer);
    if (!is_same)
        return error_set(error, "the metadata of %s names another issuer", client->issuer);
    if (!issuer_client_read_endpoint(body, "authorization_endpoint", &client->authorization,
                                     error) ||
        !issuer_client_read_endpoint(body, "token_endpoint", &client->token, error) ||
        !issuer_client_read_endpoint(body, "device_authorization_endpoint",
                                     &client->device_authorization, error))
        return false;
    client->secret_by_post = offers_post_alone(body);
    client->names_itself =
        json_type(json_member(buffer_str(body),
                              "authorization_response_iss_parameter_supported")) == JSON_TRUE;
    return client->token ||
           error_set(error, "the metadata of %s has no token endpoint", client->issuer);
}

bool issuer_client_discover(struct issuer_client *client, struct error *error)
{
    struct buffer body;
    struct str issuer = str_from(client->issuer);
    while (str_ends_with(issuer, STR("/")))
        issuer.length--;
    char *url = memory_format("%.*s" WELL_KNOWN, STR_ARGS(issuer));
    CURL *curl = issuer_client_start(url, error);
    buffer_init(&body);
    long status = curl ? issuer_client_perform(curl, url, &body, error) : 0;
    bool done = status == 200 && read_metadata(client, &body, error);
    if (status != 0 && status != 200)
        error_set(error, "%s answered with HTTP %ld", url, status);
    if (curl)
        curl_easy_cleanup(curl);
    buffer_finish(&body);
    free(url);
    return done;
}
