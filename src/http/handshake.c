/*
 * The TLS handshake, from accept to the first byte of HTTP. h2o_accept() could do it, but it closes
 * silently when the handshake fails. So this file leads h2o's socket through the handshake. A
 * client that fails gets OpenSSL's alert, and the log and a counter learn of it.
 */
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "server_internal.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/tls/bound.h"

#define HANDSHAKE_MS 10000
/* The longest alert: a record's head, its two bytes, and what encryption adds. */
#define LAST_WORDS_BYTES 256

struct handshake {
    void (*done)(h2o_socket_t *socket); /* the socket speaks HTTP from here on */
    struct loop_timer deadline;
    bool is_late;
    struct tls_bound bound;
    bool is_too_long; /* the client's hello is */
    /* OpenSSL's output since h2o last sent something: at the end, an alert. */
    unsigned char words[LAST_WORDS_BYTES];
    size_t words_length; /* more than LAST_WORDS_BYTES is no alert, and is not kept */
};

static void handshake_on_deadline(void *context);
static void on_progress(const SSL *ssl, int where, int result);
static void on_done(h2o_socket_t *socket, const char *error);

void handshake_begin(struct connection *connection, void (*done)(h2o_socket_t *socket))
{
    SSL_CTX *context = tls_server_native(connection->tls);
    struct handshake *handshake = memory_alloc(sizeof(*handshake));
    connection->handshake = handshake;
    handshake->done = done;
    connection_peer(connection); /* while it is there to be asked */
    loop_timer_init(&handshake->deadline, connection->server->loop, handshake_on_deadline,
                    connection);
    loop_timer_start(&handshake->deadline, HANDSHAKE_MS);
    h2o_socket_ssl_handshake(connection->socket, context, NULL, on_done);
}

/* h2o makes its SSL with the first bytes and does not show it. Only a callback of OpenSSL leads to
 * it. */
void handshake_watch(struct tls_server *tls)
{
    if (tls != NULL)
        tls_server_watch(tls, on_progress);
}

void handshake_stop(struct connection *connection)
{
    if (connection->handshake == NULL)
        return;
    loop_timer_stop(&connection->handshake->deadline);
    free(connection->handshake);
    connection->handshake = NULL;
}

/* ---- what goes to and fro ---- */

/* Fails the read beyond the bound. h2o has set the sign of a wait, so it is cleared. */
static long look_at_words(BIO *bio, struct connection *connection, struct str words)
{
    struct handshake *handshake = connection->handshake;
    bool is_1_2 = SSL_version(connection->ssl) == TLS1_2_VERSION;
    if (tls_bound_take(&handshake->bound, words, is_1_2))
        return 1;
    handshake->is_too_long = true;
    BIO_clear_retry_flags(bio);
    return -1;
}

static long on_bytes(BIO *bio, int operation, const char *bytes, size_t length, int argument,
                     long number, int result, size_t *processed)
{
    struct connection *connection = connection_from(BIO_get_callback_arg(bio));
    struct handshake *handshake = connection->handshake;
    if (handshake == NULL)
        return result;
    if (operation == (BIO_CB_READ | BIO_CB_RETURN) && result > 0)
        return look_at_words(bio, connection, str_slice(bytes, *processed));
    if (operation != BIO_CB_WRITE)
        return result;
    if (handshake->words_length + length <= sizeof(handshake->words))
        memcpy(handshake->words + handshake->words_length, bytes, length);
    handshake->words_length += length;
    return result;
}

/* h2o's BIO has its socket. */
static void meet(SSL *ssl)
{
    BIO *bio = SSL_get_wbio(ssl);
    h2o_socket_t *socket = BIO_get_data(bio);
    struct connection *connection = connection_from(socket->on_close.data);
    connection->ssl = ssl;
    BIO_set_callback_arg(bio, (char *)connection);
    BIO_set_callback_ex(bio, on_bytes);
}

static void on_progress(const SSL *ssl, int where, int result)
{
    BIO *bio = SSL_get_wbio(ssl);
    if ((where & SSL_CB_HANDSHAKE_START) != 0 && BIO_get_callback_arg(bio) == NULL)
        meet((SSL *)ssl);
    const struct connection *connection = (void *)BIO_get_callback_arg(bio);
    /* OpenSSL waits for the client: h2o sends its output. */
    if (connection != NULL && connection->handshake != NULL && where == SSL_CB_ACCEPT_EXIT &&
        SSL_want_read(ssl))
        connection->handshake->words_length = 0;
}

/* Best effort: no write waits, and the kernel has room for so few bytes. */
static void handshake_send_words(const struct connection *connection, const void *bytes,
                                 size_t length)
{
    ssize_t ignored =
        send(h2o_socket_get_fd(connection->socket), bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)ignored;
}

static void send_reason(struct connection *connection, bool is_plain_http)
{
    static const char answer[] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n"
                                 "Content-Type: text/plain\r\nContent-Length: 35\r\n\r\n"
                                 "This port speaks TLS: use https://\n";
    const struct handshake *handshake = connection->handshake;
    if (is_plain_http)
        handshake_send_words(connection, answer, sizeof(answer) - 1);
    else if (handshake->words_length > 0 && handshake->words_length <= sizeof(handshake->words))
        handshake_send_words(connection, handshake->words, handshake->words_length);
    linger_prepare(connection);
}

/* ---- how it ended ---- */

struct failure {
    const char *outcome; /* of tls_handshakes_total */
    const char *reason;  /* for people */
};

