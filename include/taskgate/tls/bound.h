/*
 * How long a message of a client's handshake may be. OpenSSL makes room for a whole message of up
 * to 128 KiB as soon as its first four bytes say so, and has no setting for it: many clients that
 * say no more than that would take the memory. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "taskgate/core/str.h"

/* Seven certificates, or ten times what a ClientHello has. */
#define TLS_BOUND_BYTES 16384

/* The bytes of a client so far; zeroed before. */
struct tls_bound {
    unsigned char record[5], message[4]; /* heads, as far as they are there */
    size_t record_have, message_have;
    size_t record_left, message_left; /* of the bodies */
    bool is_over;                     /* the stream from here on is encrypted */
};

/* Takes the next bytes of the connection; false: a message is too long. `is_1_2`: TLS 1.2 is
 * spoken, where a change of ciphers is one (in TLS 1.3 it means nothing, and encrypted records have
 * a type of their own). */
bool tls_bound_take(struct tls_bound *bound, struct str bytes, bool is_1_2);
