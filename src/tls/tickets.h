/*
 * The keys that session tickets are sealed with: made at random, never written anywhere, changed
 * every hour. A ticket is taken for one to two hours. Any thread.
 */
#pragma once

#include <openssl/ssl.h>

struct tickets;

struct tickets *tickets_create(void);
void tickets_destroy(struct tickets *tickets); /* NULL is allowed; after the last connection */
/* Has the tickets of `context` sealed and opened with these keys. */
void tickets_install(struct tickets *tickets, SSL_CTX *context);
