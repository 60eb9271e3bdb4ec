/* taskgate login and logout: a token of the issuer of one's own, kept between commands. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "taskgate/cli/cli.h"
#include "taskgate/config/config.h"
#include "taskgate/config/secure_url.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/error.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/random.h"
#include "taskgate/core/visible.h"
#include "taskgate/json/text.h"
#include "taskgate/upstream/curl_library.h"

#include "admin_client.h"
#include "options.h"
#include "saved_token.h"
#include "tasks_show.h"
#include "terminal.h"

/* ---- the OpenID provider ---- */

struct issuer_client {
    char *issuer, *client_id;
    char *client_secret; /* or NULL */
    char *scope;         /* "openid profile email" */
    /* Of the metadata; NULL where it has none. */
    char *authorization, *token, *device_authorization;
    bool secret_by_post; /* it takes the secret in no other way */
    bool names_itself;   /* its answers carry `iss` (RFC 9207) */
};

#define WELL_KNOWN "/.well-known/openid-configuration"
#define TIMEOUT_S 10L
#define BODY_MAX_BYTES ((size_t)1024 * 1024)

static void issuer_client_finish(struct issuer_client *client)
{
    free(client->issuer);
    free(client->client_id);
    memory_forget_text(client->client_secret);
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

/* Appends "name=value", percent-encoded, behind a "&" where there is something already. */
static void issuer_client_add(struct buffer *form, const char *name, const char *value)
{
    buffer_append_format(form, "%s%s=", form->length > 0 ? "&" : "", name);
    buffer_append_url_encoded(form, str_from(value));
}

/* RFC 6749 §2.3.1: both are encoded as in a form first. */
static void use_basic(CURL *curl, const struct issuer_client *client)
{
    OWNED_BUFFER(id);
    OWNED_BUFFER(secret);
    buffer_append_url_encoded(&id, str_from(client->client_id));
    buffer_append_url_encoded(&secret, str_from(client->client_secret));
    buffer_append_char(&id, '\0');
    buffer_append_char(&secret, '\0');
    curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
    curl_easy_setopt(curl, CURLOPT_USERNAME, id.bytes);
    curl_easy_setopt(curl, CURLOPT_PASSWORD, secret.bytes);
    explicit_bzero(secret.bytes, secret.length);
}

/* POSTs the form with the client's id (and secret). The status of the answer, its JSON in `body`;
 * 0 with `error` when there is none. */
static long issuer_client_post(const struct issuer_client *client, const char *url,
                               const struct buffer *form, struct buffer *body, struct error *error)
{
    CURL *curl = issuer_client_start(url, error);
    OWNED_BUFFER(whole);
    if (!curl)
        return 0;
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
    return status;
}

/* ---- metadata ---- */

/* A text member of the JSON, which the caller frees; NULL when it is none. */
static char *issuer_client_member(const struct buffer *body, const char *name)
{
    return json_plain_text(json_member(buffer_str(body), name));
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

/* Fetches the metadata, and refuses that of another issuer. */
static bool issuer_client_discover(struct issuer_client *client, struct error *error)
{
    ASSERT(client->issuer); /* read_config() and ask_endpoint() fail without one */
    OWNED_BUFFER(body);
    struct str issuer = str_from(client->issuer);
    while (str_ends_with(issuer, STR("/")))
        issuer.length--;
    OWNED char *url = memory_format("%.*s" WELL_KNOWN, STR_ARGS(issuer));
    CURL *curl = issuer_client_start(url, error);
    long status = curl ? issuer_client_perform(curl, url, &body, error) : 0;
    bool done = status == 200 && read_metadata(client, &body, error);
    if (status != 0 && status != 200)
        error_set(error, "%s answered with HTTP %ld", url, status);
    if (curl)
        curl_easy_cleanup(curl);
    return done;
}

/* ---- the port that the browser is sent back to ---- */

/* A port of this machine that a browser is sent back to, once. An HTTP server for one answer:
 * blocking sockets, one connection after the other. */

struct loopback {
    int listener;
    char address[64]; /* "http://127.0.0.1:PORT/callback" */
};

struct loopback_wanted {
    const char *state, *issuer;
    bool must_name_issuer;
};

#define WAIT_MS INT64_C(300000)
#define CONNECTION_S 5 /* a browser that has connected sends its request */
#define REQUEST_MAX_BYTES ((size_t)16 * 1024)

static bool loopback_open(struct loopback *loopback, struct error *error)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    loopback->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (loopback->listener < 0 ||
        bind(loopback->listener, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(loopback->listener, 8) != 0 ||
        getsockname(loopback->listener, (struct sockaddr *)&address, &length) != 0) {
        error_set(error, "no port of this machine can be listened on: %s", strerror(errno));
        if (loopback->listener >= 0)
            close(loopback->listener);
        return false;
    }
    snprintf(loopback->address, sizeof loopback->address, "http://127.0.0.1:%u/callback",
             (unsigned)ntohs(address.sin_port));
    return true;
}

static void loopback_close(struct loopback *loopback)
{
    close(loopback->listener);
}

/* ---- one request ---- */

static bool loopback_read_request(int connection, struct buffer *request)
{
    char bytes[4096];
    ssize_t count;
    while (request->length < REQUEST_MAX_BYTES &&
           (count = recv(connection, bytes, sizeof bytes, 0)) > 0) {
        buffer_append(request, str_slice(bytes, (size_t)count));
        if (memmem(request->bytes, request->length, "\r\n\r\n", 4))
            return true;
    }
    return false;
}

static void send_page(int connection, const char *status, const char *text)
{
    OWNED_BUFFER(response);
    buffer_append_format(&response,
                         "HTTP/1.1 %s\r\nContent-Type: text/html; charset=utf-8\r\n"
                         "Content-Security-Policy: default-src 'none'\r\n"
                         "Referrer-Policy: no-referrer\r\nCache-Control: no-store\r\n"
                         "Connection: close\r\nContent-Length: %zu\r\n\r\n%s",
                         status, strlen(text), text);
    for (size_t sent = 0; sent < response.length;) {
        ssize_t count =
            send(connection, response.bytes + sent, response.length - sent, MSG_NOSIGNAL);
        if (count <= 0)
            break;
        sent += (size_t)count;
    }
}

/* The decoded parameter, which the caller frees; "" when it is not there. */
static char *loopback_read_parameter(struct str query, const char *name)
{
    OWNED_BUFFER(value);
    while (query.length > 0) {
        struct str parameter, key, raw;
        str_cut(query, '&', &parameter, &query);
        str_cut(parameter, '=', &key, &raw);
        if (!str_equal(key, str_from(name)))
            continue;
        buffer_clear(&value);
        buffer_append_url_decoded(&value, raw);
    }
    buffer_append_char(&value, '\0');
    return buffer_take(&value, NULL);
}

/* The query of "GET /callback?… HTTP/1.1"; false for anything else. */
static bool loopback_read_target(struct str request, struct str *query)
{
    struct str line, method, target, path, version;
    str_cut(request, '\r', &line, &request);
    return str_cut(line, ' ', &method, &line) && str_equal(method, STR("GET")) &&
           str_cut(line, ' ', &target, &version) && str_cut(target, '?', &path, query) &&
           str_equal(path, STR("/callback"));
}

static bool has_issuer(struct str query, const struct loopback_wanted *wanted)
{
    OWNED char *issuer = loopback_read_parameter(query, "iss");
    return *issuer ? strcmp(issuer, wanted->issuer) == 0 : !wanted->must_name_issuer;
}

/* Whether the request is the one that is waited for; then the code, or NULL with `error`. */
static bool loopback_take_request(int connection, const struct loopback_wanted *wanted, char **code,
                                  struct error *error)
{
    OWNED_BUFFER(request);
    struct str query;
    bool is_ours = loopback_read_request(connection, &request) &&
                   loopback_read_target(buffer_str(&request), &query);
    OWNED char *state = is_ours ? loopback_read_parameter(query, "state") : NULL;
    is_ours = is_ours && str_equal_constant_time(str_from(state), str_from(wanted->state));
    *code = is_ours ? loopback_read_parameter(query, "code") : NULL;
    if (!is_ours) {
        send_page(connection, "404 Not Found", "There is nothing here.\n");
    } else if (!**code || !has_issuer(query, wanted)) {
        error_set(error, **code ? "the answer comes from another issuer"
                                : "the issuer has refused the sign-in");
        send_page(connection, "400 Bad Request", "<p>You are not signed in. See the terminal.\n");
        free(*code);
        *code = NULL;
    } else {
        send_page(connection, "200 OK",
                  "<p>You may close this window and return to the terminal.\n");
    }
    return is_ours;
}

/* Waits up to five minutes for the answer with this state, and answers the browser. Other requests
 * are answered 404 and passed over. The code, which the caller frees; NULL with `error`. */
static char *loopback_wait(struct loopback *loopback, const struct loopback_wanted *wanted,
                           struct error *error)
{
    const struct timeval patience = {.tv_sec = CONNECTION_S};
    int64_t until_ms = clock_monotonic_ms() + WAIT_MS, left_ms;
    bool is_done = false;
    char *code = NULL;
    while (!is_done && (left_ms = until_ms - clock_monotonic_ms()) > 0) {
        struct pollfd waiting = {.fd = loopback->listener, .events = POLLIN};
        if (poll(&waiting, 1, (int)left_ms) <= 0)
            continue;
        int connection = accept4(loopback->listener, NULL, NULL, SOCK_CLOEXEC);
        if (connection < 0)
            continue;
        setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        is_done = loopback_take_request(connection, wanted, &code, error);
        close(connection);
    }
    if (!is_done)
        error_set(error, "nobody has signed in within five minutes");
    return code;
}

/* ---- with a browser ---- */

/* The loopback redirect of RFC 8252, with PKCE, state and `iss`. The token is the gateway's to
 * verify. */

#define SECRET_BYTES 65

static char *login_browser_write_address(const struct issuer_client *client, const char *redirect,
                                         const char *state, const char *verifier)
{
    char challenge[DIGEST_BASE64URL_BYTES];
    OWNED_BUFFER(query);
    digest_sha256_base64url(str_from(verifier), challenge);
    issuer_client_add(&query, "response_type", "code");
    issuer_client_add(&query, "client_id", client->client_id);
    issuer_client_add(&query, "redirect_uri", redirect);
    issuer_client_add(&query, "scope", client->scope);
    issuer_client_add(&query, "state", state);
    issuer_client_add(&query, "code_challenge", challenge);
    issuer_client_add(&query, "code_challenge_method", "S256");
    return memory_format("%s%c%.*s", client->authorization,
                         strchr(client->authorization, '?') ? '&' : '?',
                         STR_ARGS(buffer_str(&query)));
}

/* The tokens and secrets of the gateway's are no business of a browser. */
static void forget_variables(void)
{
    static const char *const ours[] = {"TASKGATE_", "THOUGHTGATE_"};
    for (char **entry = environ; *entry;) {
        size_t i = 0;
        while (i < sizeof ours / sizeof *ours && strncmp(*entry, ours[i], strlen(ours[i])) != 0)
            i++;
        OWNED char *name = memory_copy_str(str_slice(*entry, strcspn(*entry, "=")));
        bool is_gone = i < sizeof ours / sizeof *ours && unsetenv(name) == 0;
        entry = is_gone ? environ : entry + 1;
    }
}

/* $BROWSER, else what the desktop has; without either the address that is printed must do. */
static void open_browser(const char *address)
{
    const char *browser = getenv("BROWSER");
    bool has_desktop = getenv("DISPLAY") || getenv("WAYLAND_DISPLAY");
    if (!browser || !*browser)
        browser = has_desktop ? "xdg-open" : NULL;
    pid_t child = browser ? fork() : -1;
    if (child == 0) {
        if (fork() != 0) /* its own parent waits for nothing */
            _exit(0);
        dup2(STDERR_FILENO, STDOUT_FILENO);
        forget_variables();
        execlp(browser, browser, address, (char *)NULL);
        _exit(127);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
}

static char *login_browser_redeem(const struct issuer_client *client, const char *code,
                                  const char *redirect, const char *verifier, struct error *error)
{
    OWNED_BUFFER(form);
    OWNED_BUFFER(body);
    char *token = NULL;
    issuer_client_add(&form, "grant_type", "authorization_code");
    issuer_client_add(&form, "code", code);
    issuer_client_add(&form, "redirect_uri", redirect);
    issuer_client_add(&form, "code_verifier", verifier);
    long status = issuer_client_post(client, client->token, &form, &body, error);
    if (status == 200)
        token = issuer_client_member(&body, "id_token");
    if (status == 200 && !token)
        error_set(error, "the issuer has given no ID token; is openid among the scopes?");
    else if (status != 0 && status != 200)
        error_set(error, "the issuer has refused the code with HTTP %ld", status);
    if (body.length > 0)
        explicit_bzero(body.bytes, body.length);
    return token;
}

/* Has a browser of this machine sign in and come back to a port of it (RFC 8252 §7.3). The same. */
static char *login_by_browser(const struct issuer_client *client, struct error *error)
{
    char state[SECRET_BYTES], verifier[SECRET_BYTES], *token = NULL;
    struct loopback loopback;
    if (!client->authorization) {
        error_set(error, "%s has no authorization endpoint", client->issuer);
        return NULL;
    }
    if (!loopback_open(&loopback, error))
        return NULL;
    random_hex(state, SECRET_BYTES - 1);
    random_hex(verifier, SECRET_BYTES - 1);
    OWNED char *address = login_browser_write_address(client, loopback.address, state, verifier);
    fprintf(stderr, "Open %s\n", address);
    open_browser(address);
    const struct loopback_wanted wanted = {state, client->issuer, client->names_itself};
    OWNED char *code = loopback_wait(&loopback, &wanted, error);
    if (code)
        token = login_browser_redeem(client, code, loopback.address, verifier, error);
    loopback_close(&loopback);
    return token;
}

/* ---- with a code ---- */

/* RFC 8628: asks again and again, as fast as the issuer allows. */

#define INTERVAL_S 5   /* when the issuer names none */
#define SLOWER_S 5     /* added at each "slow_down" */
#define LONGEST_S 1800 /* the limit, even if the issuer allows more */
#define GRANT "urn:ietf:params:oauth:grant-type:device_code"

struct device {
    char *code;
    int64_t interval_s, until_ms;
};

static int64_t login_device_read_seconds(const struct buffer *body, const char *name,
                                         int64_t otherwise)
{
    struct str value = json_member(buffer_str(body), name);
    uint64_t seconds;
    bool is_number = json_type(value) == JSON_NUMBER && str_to_u64(value, &seconds);
    return is_number && seconds > 0 && seconds <= LONGEST_S ? (int64_t)seconds : otherwise;
}

/* To stderr, so that stdout stays free for scripts. */
static bool login_device_show(const struct buffer *body, struct error *error)
{
    OWNED char *address = issuer_client_member(body, "verification_uri");
    OWNED char *complete = issuer_client_member(body, "verification_uri_complete");
    OWNED char *code = issuer_client_member(body, "user_code");
    bool can_be_shown = address && code;
    if (can_be_shown) {
        OWNED_BUFFER(text);
        buffer_append_text(&text, "Open ");
        visible_append(&text, str_from(complete ? complete : address));
        buffer_append_text(&text, " in any browser, and enter the code ");
        visible_append(&text, str_from(code));
        fprintf(stderr, "%.*s\n", STR_ARGS(buffer_str(&text)));
    } else {
        error_set(error, "the issuer has given no code to enter");
    }
    return can_be_shown;
}

static bool login_device_begin(const struct issuer_client *client, struct device *device,
                               struct error *error)
{
    OWNED_BUFFER(form);
    OWNED_BUFFER(body);
    issuer_client_add(&form, "scope", client->scope);
    long status = issuer_client_post(client, client->device_authorization, &form, &body, error);
    device->code = status == 200 ? issuer_client_member(&body, "device_code") : NULL;
    device->interval_s = login_device_read_seconds(&body, "interval", INTERVAL_S);
    device->until_ms =
        clock_monotonic_ms() + 1000 * login_device_read_seconds(&body, "expires_in", LONGEST_S);
    return status != 0 &&
           (device->code ? login_device_show(&body, error)
                         : error_set(error, "the issuer refused with HTTP %ld", status));
}

static void wait_seconds(int64_t seconds)
{
    struct timespec left = {.tv_sec = seconds};
    while (nanosleep(&left, &left) != 0) {
    }
}

/* Whether it is to be asked again after this answer. */
static bool goes_on(struct device *device, const struct buffer *body, struct error *error)
{
    OWNED char *code = issuer_client_member(body, "error");
    bool is_slower = code && strcmp(code, "slow_down") == 0;
    bool again = is_slower || (code && strcmp(code, "authorization_pending") == 0);
    if (is_slower)
        device->interval_s += SLOWER_S;
    if (!again && code && strcmp(code, "access_denied") == 0)
        error_set(error, "the sign-in was refused");
    else if (!again && code && strcmp(code, "expired_token") == 0)
        error_set(error, "nobody has entered the code in time");
    else if (!again)
        error_set(error, "the issuer has refused the sign-in");
    return again;
}

static char *poll_once(const struct issuer_client *client, struct device *device, bool *again,
                       struct error *error)
{
    OWNED_BUFFER(form);
    OWNED_BUFFER(body);
    char *token = NULL;
    issuer_client_add(&form, "grant_type", GRANT);
    issuer_client_add(&form, "device_code", device->code);
    long status = issuer_client_post(client, client->token, &form, &body, error);
    if (status == 200)
        token = issuer_client_member(&body, "id_token");
    if (status == 200 && !token)
        error_set(error, "the issuer has given no ID token; is openid among the scopes?");
    *again = status != 0 && status != 200 && goes_on(device, &body, error);
    explicit_bzero(body.bytes, body.length);
    return token;
}

/* Has the person sign in elsewhere with a code that is printed (RFC 8628). Returns the ID token,
 * which the caller frees; NULL with `error`. */
static char *login_by_device(const struct issuer_client *client, struct error *error)
{
    struct device device = {0};
    char *token = NULL;
    bool again = login_device_begin(client, &device, error);
    while (again && !token) {
        if (clock_monotonic_ms() > device.until_ms) {
            error_set(error, "nobody has entered the code in time");
            break;
        }
        wait_seconds(device.interval_s);
        token = poll_once(client, &device, &again, error);
    }
    free(device.code);
    return token;
}

/* ---- which issuer ---- */

static void append_scope(struct buffer *scope, struct str name)
{
    if (scope->length > 0)
        buffer_append_char(scope, ' ');
    buffer_append(scope, name);
}

/* From a configuration that is here: false when it has no sign-in, or is none. */
static int read_config(const char *path, struct issuer_client *issuer)
{
    struct config_problems problems = {0};
    struct config *config = config_load(path, NULL, &problems);
    OWNED_BUFFER(text);
    OWNED_BUFFER(scope);
    int code = CLI_DONE;
    if (!config) {
        config_problems_write(&problems, &text);
        fprintf(stderr, "%.*s", STR_ARGS(buffer_str(&text)));
        code = CLI_USAGE;
    } else if (!config->oidc.is_on) {
        code = options_complain("%s has no admin.oidc to sign in with", config->path);
    } else {
        issuer->issuer = memory_copy_text(config->oidc.issuer);
        issuer->client_id = memory_copy_text(config->oidc.client_id);
        issuer->client_secret = memory_copy_text(config->oidc.client_secret);
        for (size_t i = 0; i < config->oidc.scopes.count; i++)
            append_scope(&scope, str_from(config->oidc.scopes.items[i]));
        issuer->scope = buffer_take(&scope, NULL);
    }
    config_problems_finish(&problems);
    config_unref(config);
    return code;
}

static int ask_endpoint(struct admin_client *client, struct issuer_client *issuer)
{
    OWNED_BUFFER(body);
    OWNED_BUFFER(scope);
    struct str element;
    size_t position = 0;
    const struct admin_request request = {.method = "GET", .path = "/api/v1/sign-in"};
    int code = admin_client_send(client, &request, &body);
    if (code == CLI_DONE) {
        struct str scopes = json_member(buffer_str(&body), "scopes");
        issuer->issuer = issuer_client_member(&body, "issuer");
        issuer->client_id = issuer_client_member(&body, "clientId");
        while (json_type(scopes) == JSON_ARRAY && json_next_element(scopes, &position, &element)) {
            OWNED char *name = json_string_text(element, NULL);
            append_scope(&scope, str_from(name));
        }
        issuer->scope = buffer_take(&scope, NULL);
    }
    if (code == CLI_DONE && (!issuer->issuer || !issuer->client_id)) {
        fprintf(stderr, "taskgate: nobody signs in at %s: it has no admin.oidc\n",
                admin_client_url(client));
        code = CLI_REFUSED;
    }
    return code;
}

/* ---- signing in ---- */

static char *get_token(struct issuer_client *issuer, bool device, struct error *error)
{
    if (!issuer_client_discover(issuer, error))
        return NULL;
    if (device && issuer->device_authorization)
        return login_by_device(issuer, error);
    if (device)
        fputs("taskgate: the issuer knows no sign-in by code, so a browser is needed\n", stderr);
    return login_by_browser(issuer, error);
}

/* Only what the gateway takes is kept; it says whose it is. */
static int keep_token(struct admin_client *client, const char *token)
{
    OWNED_BUFFER(body);
    OWNED_BUFFER(text);
    struct error error = {""};
    const struct admin_request request = {.method = "GET", .path = "/api/v1/whoami"};
    admin_client_use_token(client, token);
    int code = admin_client_send(client, &request, &body);
    if (code == CLI_DONE && !saved_token_write(admin_client_url(client), token, &error)) {
        options_complain("%s", error.message);
        code = CLI_FAILURE;
    }
    if (code == CLI_DONE) {
        buffer_append_text(&text, "Signed in as ");
        tasks_append_member(&text, buffer_str(&body), "person");
        buffer_append_char(&text, '\n');
        code = terminal_write(&text) ? CLI_DONE : CLI_FAILURE;
    }
    return code;
}

static int sign_in(struct admin_client *client, const char *config, bool device)
{
    struct issuer_client issuer = {0};
    struct error error = {""};
    const char *file = config ? config : getenv("THOUGHTGATE_CONFIG");
    int code = file && *file ? read_config(file, &issuer) : ask_endpoint(client, &issuer);
    OWNED char *token = code == CLI_DONE ? get_token(&issuer, device, &error) : NULL;
    if (token) {
        code = keep_token(client, token);
        explicit_bzero(token, strlen(token));
    } else if (code == CLI_DONE) {
        options_complain("%s", error.message);
        code = CLI_REFUSED;
    }
    issuer_client_finish(&issuer);
    return code;
}

int cli_login(int argc, char **argv)
{
    const char *config = NULL;
    bool device = false;
    const struct option options[] = {
        {"device", NULL, "sign in elsewhere, with a code that is printed", .flag = &device},
        {"config", "FILE", "the gateway's configuration, when it is here", &config},
    };
    const struct command command = {
        .usage = "taskgate login [--device] [--config FILE]",
        .synopsis = "Signs in at the identity provider of a running gateway, in a browser, and\n"
                    "keeps the token for the other commands until it is over.",
        COMMAND_OPTIONS(options),
        .insecure = &admin_client_is_insecure,
    };
    enum options_outcome outcome = options_read(&command, argc, argv, NULL);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    OWNED_ADMIN_CLIENT(client);
    return client ? sign_in(client, config, device) : CLI_USAGE;
}

int cli_logout(int argc, char **argv)
{
    const struct command command = {
        .usage = "taskgate logout",
        .synopsis = "Forgets the token that taskgate login has kept for this gateway.",
        .insecure = &admin_client_is_insecure,
    };
    enum options_outcome outcome = options_read(&command, argc, argv, NULL);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    OWNED_ADMIN_CLIENT(client);
    if (!client)
        return CLI_USAGE;
    if (!saved_token_forget(admin_client_url(client)))
        fputs("taskgate: you were not signed in\n", stderr);
    return CLI_DONE;
}
