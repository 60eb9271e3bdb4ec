/* OpenSSL's settings for a port. */
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/tls/bound.h"
#include "taskgate/tls/server.h"

struct tickets;

/* AES-256-CBC with HMAC-SHA-256, as RFC 5077 §4 recommends and OpenSSL does by itself. */

#define PERIOD_MS INT64_C(3600000)
#define NAME_BYTES 16
#define IV_BYTES 16

struct ticket_key {
    unsigned char name[NAME_BYTES];
    unsigned char cipher[32];
    unsigned char mac[32];
};

struct tickets {
    pthread_mutex_t lock;
    struct ticket_key present, former;
    bool has_former;
    int64_t since_ms; /* monotonic; of `present` */
};

static void server_make_key(struct ticket_key *key)
{
    if (RAND_priv_bytes((unsigned char *)key, sizeof *key) != 1)
        memory_exhausted(); /* nothing else can be missing */
}

static struct tickets *tickets_create(void)
{
    struct tickets *tickets = memory_alloc(sizeof *tickets);
    pthread_mutex_init(&tickets->lock, NULL);
    server_make_key(&tickets->present);
    tickets->since_ms = clock_monotonic_ms();
    return tickets;
}

/* NULL is allowed; after the last connection */
static void tickets_destroy(struct tickets *tickets)
{
    if (!tickets)
        return;
    pthread_mutex_destroy(&tickets->lock);
    OPENSSL_cleanse(tickets, sizeof *tickets);
    free(tickets);
}

/* Under the lock. */
static void server_rotate(struct tickets *tickets)
{
    int64_t age_ms = clock_monotonic_ms() - tickets->since_ms;
    if (age_ms < PERIOD_MS)
        return;
    tickets->has_former = age_ms < 2 * PERIOD_MS;
    tickets->former = tickets->present;
    server_make_key(&tickets->present);
    tickets->since_ms += age_ms;
}

/* The key to seal with. */
static struct ticket_key server_choose_key(struct tickets *tickets)
{
    pthread_mutex_lock(&tickets->lock);
    server_rotate(tickets);
    struct ticket_key key = tickets->present;
    pthread_mutex_unlock(&tickets->lock);
    return key;
}

/* As OpenSSL's callback returns it: 0 no such key, 1 the present one, 2 the one before. */
static int find_key(struct tickets *tickets, const unsigned char *name, struct ticket_key *key)
{
    int found = 0;
    pthread_mutex_lock(&tickets->lock);
    server_rotate(tickets);
    if (memcmp(name, tickets->present.name, NAME_BYTES) == 0) {
        *key = tickets->present;
        found = 1;
    } else if (tickets->has_former && memcmp(name, tickets->former.name, NAME_BYTES) == 0) {
        *key = tickets->former;
        found = 2;
    }
    pthread_mutex_unlock(&tickets->lock);
    return found;
}

static bool set_mac(EVP_MAC_CTX *mac, struct ticket_key *key)
{
    static char digest[] = "SHA256";
    const OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key->mac, sizeof key->mac),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };
    return EVP_MAC_CTX_set_params(mac, parameters) == 1;
}

static bool server_seal(struct tickets *tickets, unsigned char *name, unsigned char *iv,
                        EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac)
{
    struct ticket_key key = server_choose_key(tickets);
    memcpy(name, key.name, NAME_BYTES);
    bool is_good = RAND_bytes(iv, IV_BYTES) == 1 &&
                   EVP_EncryptInit_ex(cipher, EVP_aes_256_cbc(), NULL, key.cipher, iv) == 1 &&
                   set_mac(mac, &key);
    OPENSSL_cleanse(&key, sizeof key);
    return is_good;
}

static int open_ticket(struct tickets *tickets, const unsigned char *name, const unsigned char *iv,
                       EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac)
{
    struct ticket_key key;
    int found = find_key(tickets, name, &key);
    if (found != 0 && (EVP_DecryptInit_ex(cipher, EVP_aes_256_cbc(), NULL, key.cipher, iv) != 1 ||
                       !set_mac(mac, &key)))
        found = -1;
    OPENSSL_cleanse(&key, sizeof key);
    return found;
}

static int on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                     EVP_MAC_CTX *mac, int seals)
{
    struct tickets *tickets = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    if (seals)
        return server_seal(tickets, name, iv, cipher, mac) ? 1 : -1;
    int found = open_ticket(tickets, name, iv, cipher, mac);
    /* In TLS 1.3 a ticket is for one use (RFC 8446 appendix C.4): with it goes a new one. */
    return found == 1 && SSL_version(ssl) == TLS1_3_VERSION ? 2 : found;
}

