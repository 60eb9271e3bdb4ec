/* The cases of TLS alone; the other cases run under it as well (http_tls). */
#include <check.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdlib.h>

#include "certificate.h"
#include "scene.h"
#include "suite.h"
#include "taskgate/core/budget.h"

static struct tls_server *start_secure(struct scene *scene, const char *client_ca)
{
    struct http_server_options options = usual;
    options.tls = make_tls(client_ca);
    start_with(scene, options);
    return options.tls;
}

/* With a pair of its own to show. */
static void show(struct peer *peer, const struct pair *pair)
{
    BIO *cert = BIO_new_mem_buf(pair->cert, -1), *key = BIO_new_mem_buf(pair->key, -1);
    X509 *certificate = PEM_read_bio_X509(cert, NULL, NULL, NULL);
    EVP_PKEY *private_key = PEM_read_bio_PrivateKey(key, NULL, NULL, NULL);
    ck_assert_int_eq(SSL_use_certificate(peer->ssl, certificate), 1);
    ck_assert_int_eq(SSL_use_PrivateKey(peer->ssl, private_key), 1);
    X509_free(certificate);
    EVP_PKEY_free(private_key);
    BIO_free(cert);
    BIO_free(key);
}

static void tell_who(struct scene *scene, struct http_exchange *exchange)
{
    struct str who = http_client_certificate(exchange);
    http_respond_text(exchange, 200, "text/plain", who.bytes ? who : STR("nobody"));
}

START_TEST(the_subject_of_a_client_is_told)
{
    static const char name[] = "al\xC3\xA9, \"x\"";
    struct scene scene = {.act = tell_who};
    struct pair pair = make_pair(name);
    struct peer peer;
    struct tls_server *tls = start_secure(&scene, pair.cert);
    peer_connect(&peer, scene.loop, scene.port);
    show(&peer, &pair);
    peer_send_text(&peer, "GET / HTTP/1.1\r\n\r\n");
    peer_await(&peer, "\r\n\r\nCN=al\xC3\xA9\\, \\\"x\\\"");
    peer_close(&peer);
    tls_server_unref(tls);
    free_pair(&pair);
    stop(&scene);
}
END_TEST

START_TEST(connections_of_before_end_when_others_are_let_in)
{
    struct scene scene = {.act = hold};
    struct peer idle, busy;
    struct tls_server *before = start_secure(&scene, NULL), *same_clients = make_tls(NULL);
    struct pair pair = make_pair("alice");
    struct tls_server *others = make_tls(pair.cert);
    peer_connect(&idle, scene.loop, scene.port);
    peer_connect(&busy, scene.loop, scene.port);
    peer_send_text(&busy, "GET / HTTP/1.1\r\n\r\n");
    run_until(scene.loop, &scene.requests, 1);
    peer_send_text(&idle, "GET / HTTP/1.1\r\n\r\n");
    run_until(scene.loop, &scene.requests, 2);
    http_respond_text(scene.held, 200, "text/plain", STR("hello"));
    peer_await(&idle, "hello");
    peer_clear(&idle);

    http_server_set_tls(scene.server, same_clients); /* another certificate alone */
    peer_send_text(&idle, "GET / HTTP/1.1\r\n\r\n");
    run_until(scene.loop, &scene.requests, 3);
    http_respond_text(scene.held, 200, "text/plain", STR("hello"));
    peer_await(&idle, "hello");

    http_server_set_tls(scene.server, others);
    peer_await_close(&idle);
    ck_assert_int_eq(http_server_connections(scene.server), 1);
    peer_close(&idle);
    peer_close(&busy);
    run_until(scene.loop, &scene.gone, 1);
    tls_server_unref(before);
    tls_server_unref(same_clients);
    tls_server_unref(others);
    free_pair(&pair);
    stop(&scene);
}
END_TEST

START_TEST(a_whole_answer_ends_with_a_farewell_and_a_cut_one_does_not)
{
    struct scene scene = {.act = answer_hello};
    struct peer peer;
    struct tls_server *tls = start_secure(&scene, NULL);
    peer_connect(&peer, scene.loop, scene.port);
    peer_send_text(&peer, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
    peer_await_close(&peer);
    ck_assert(peer.is_told);
    peer_close(&peer);
    scene.act = start_stream;
    for (int version = 0; version < 2; version++) {
        peer_connect(&peer, scene.loop, scene.port);
        peer_send_text(&peer, version == 0 ? "GET / HTTP/1.0\r\n\r\n" : "GET / HTTP/1.1\r\n\r\n");
        run_until(scene.loop, &scene.requests, 2 + version);
        http_stream_write(scene.held, STR("part"));
        peer_await(&peer, "part");
        http_stream_abort(scene.held);
        peer_await_close(&peer);
        ck_assert(!peer.is_told);
        ck_assert(peer.is_reset || version == 1);
        peer_close(&peer);
    }
    tls_server_unref(tls);
    stop(&scene);
}
END_TEST

/* The end of the handshake and the beginning of a body, in one breath: dropped as any other body.
 */
START_TEST(a_body_that_comes_with_the_handshake_may_be_dropped_at_once)
{
    struct scene scene = {.act = answer_hello};
    struct http_server_options options = usual;
    struct peer peer;
    char begun[20000];
    const struct budget_limits limits = {.bytes = 1, .percent = 100};
    options.budget = budget_create(&limits);
    options.max_body_bytes = 200000; /* the budget alone refuses it */
    start_with(&scene, options);
    peer_connect(&peer, scene.loop, scene.port);
    memset(begun, 'x', sizeof begun);
    peer_send_text(&peer, "POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n");
    peer_send(&peer, str_slice(begun, sizeof begun));
    peer_await_close(&peer);
    peer_expect(&peer, "HTTP/1.1 503 ");
    ck_assert_int_eq(scene.requests, 0);
    peer_close(&peer);
    stop(&scene);
    budget_destroy(options.budget);
}
END_TEST

/* Closes while all of these are somewhere in it: nothing may be left, or be used again. */
START_TEST(a_server_ends_in_the_middle_of_handshakes)
{
    struct scene scene = {.act = answer_hello};
    struct peer peers[3];
    struct tls_server *tls = start_secure(&scene, NULL);
    for (int i = 0; i < 3; i++)
        peer_connect(&peers[i], scene.loop, scene.port);
    peer_receive(&peers[1]); /* the client's first words go out */
    run_idle(scene.loop);
    peer_send_text(&peers[2], "GET / HTTP/1.1\r\n\r\n");
    peer_await(&peers[2], "hello");
    ck_assert_int_eq(http_server_connections(scene.server), 3);
    tls_server_unref(tls);
    stop(&scene);
    for (int i = 0; i < 3; i++)
        peer_close(&peers[i]);
}
END_TEST

TCase *tls_tests(void)
{
    TCase *tests = tcase_create("tls");
    tcase_set_timeout(tests, 60);
    if (!peer_speaks_tls)
        return tests;
    tcase_add_test(tests, the_subject_of_a_client_is_told);
    tcase_add_test(tests, connections_of_before_end_when_others_are_let_in);
    tcase_add_test(tests, a_whole_answer_ends_with_a_farewell_and_a_cut_one_does_not);
    tcase_add_test(tests, a_body_that_comes_with_the_handshake_may_be_dropped_at_once);
    tcase_add_test(tests, a_server_ends_in_the_middle_of_handshakes);
    return tests;
}
