/*
 * The headers that pass: a request's up to the server, a response's down to the client. All but the
 * hop-by-hop ones (RFC 9110 §7.6.1) and those that each side makes anew.
 */
#pragma once

#include <stddef.h>

#include "taskgate/config/config.h"
#include "taskgate/http/server.h"

/* More than most messages have: for headers_init_in(). */
#define HEADERS_ROOM 32

/* An owned list of headers. */
struct headers {
    struct http_header *items;
    size_t count, capacity;
    bool owns;                /* names and values are copies of ours */
    struct http_header *room; /* the caller's, where `items` begins; or NULL */
    char *owner; /* of the client whose headers they are, for headers_connection_owner(); or NULL */
};

void headers_init(struct headers *headers, bool owns);
/* Views, in memory of the caller's as long as it suffices. */
void headers_init_in(struct headers *headers, struct http_header *room, size_t capacity);
void headers_finish(struct headers *headers);
/* Empty headers that end with their block: OWNED_HEADERS(headers, true); */
#define OWNED_HEADERS(name, owns_copies)                                                           \
    __attribute__((cleanup(headers_finish))) struct headers name = {.owns = (owns_copies)}
void headers_add(struct headers *headers, struct str name, struct str value);
/* Gives back what the list has beyond its headers: it is kept for long. */
void headers_fit(struct headers *headers);
/* Replaces every header of that name (any case) by one. */
void headers_set(struct headers *headers, struct str name, struct str value);
/* Takes every header of that name (any case) out. */
void headers_take_out(struct headers *headers, struct str name);
void headers_remove(struct headers *headers, enum http_name name);
/* The value, or an empty str. */
struct str headers_find(const struct headers *headers, const char *name);
struct str headers_known(const struct headers *headers, enum http_name name);

/* Takes out those whose name has one of these flags (HTTP_NAME_OF_SESSION …). */
void headers_drop(struct headers *headers, unsigned flags);

/* Whether Content-Type is text/event-stream, whatever its parameters. */
bool headers_name_event_stream(const struct headers *headers);
/* Whether the body is announced as JSON in UTF-8 without a coding, in words that two readers do not
 * read in two ways: the server must read what the gateway judges (behaviour 1.1). */
bool headers_are_plain_json(const struct http_exchange *exchange);
/* Of every event stream: no proxy on the way stores it, holds it back or encodes it. */
#define HEADERS_OF_STREAM 3
extern const struct http_header headers_of_stream[HEADERS_OF_STREAM];
/* The same for a stream that a server opened. */
void headers_let_stream_pass(struct headers *headers);

/* The headers that go up: the client's but the hop-by-hop ones, those that Connection names (never
 * who asks, or what the body is), and Accept-Encoding (behaviour 3.5); then the source's static
 * credentials, which replace the client's of the same name. */
void headers_from_request(struct headers *headers, const struct http_exchange *exchange,
                          const struct config_source *source);
/* Puts the headers of a legacy session in the place of those of a modern request. NULL: of one that
 * is not open yet. */
struct upstream_session;
void headers_set_session(struct headers *headers, const struct upstream_session *session);
/* The headers that go up for a call: the same, with the token that the client's was exchanged for.
 * Those of a legacy client's that is bridged are of a modern request, whose method and name are
 * still to be set; those of a modern client's are of the session that it is bridged to. */
struct call;
void headers_from_call(struct headers *headers, const struct call *call);
/* The same without the source's credentials: only what the client has sent. */
void headers_from_client(struct headers *headers, const struct http_exchange *exchange);
/* Adds all of `from`, which are of the same owner. */
void headers_add_all(struct headers *headers, const struct headers *from);
/* The owner of the connections that a request with these headers uses (behaviour 3.6,
 * `sources[].connections`); empty: everybody's. Borrowed from the headers. */
struct str headers_connection_owner(const struct headers *headers,
                                    const struct config_source *source);
/* Puts the source's static credentials in the place of the client's, whose token goes where the
 * source has `auth` that does not pass it. */
void headers_set_static(struct headers *headers, const struct config_source *source);
/* The headers of a response. Content-Length is left out: the body's own length is sent. */
void headers_from_response(struct headers *headers, const struct http_header *items, size_t count);

/* ---- the headers of a modern request that repeat its body, as they travel: those of a call that
 * becomes a task are kept as text beside its body, and sent with it. Any thread ---- */
/* Appends a line "name:value\n" for each, byte for byte. Neither has a line break. */
void mirrored_headers_write(const struct http_exchange *exchange, struct buffer *lines);
/* Puts those of the lines in the place of all that `headers` (owning) has. */
void mirrored_headers_restore(struct headers *headers, struct str lines);
/* The same of headers that the gateway has made. */
void mirrored_headers_write_made(const struct headers *headers, struct buffer *lines);
/* Those of a request of the gateway's own. `name` is what its body names, or empty. */
void mirrored_headers_set(struct headers *headers, const char *method, struct str name);
