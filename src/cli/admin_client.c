/* Requests by libcurl, and what the statuses of the admin endpoint mean for an exit code. */
#include "admin_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "taskgate/cli/cli.h"
#include "taskgate/config/secure_url.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/visible.h"
#include "taskgate/json/text.h"
#include "taskgate/upstream/curl_library.h"

#include "local_gateway.h"
#include "options.h"
#include "saved_token.h"

#define DEFAULT_URL "http://127.0.0.1:7469"
#define URL_VARIABLE "THOUGHTGATE_ADMIN_URL"
/* One's own, before the one that the gateway itself was started with. */
#define TOKEN_VARIABLE "TASKGATE_TOKEN"
#define OLD_TOKEN_VARIABLE "THOUGHTGATE_ADMIN_TOKEN"
/* Files in PEM, for https: whom to believe in place of the system's authorities; what to show. */
#define CA_VARIABLE "TASKGATE_CA"
#define CERT_VARIABLE "TASKGATE_CERT"
#define KEY_VARIABLE "TASKGATE_KEY"
#define CONNECT_TIMEOUT_S 5L
#define WHOLE_TIMEOUT_S 30L
/* The gateway sends a comment at least every 15 s: a stream that is silent for longer is dead. */
#define STREAM_SILENCE_S 45L
#define BODY_MAX_BYTES ((size_t)256 * 1024 * 1024)

struct admin_client {
    CURL *curl;                  /* of the request that is under way */
    long status;                 /* of the last answer */
    char *url;                   /* without a slash at its end */
    char *authorization;         /* header line, or NULL without a token */
    const char *variable;        /* that holds the token; NULL: it is one that was kept */
    struct local_gateway local;  /* its token is used when no other is known */
    const char *ca, *cert, *key; /* of the environment; NULL each when not given */
};

/* The answer that is being received. */
struct reception {
    struct admin_client *client;
    const struct admin_request *request;
    struct buffer *body;
};

static bool is_printable(const char *text)
{
    for (; *text; text++) {
        if (*text <= ' ' || *text == 0x7F)
            return false;
    }
    return true;
}

void admin_client_use_token(struct admin_client *client, const char *token)
{
    free(client->authorization);
    client->authorization = memory_format("Authorization: Bearer %s", token);
}

static void use_saved_token(struct admin_client *client)
{
    OWNED char *token = saved_token_read(client->url);
    client->variable = NULL;
    if (token && is_printable(token))
        admin_client_use_token(client, token);
}

/* Beside the gateway, as in its container, its own token does when nothing else is given. */
static void use_local_gateway(struct admin_client *client)
{
    if (client->authorization || !local_gateway_find(&client->local, NULL) || !client->local.token)
        return;
    free(client->url);
    client->url = memory_copy_text(client->local.url);
    client->variable = client->local.token_file;
    admin_client_use_token(client, client->local.token);
}

/* NULL when the variable is not set. */
static const char *name_file(const char *variable, bool *is_good)
{
    const char *file = getenv(variable);
    if (!file || !*file)
        return NULL;
    if (access(file, R_OK) != 0) {
        options_complain("%s: %s cannot be read: %s", variable, file, strerror(errno));
        *is_good = false;
    }
    return file;
}

static bool read_files(struct admin_client *client)
{
    bool is_good = true;
    client->ca = name_file(CA_VARIABLE, &is_good);
    client->cert = name_file(CERT_VARIABLE, &is_good);
    client->key = name_file(KEY_VARIABLE, &is_good);
    if (is_good && !client->cert != !client->key) {
        options_complain(CERT_VARIABLE " and " KEY_VARIABLE
                                       " belong together; set both or neither");
        is_good = false;
    }
    return is_good;
}

bool admin_client_is_insecure;

/* Over plain http anybody between here and there reads the token. */
static bool check_url(const char *url)
{
    struct error error = {""};
    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
        return options_complain(URL_VARIABLE " is not an http:// or https:// address: %s", url) ==
               CLI_DONE;
    if (strncmp(url, "https://", 8) == 0 || admin_client_is_insecure ||
        secure_url_check(str_from(url), &error))
        return true;
    return options_complain(URL_VARIABLE ": %s: %s, or --insecure", url, error.message) == CLI_DONE;
}