/* Has the tickets of `context` sealed and opened with these keys. */
static void tickets_install(struct tickets *tickets, SSL_CTX *context)
{
    SSL_CTX_set_app_data(context, tickets);
    SSL_CTX_set_tlsext_ticket_key_evp_cb(context, on_ticket);
    SSL_CTX_set_timeout(context, PERIOD_MS / 1000);
}

/* Forward secrecy and authenticated encryption alone. Those of TLS 1.3 are all so. */
#define SUITES_1_2 "ECDHE+AESGCM:ECDHE+CHACHA20"
#define GROUPS "X25519:P-256:P-384"
/* 112 bits: RSA from 2,048 bits, no SHA-1 in certificates. */
#define SECURITY_LEVEL 2

struct tls_server {
    atomic_size_t references;
    SSL_CTX *context;
    pthread_mutex_t lock;    /* of what each listener sets in `context` */
    struct tickets *tickets; /* NULL where nothing is resumed */
    int64_t begins_s, expires_s;
    char all[DIGEST_HEX_BYTES];        /* of all that is seen from outside */
    char admittance[DIGEST_HEX_BYTES]; /* of what says who is let in */
};

/* ---- the settings ---- */

/* RFC 7301: a client that names protocols and not ours is told so, and has no connection. HTTP/2
 * is not offered (CVE-2023-44487). */
