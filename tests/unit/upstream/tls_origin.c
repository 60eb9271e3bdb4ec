#include <arpa/inet.h>
#include <check.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "origin.h"

struct tls_origin {
    int fd;
    uint16_t port;
    SSL_CTX *ssl_context;
    pthread_t thread;
    const char *answer;     /* to each request; NULL: none */
    const char *afterwards; /* said after the first answer; NULL: nothing */
    atomic_int answers;     /* sent, with the later bytes */
    int connections;        /* how many are served, one after the other */
    int received;
};

static SSL_CTX *self_signed(void)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME *name = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1,
                               0);
    X509_set_issuer_name(certificate, name);
    X509_sign(certificate, key, EVP_sha256());

    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    ck_assert_int_eq(SSL_CTX_use_certificate(context, certificate), 1);
    ck_assert_int_eq(SSL_CTX_use_PrivateKey(context, key), 1);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return context;
}

static void say(SSL *ssl, const char *text)
{
    SSL_write(ssl, text, (int)strlen(text));
}

static void serve_connection(struct tls_origin *origin)
{
    char bytes[1024];
    int count;
    int fd = accept(origin->fd, NULL, NULL);
    SSL *ssl = SSL_new(origin->ssl_context);
    SSL_set_fd(ssl, fd);
    if (SSL_accept(ssl) == 1) {
        while ((count = SSL_read(ssl, bytes, sizeof(bytes))) > 0) {
            origin->received += count;
            if (origin->answer == NULL)
                break;
            say(ssl, origin->answer);
            if (origin->afterwards != NULL && origin->answers == 0)
                say(ssl, origin->afterwards);
            origin->answers++;
        }
    }
    SSL_free(ssl);
    close(fd);
}

static void *serve(void *context)
{
    struct tls_origin *origin = context;
    for (int i = 0; i < origin->connections; i++)
        serve_connection(origin);
    return NULL;
}

struct tls_origin *tls_origin_start(void)
{
    return tls_origin_start_answering(NULL, NULL, 1);
}

struct tls_origin *tls_origin_start_answering(const char *answer, const char *afterwards,
                                              int connections)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    struct tls_origin *origin = calloc(1, sizeof(*origin));
    ck_assert_ptr_nonnull(origin);
    origin->answer = answer;
    origin->afterwards = afterwards;
    origin->connections = connections;
    origin->ssl_context = self_signed();
    origin->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(origin->fd, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(origin->fd, 1), 0);
    ck_assert_int_eq(getsockname(origin->fd, (struct sockaddr *)&address, &length), 0);
    origin->port = ntohs(address.sin_port);
    ck_assert_int_eq(pthread_create(&origin->thread, NULL, serve, origin), 0);
    return origin;
}

int tls_origin_answers(const struct tls_origin *origin)
{
    return origin->answers;
}

uint16_t tls_origin_port(const struct tls_origin *origin)
{
    return origin->port;
}

int tls_origin_stop(struct tls_origin *origin)
{
    pthread_join(origin->thread, NULL);
    int received = origin->received;
    SSL_CTX_free(origin->ssl_context);
    close(origin->fd);
    free(origin);
    return received;
}