struct admin_client *admin_client_create(void)
{
    const char *url = getenv(URL_VARIABLE);
    const char *variable = TOKEN_VARIABLE, *token = getenv(variable);
    if (!token || !*token)
        token = getenv(variable = OLD_TOKEN_VARIABLE);
    bool is_default = !url || !*url;
    if (is_default)
        url = DEFAULT_URL;
    if (!check_url(url))
        return NULL;
    if (token && !is_printable(token)) {
        options_complain("%s holds white space or a control character", variable);
        return NULL;
    }
    struct error error = {""};
    if (!curl_library_load(&error)) {
        options_complain("%s", error.message);
        return NULL;
    }
    struct admin_client *client = memory_alloc(sizeof *client);
    if (!read_files(client)) {
        free(client);
        return NULL;
    }
    struct str trimmed = str_from(url);
    while (str_ends_with(trimmed, STR("/")))
        trimmed.length--;
    client->url = memory_copy_str(trimmed);
    client->variable = variable;
    if (token && *token)
        admin_client_use_token(client, token);
    else
        use_saved_token(client);
    if (is_default)
        use_local_gateway(client);
    return client;
}

const char *admin_client_url(const struct admin_client *client)
{
    return client->url;
}

void admin_client_destroy(struct admin_client *client)
{
    if (!client)
        return;
    local_gateway_finish(&client->local);
    free(client->url);
    free(client->authorization);
    free(client);
}

void admin_client_end(struct admin_client **client)
{
    admin_client_destroy(*client);
}

char *admin_client_encode(struct admin_client *client, const char *text)
{
    char *encoded = curl_easy_escape(NULL, text, 0);
    char *copy = memory_copy_text(encoded ? encoded : "");
    curl_free(encoded);
    return copy;
}

long admin_client_status(const struct admin_client *client)
{
    long status = client->status;
    if (client->curl)
        curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static size_t admin_client_receive(char *bytes, size_t size, size_t count, void *context)
{
    struct reception *reception = context;
    struct str piece = str_slice(bytes, size * count);
    /* An error's body is read whole, for its message, in a stream as well. */
    if (reception->request->received && admin_client_status(reception->client) == 200)
        return reception->request->received(reception->request->context, piece) ? piece.length : 0;
    if (reception->body->length + piece.length > BODY_MAX_BYTES)
        return 0;
    buffer_append(reception->body, piece);
    return piece.length;
}

static struct curl_slist *build_headers(const struct admin_client *client,
                                        const struct admin_request *request)
{
    struct curl_slist *headers = NULL;
    if (client->authorization)
        headers = curl_slist_append(headers, client->authorization);
    if (request->body.bytes)
        headers = curl_slist_append(headers, "Content-Type: application/json");
    if (request->last_event_id) {
        OWNED char *line = memory_format("Last-Event-ID: %s", request->last_event_id);
        headers = curl_slist_append(headers, line);
    }
    return curl_slist_append(headers, "Expect:");
}

/* A proxy must not see the token: none is used to this machine, and none over plain http. */
static void keep_from_proxies(CURL *curl, const char *url)
{
    if (secure_url_is_plain(str_from(url))) {
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
        return;
    }
    const char *others = getenv("no_proxy");
    if (!others)
        others = getenv("NO_PROXY");
    OWNED char *hosts = memory_format("localhost,127.0.0.1,::1,%s", others ? others : "");
    curl_easy_setopt(curl, CURLOPT_NOPROXY, hosts);
}

static void admin_client_set_tls(CURL *curl, const struct admin_client *client)
{
    curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (client->ca) {
        /* Besides a file, libcurl would go on with the system's folder. */
        curl_easy_setopt(curl, CURLOPT_CAPATH, (char *)NULL);
        curl_easy_setopt(curl, CURLOPT_CAINFO, client->ca);
    }
    if (client->cert) {
        curl_easy_setopt(curl, CURLOPT_SSLCERT, client->cert);
        curl_easy_setopt(curl, CURLOPT_SSLKEY, client->key);
    }
}

static void set_options(CURL *curl, const struct admin_request *request, const char *url,
                        struct curl_slist *headers, struct reception *reception)
{
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L); /* the token goes nowhere else */
    keep_from_proxies(curl, url);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_TIMEOUT_S);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, admin_client_receive);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, reception);
    if (request->body.bytes) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body.bytes);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.length);
    }
    if (request->received) {
        curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
        curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, STREAM_SILENCE_S);
    } else {
        curl_easy_setopt(curl, CURLOPT_TIMEOUT, WHOLE_TIMEOUT_S + (long)(request->wait_ms / 1000));
    }
}

