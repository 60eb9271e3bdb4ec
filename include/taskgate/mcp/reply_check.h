/*
 * Checks that a message is the response to a request, while its bytes pass.
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
    REPLY_OURS,    /* so far it is the response: what comes may still make it REPLY_FOREIGN */
    REPLY_NONE,    /* no response: no JSON object, or one that names no request */
    REPLY_FOREIGN, /* a response to another request, or one that two readers read in two ways: with
                    * two ids, two results, or a result beside an error */
};

struct reply_check {
    struct str id; /* the request's, as JSON text; borrowed */
    enum reply_verdict verdict;
    int place;         /* in the message; reply_check.c has the places */
    unsigned depth;    /* of the skipped part */
    bool after_escape; /* the next byte of the string is escaped */
    bool has_id, has_result, has_error, has_method;
    bool names_another; /* the id is another request's, */
    bool names_nobody;  /* or it is one of those that servers give to errors of no request */
    char key[8];        /* of the member at hand, as far as it fits */
    size_t key_length;
    struct buffer seen; /* the beginning of an `id` that came in pieces */
};

/* For one message. */
void reply_check_init(struct reply_check *check, struct str id);
void reply_check_finish(struct reply_check *check);
/* Takes the next bytes of the message. REPLY_NONE and REPLY_FOREIGN stay. */
enum reply_verdict reply_check_feed(struct reply_check *check, struct str bytes);
/* Whether the whole response to the request has come, and nothing else yet. */
bool reply_check_is_answer(const struct reply_check *check);
/* The message has ended. REPLY_OURS: the whole response has come. Never REPLY_UNKNOWN. */
enum reply_verdict reply_check_end(struct reply_check *check);

/* Whether both are the same id, however they are spelled; some servers answer 1 with "1". */
bool reply_id_is(struct str id, struct str other);

/* The same for the messages of an event stream: each is the response, or the server's own request
 * or notification. Events of another type than "message" are no messages. */
struct reply_event_check {
    struct reply_check message;
    bool is_answered;   /* the whole response has come */
    bool is_other_type; /* the event at hand is no message */
    bool is_after_cr;   /* a LF that comes now belongs to the line before */
    int line;
    char field[8]; /* the line's field, then the event's type, as far as it fits */
    size_t field_length;
    size_t mark_length; /* bytes of a byte order mark at the beginning of the line */
};
void reply_event_check_init(struct reply_event_check *check, struct str id);
void reply_event_check_finish(struct reply_event_check *check);
/* Takes the next bytes of the stream. Returns how many of them belong to events before one that
 * does not belong to the request: all of them when there is none. */
size_t reply_event_check_feed(struct reply_event_check *check, struct str bytes, bool *is_foreign);
/* The stream has ended. false: it ends with an event that does not belong to the request. */
bool reply_event_check_end(struct reply_event_check *check);
