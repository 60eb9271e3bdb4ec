/* An HTTP server for one answer: blocking sockets, one connection after the other. */
#include "loopback.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"

#define WAIT_MS INT64_C(300000)
#define CONNECTION_S 5 /* a browser that has connected sends its request */
#define REQUEST_MAX_BYTES ((size_t)16 * 1024)

bool loopback_open(struct loopback *loopback, struct error *error)
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

void loopback_close(struct loopback *loopback)
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
    struct buffer response;
    buffer_init(&response);
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
    buffer_finish(&response);
}

static int loopback_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The decoded parameter, which the caller frees; "" when it is not there. */
static char *loopback_read_parameter(struct str query, const char *name)
{
    struct buffer value;
    buffer_init(&value);
    while (query.length > 0) {
        struct str parameter, key, raw;
        str_cut(query, '&', &parameter, &query);
        str_cut(parameter, '=', &key, &raw);
        if (!str_equal(key, str_from(name)))
            continue;
        buffer_clear(&value);
        for (size_t i = 0; i < raw.length; i++) {
            char c = raw.bytes[i];
            if (c == '+')
                c = ' ';
            if (c == '%' && i + 2 < raw.length && loopback_hex_digit(raw.bytes[i + 1]) >= 0 &&
                loopback_hex_digit(raw.bytes[i + 2]) >= 0) {
                c = (char)(loopback_hex_digit(raw.bytes[i + 1]) * 16 +
                           loopback_hex_digit(raw.bytes[i + 2]));
                i += 2;
            }
            buffer_append_char(&value, c);
        }
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
    char *issuer = loopback_read_parameter(query, "iss");
    bool fits = *issuer ? strcmp(issuer, wanted->issuer) == 0 : !wanted->must_name_issuer;
    free(issuer);
    return fits;
}

/* Whether the request is the one that is waited for; then the code, or NULL with `error`. */
static bool loopback_take_request(int connection, const struct loopback_wanted *wanted, char **code,
                                  struct error *error)
{
    struct buffer request;
    struct str query;
    buffer_init(&request);
    bool is_ours = loopback_read_request(connection, &request) &&
                   loopback_read_target(buffer_str(&request), &query);
    char *state = is_ours ? loopback_read_parameter(query, "state") : NULL;
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
    free(state);
    buffer_finish(&request);
    return is_ours;
}

char *loopback_wait(struct loopback *loopback, const struct loopback_wanted *wanted,
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