/* The message of an error answer, made safe for a terminal; empty when it is not ours. */
static void append_message(struct buffer *out, const struct buffer *body)
{
    struct error ignored;
    OWNED_BUFFER(decoded);
    if (!json_check(buffer_str(body), &ignored))
        return;
    json_decode_string(json_member(json_member(buffer_str(body), "error"), "message"), &decoded);
    visible_append(out, buffer_str(&decoded));
}

static int exit_code_of(long status, bool is_ours)
{
    switch (status) {
    case 400:
        return CLI_USAGE;
    case 401:
    case 403:
        return CLI_REFUSED;
    case 404:
        return is_ours ? CLI_NOT_FOUND : CLI_REFUSED;
    case 409:
        return CLI_CONFLICT;
    default:
        return CLI_FAILURE;
    }
}

static void explain_token(const struct admin_client *client)
{
    if (client->authorization && client->variable)
        fprintf(stderr, "taskgate: the token in %s was refused\n", client->variable);
    else if (client->authorization)
        fputs("taskgate: your sign-in is over: taskgate login\n", stderr);
    else
        fputs("taskgate: set " TOKEN_VARIABLE " or " OLD_TOKEN_VARIABLE
              " to the operator's token\n",
              stderr);
}

static int explain_refusal(const struct admin_client *client, const struct buffer *body)
{
    long status = admin_client_status(client);
    OWNED_BUFFER(message);
    append_message(&message, body);
    bool is_ours = message.length > 0;
    if (is_ours)
        fprintf(stderr, "taskgate: %.*s\n", STR_ARGS(buffer_str(&message)));
    else
        fprintf(stderr, "taskgate: %s answered with HTTP %ld; is " URL_VARIABLE " right?\n",
                client->url, status);
    if (status == 401)
        explain_token(client);
    return exit_code_of(status, is_ours);
}

static int explain_result(const struct admin_client *client, const struct admin_request *request,
                          CURLcode result, struct buffer *body)
{
    struct error error = {""};
    long status = admin_client_status(client);
    /* A stream that the caller ends, or that breaks, after it was open is not a refusal. */
    if (request->received && status == 200)
        return CLI_DONE;
    if (result != CURLE_OK) {
        bool is_unknown = result == CURLE_PEER_FAILED_VERIFICATION && !client->ca;
        fprintf(stderr, "taskgate: the admin endpoint %s cannot be reached: %s%s\n", client->url,
                curl_easy_strerror(result),
                is_unknown ? "; " CA_VARIABLE " names a file with the authority to believe" : "");
        return CLI_REFUSED;
    }
    if (status < 200 || status > 299)
        return explain_refusal(client, body);
    if (json_check(buffer_str(body), &error))
        return CLI_DONE;
    fprintf(stderr, "taskgate: %s did not answer with JSON; is " URL_VARIABLE " right?\n",
            client->url);
    return CLI_REFUSED;
}

int admin_client_send(struct admin_client *client, const struct admin_request *request,
                      struct buffer *body)
{
    struct reception reception = {client, request, body};
    struct curl_slist *headers = build_headers(client, request);
    OWNED char *url = memory_format("%s%s", client->url, request->path);
    buffer_clear(body);
    /* One for each transfer: libcurl 7.88 touches freed memory after curl_easy_reset(). */
    client->curl = curl_easy_init();
    CURLcode result = CURLE_FAILED_INIT;
    if (client->curl) {
        set_options(client->curl, request, url, headers, &reception);
        admin_client_set_tls(client->curl, client);
        result = curl_easy_perform(client->curl);
    }
    client->status = client->curl ? admin_client_status(client) : 0;
    curl_easy_cleanup(client->curl);
    client->curl = NULL;
    int code = explain_result(client, request, result, body);
    curl_slist_free_all(headers);
    return code;
}
