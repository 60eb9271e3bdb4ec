/* AES-256-CBC with HMAC-SHA-256, as RFC 5077 §4 recommends and OpenSSL does by itself. */
#include "tickets.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"

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

static void make_key(struct ticket_key *key)
{
    if (RAND_priv_bytes((unsigned char *)key, sizeof *key) != 1)
        memory_exhausted(); /* nothing else can be missing */
}

struct tickets *tickets_create(void)
{
    struct tickets *tickets = memory_alloc(sizeof *tickets);
    pthread_mutex_init(&tickets->lock, NULL);
    make_key(&tickets->present);
    tickets->since_ms = clock_monotonic_ms();
    return tickets;
}

void tickets_destroy(struct tickets *tickets)
{
    if (!tickets)
        return;
    pthread_mutex_destroy(&tickets->lock);
    OPENSSL_cleanse(tickets, sizeof *tickets);
    free(tickets);
}

/* Under the lock. */
static void rotate(struct tickets *tickets)
{
    int64_t age_ms = clock_monotonic_ms() - tickets->since_ms;
    if (age_ms < PERIOD_MS)
        return;
    tickets->has_former = age_ms < 2 * PERIOD_MS;
    tickets->former = tickets->present;
    make_key(&tickets->present);
    tickets->since_ms += age_ms;
}

/* The key to seal with. */
static struct ticket_key choose_key(struct tickets *tickets)
{
    pthread_mutex_lock(&tickets->lock);
    rotate(tickets);
    struct ticket_key key = tickets->present;
    pthread_mutex_unlock(&tickets->lock);
    return key;
}

/* As OpenSSL's callback returns it: 0 no such key, 1 the present one, 2 the one before. */
static int find_key(struct tickets *tickets, const unsigned char *name, struct ticket_key *key)
{
    int found = 0;
    pthread_mutex_lock(&tickets->lock);
    rotate(tickets);
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

static bool seal(struct tickets *tickets, unsigned char *name, unsigned char *iv,
                 EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac)
{
    struct ticket_key key = choose_key(tickets);
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
        return seal(tickets, name, iv, cipher, mac) ? 1 : -1;
    int found = open_ticket(tickets, name, iv, cipher, mac);
    /* In TLS 1.3 a ticket is for one use (RFC 8446 appendix C.4): with it goes a new one. */
    return found == 1 && SSL_version(ssl) == TLS1_3_VERSION ? 2 : found;
}

void tickets_install(struct tickets *tickets, SSL_CTX *context)
{
    SSL_CTX_set_app_data(context, tickets);
    SSL_CTX_set_tlsext_ticket_key_evp_cb(context, on_ticket);
    SSL_CTX_set_timeout(context, PERIOD_MS / 1000);
}
