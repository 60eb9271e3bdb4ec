/*
 * Checks that a message is the reply to a request: finds its `id` while its bytes pass.
 *
 * A server, or a connection that was mixed up, may answer one request with another's reply. The
 * message is not parsed: the check only tells members of the top level from nested ones, and skips
 * most bytes from quote to quote. It keeps nothing but an `id` that is cut in two.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

enum reply_verdict {
    REPLY_UNKNOWN, /* more must come */
    REPLY_PASSES,  /* it has our `id` or none, or it is no JSON-RPC response */
    REPLY_FOREIGN, /* a response with another `id` */
};

struct reply_check {
    struct str id; /* the request's, as JSON text; borrowed */
    enum reply_verdict verdict;
    int place;         /* in the message; reply_check.c has the places */
    unsigned depth;    /* of the skipped part */
    bool after_escape; /* the next byte of the string is escaped */
    bool is_response;  /* it has a `result` or an `error` */
    bool has_other_id;
    char key[8]; /* of the member at hand, as far as it fits */
    size_t key_length;
    struct buffer seen; /* the beginning of an `id` that came in pieces */
};

/* For one message. */
void reply_check_init(struct reply_check *check, struct str id);
void reply_check_finish(struct reply_check *check);
/* Takes the next bytes of the message. Once it is not REPLY_UNKNOWN the verdict stays. */
enum reply_verdict reply_check_feed(struct reply_check *check, struct str bytes);

/* Whether both are the same id, however they are spelled; some servers answer 1 with "1". */
bool reply_id_is(struct str id, struct str other);

/* The same for the messages of an event stream. */
struct reply_event_check {
    struct reply_check message;
    size_t matched; /* bytes of "data:" at the beginning of the line */
    int line;
};
void reply_event_check_init(struct reply_event_check *check, struct str id);
void reply_event_check_finish(struct reply_event_check *check);
/* Takes the next bytes of the stream. Returns how many of them belong to events before one with
 * a foreign response: all of them when there is none. */
size_t reply_event_check_feed(struct reply_event_check *check, struct str bytes, bool *is_foreign);