static const struct {
    int reason; /* OpenSSL's */
    const char *outcome;
} outcomes[] = {
    {SSL_R_HTTP_REQUEST, "plain_http"},
    {SSL_R_HTTPS_PROXY_REQUEST, "plain_http"},
    {SSL_R_UNSUPPORTED_PROTOCOL, "version"},
    {SSL_R_VERSION_TOO_LOW, "version"},
    {SSL_R_WRONG_VERSION_NUMBER, "version"},
    {SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, "certificate"},
    {SSL_R_CERTIFICATE_VERIFY_FAILED, "certificate"},
};

/* From here on reasons are alerts of the client: it refuses what it was shown. */
static bool is_alert(int reason)
{
    return reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256;
}

static struct failure find_failure(const struct connection *connection, const char *error)
{
    unsigned long code = ERR_peek_error();
    int reason = ERR_GET_REASON(code);
    if (connection->handshake->is_late)
        return (struct failure){"timeout", "the client has not finished within 10 s"};
    if (connection->handshake->is_too_long)
        return (struct failure){"failed", "a message of the client is longer than 16 KiB"};
    if (error == h2o_socket_error_closed || error == h2o_socket_error_io)
        return (struct failure){"left", "the client has left"};
    struct failure failure = {is_alert(reason) ? "refused" : "failed", error};
    for (size_t i = 0; i < sizeof(outcomes) / sizeof(*outcomes); i++) {
        if (outcomes[i].reason == reason)
            failure.outcome = outcomes[i].outcome;
    }
    const char *text = ERR_reason_error_string(code);
    bool is_verified =
        connection->ssl == NULL || SSL_get_verify_result(connection->ssl) == X509_V_OK;
    if (text != NULL && is_verified)
        failure.reason = text;
    return failure;
}

static void handshake_count(const struct connection *connection, const char *outcome)
{
    const char *port = connection->server->options.port_name;
    metrics_count(METRIC_TLS_HANDSHAKES, str_from(port ? port : ""), str_from(outcome));
}

static void log_failure(struct connection *connection, const struct failure *failure)
{
    const char *port = connection->server->options.port_name;
    int64_t left_out;
    handshake_count(connection, failure->outcome);
    if (connection->ssl == NULL && !connection->handshake->is_late)
        return; /* the client only tried whether the port is open */
    if (!port_may_tell(connection->server->shared, &left_out))
        return;
    log_warn("A TLS handshake failed", LOG_TEXT("port", port ? port : ""),
             LOG_STR("client", connection_peer(connection)), LOG_TEXT("reason", failure->reason),
             LOG_NUMBER("others_since_the_last_line", left_out));
}

static void handshake_fail(struct connection *connection, const char *error)
{
    struct failure failure = find_failure(connection, error);
    log_failure(connection, &failure);
    send_reason(connection, strcmp(failure.outcome, "plain_http") == 0);
    ERR_clear_error(); /* or the next connection of this thread would meet it */
    h2o_socket_close(connection->socket);
}

static void handshake_on_deadline(void *context)
{
    struct connection *connection = connection_from(context);
    connection->handshake->is_late = true;
    handshake_fail(connection, "late");
}

static void on_done(h2o_socket_t *socket, const char *error)
{
    struct connection *connection = connection_from(socket->on_close.data);
    if (error != NULL) {
        handshake_fail(connection, error);
        return;
    }
    BIO_set_callback_ex(SSL_get_wbio(connection->ssl), NULL);
    handshake_count(connection, SSL_session_reused(connection->ssl) ? "resumed" : "full");
    void (*done)(h2o_socket_t * socket) = connection->handshake->done;
    handshake_stop(connection);
    done(socket);
}

/* ---- who the client is ---- */

static char *handshake_write_subject(const X509 *certificate)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *bytes = NULL;
    /* RFC 4514, but with letters beyond ASCII as they are. */
    unsigned long flags = XN_FLAG_RFC2253 & ~(unsigned long)ASN1_STRFLGS_ESC_MSB;
    if (bio == NULL || X509_NAME_print_ex(bio, X509_get_subject_name(certificate), 0, flags) < 0)
        memory_exhausted();
    long length = BIO_get_mem_data(bio, &bytes);
    char *subject = memory_copy_str(str_slice(bytes, (size_t)length));
    BIO_free(bio);
    return subject;
}

static const X509 *find_certificate(const struct connection *connection)
{
    /* The settings let other clients in now, so the authority of this certificate may no longer
     * count. */
    if (connection->ssl == NULL || connection->is_retired)
        return NULL;
    const X509 *certificate = SSL_get0_peer_certificate(connection->ssl);
    bool is_good = certificate != NULL && SSL_get_verify_result(connection->ssl) == X509_V_OK;
    return is_good ? certificate : NULL;
}

int64_t handshake_certificate_until_ms(const struct connection *connection)
{
    const X509 *certificate = find_certificate(connection);
    struct tm end;
    if (certificate == NULL || ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) != 1)
        return 0;
    return (int64_t)timegm(&end) * 1000;
}

const char *handshake_certificate(struct connection *connection)
{
    const X509 *certificate = find_certificate(connection);
    /* OpenSSL has looked at the clock in the handshake alone. */
    if (certificate == NULL || handshake_certificate_until_ms(connection) <= clock_now_ms())
        return NULL;
    if (connection->certificate == NULL)
        connection->certificate = handshake_write_subject(certificate);
    return connection->certificate;
}