static int choose_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *chosen_length,
                           const unsigned char *offered, unsigned offered_length, void *context)
{
    static const unsigned char http[] = "http/1.1";
    for (unsigned at = 0; at < offered_length; at += 1U + offered[at]) {
        const unsigned char *name = offered + at + 1;
        if (offered[at] == sizeof http - 1 && memcmp(name, http, sizeof http - 1) == 0) {
            *chosen = name;
            *chosen_length = offered[at];
            return SSL_TLSEXT_ERR_OK;
        }
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static SSL_CTX *create_context(enum tls_version min_version)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    if (context == NULL)
        memory_exhausted();
    SSL_CTX_set_security_level(context, SECURITY_LEVEL);
    SSL_CTX_set_min_proto_version(context,
                                  min_version == TLS_VERSION_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS); /* an idle connection keeps none */
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_max_cert_list(context, TLS_BOUND_BYTES);
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    if (SSL_CTX_set_cipher_list(context, SUITES_1_2) != 1 ||
        SSL_CTX_set1_groups_list(context, GROUPS) != 1)
        memory_exhausted(); /* the names are OpenSSL's own */
    return context;
}

static int64_t to_seconds(const ASN1_TIME *time)
{
    struct tm parts;
    return ASN1_TIME_to_tm(time, &parts) == 1 ? (int64_t)timegm(&parts) : 0;
}

static bool use_certificates(struct tls_server *tls, STACK_OF(X509) * certificates,
                             struct error *error)
{
    X509 *first = sk_X509_value(certificates, 0);
    ERR_clear_error();
    if (SSL_CTX_use_certificate(tls->context, first) != 1)
        return error_set(error, "cannot be used: %s", pem_reason());
    for (int i = 1; i < sk_X509_num(certificates); i++) {
        if (SSL_CTX_add1_chain_cert(tls->context, sk_X509_value(certificates, i)) != 1)
            return error_set(error, "cannot be used: %s", pem_reason());
    }
    tls->begins_s = to_seconds(X509_get0_notBefore(first));
    tls->expires_s = to_seconds(X509_get0_notAfter(first));
    return true;
}

static bool use_key(struct tls_server *tls, const STACK_OF(X509) * certificates, struct str text,
                    struct error *error)
{
    EVP_PKEY *key = pem_read_key(text, error);
    bool is_good = key != NULL && pem_fits(certificates, key, error);
    if (is_good && SSL_CTX_use_PrivateKey(tls->context, key) != 1)
        is_good = error_set(error, "cannot be used: %s", pem_reason());
    EVP_PKEY_free(key);
    return is_good;
}

/* Each certificate of the file is trusted as it stands, an intermediate one, too. Nothing is
 * resumed: a client shows its certificate on every connection, so that one which has expired, or
 * whose authority is no longer trusted, ends with the connection. */
static bool use_authorities(struct tls_server *tls, const struct tls_server_settings *settings,
                            struct error *error)
{
    STACK_OF(X509) *authorities = pem_read_certificates(settings->client_ca, error);
    bool is_good = authorities != NULL;
    X509_STORE *store = SSL_CTX_get_cert_store(tls->context);
    for (int i = 0; is_good && i < sk_X509_num(authorities); i++) {
        X509 *authority = sk_X509_value(authorities, i);
        is_good = X509_STORE_add_cert(store, authority) == 1 &&
                  SSL_CTX_add_client_CA(tls->context, authority) == 1;
        if (!is_good)
            error_set(error, "cannot be used: %s", pem_reason());
    }
    pem_certificates_free(authorities);
    X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
    SSL_CTX_set_verify(tls->context,
                       SSL_VERIFY_PEER |
                           (settings->lets_strangers_in ? 0 : SSL_VERIFY_FAIL_IF_NO_PEER_CERT),
                       NULL);
    SSL_CTX_set_options(tls->context, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(tls->context, 0);
    return is_good;
}

static bool use_texts(struct tls_server *tls, const struct tls_server_settings *settings,
                      enum tls_part *part, struct error *error)
{
    *part = TLS_PART_CERT;
    STACK_OF(X509) *certificates = pem_read_certificates(settings->cert, error);
    bool is_good = certificates != NULL && use_certificates(tls, certificates, error);
    if (is_good) {
        *part = TLS_PART_KEY;
        is_good = use_key(tls, certificates, settings->key, error);
    }
    pem_certificates_free(certificates);
    if (is_good && settings->client_ca.bytes) {
        *part = TLS_PART_CA;
        return use_authorities(tls, settings, error);
    }
    tls->tickets = tickets_create();
    tickets_install(tls->tickets, tls->context);
    return is_good;
}

/* ---- its life ---- */

static void digest_settings(struct tls_server *tls, const struct tls_server_settings *settings)
{
    OWNED_BUFFER(text);
    buffer_append_format(&text, "%d %d %d %zu ", settings->min_version, settings->lets_strangers_in,
                         settings->client_ca.bytes != NULL, settings->client_ca.length);
    buffer_append(&text, settings->client_ca);
    digest_sha256_hex(buffer_str(&text), tls->admittance);
    buffer_append(&text, settings->cert); /* it fits one key alone */
    digest_sha256_hex(buffer_str(&text), tls->all);
}

struct tls_server *tls_server_create(const struct tls_server_settings *settings,
                                     enum tls_part *part, struct error *error)
{
    struct tls_server *tls = memory_alloc(sizeof *tls);
    atomic_init(&tls->references, 1);
    pthread_mutex_init(&tls->lock, NULL);
    tls->context = create_context(settings->min_version);
    if (!use_texts(tls, settings, part, error)) {
        tls_server_unref(tls);
        return NULL;
    }
    digest_settings(tls, settings);
    return tls;
}

struct tls_server *tls_server_ref(struct tls_server *tls)
{
    if (tls)
        atomic_fetch_add_explicit(&tls->references, 1, memory_order_relaxed);
    return tls;
}

void tls_server_unref(struct tls_server *tls)
{
    if (!tls)
        return;
    size_t before = atomic_fetch_sub_explicit(&tls->references, 1, memory_order_acq_rel);
    ASSERT_NUMBERS(before, >, 0);
    if (before != 1)
        return;
    SSL_CTX_free(tls->context);
    tickets_destroy(tls->tickets);
    pthread_mutex_destroy(&tls->lock);
    free(tls);
}

/* ---- looking at it ---- */

bool tls_server_equal(const struct tls_server *a, const struct tls_server *b)
{
    return a == b || (a && b && strcmp(a->all, b->all) == 0);
}

bool tls_server_admit_alike(const struct tls_server *a, const struct tls_server *b)
{
    return a == b || (a && b && strcmp(a->admittance, b->admittance) == 0);
}

int64_t tls_server_begins_s(const struct tls_server *tls)
{
    return tls->begins_s;
}

int64_t tls_server_expires_s(const struct tls_server *tls)
{
    return tls->expires_s;
}

struct ssl_ctx_st *tls_server_native(const struct tls_server *tls)
{
    return tls->context;
}

/* Each loop that listens asks for it, while others may have begun. */
void tls_server_watch(struct tls_server *tls,
                      void (*progress)(const struct ssl_st *ssl, int where, int result))
{
    pthread_mutex_lock(&tls->lock);
    if (SSL_CTX_get_info_callback(tls->context) == NULL)
        SSL_CTX_set_info_callback(tls->context, progress);
    pthread_mutex_unlock(&tls->lock);
}
