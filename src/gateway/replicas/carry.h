/*
 * A request that is carried to another replica, where its session or task lives, and the response
 * that comes back: the bytes as they are, a stream as it comes. On the call's loop.
 */
#pragma once

#include "call/call.h"
#include "replicas.h"

/* A relayed request that has got no whole response. */
struct carry_facts {
    bool was_written;   /* bytes of it have gone out */
    bool is_unread;     /* it was refused there, unread */
    bool is_repeatable; /* it may be handled twice */
    bool has_begun;     /* a part of the response has gone down */
    bool may_answer;    /* it can be handled here */
};

enum carry_fate {
    CARRY_HERE,    /* it is handled in this process */
    CARRY_AGAIN,   /* the client may send it again */
    CARRY_UNKNOWN, /* it may have run */
};

/* Whether it may have been looked at there. */
bool carry_was_taken(const struct carry_facts *facts);
/* A request that was taken may have run: it is handled again only if that cannot matter. */
enum carry_fate carry_fate_of(const struct carry_facts *facts);

/* Nothing of the call was looked at there: the replica is not reached, or has refused it unread. Or
 * it is gone, and the call is one that may be handled twice. */
typedef void (*carry_untaken)(struct call *call, call_step here);

/* Carries the call there. `is_repeatable`: it may be handled twice. `here`, the way on in this
 * process, is for `untaken` alone. */
void carry_start(struct call *call, const struct session_home *home, const char *address,
                 bool is_repeatable, carry_untaken untaken, call_step here);
/* The process ends: streams of notifications end, and the replicas that hold the calls learn of it.
 * Other calls may be answered. */
void carry_end_all(struct gateway_worker *worker);
