/*
 * How many requests of a server the gateway answers in one call or on one stream: each answer is a
 * request of the gateway's own. A burst is answered, and after it so many a second, so that a
 * server that asks now and then is answered for as long as its call lasts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum server_request { SERVER_PING, SERVER_REQUEST };
#define SERVER_REQUEST_KINDS 2

#define SERVER_PING_BURST 1000
#define SERVER_REQUEST_BURST 100 /* of all others */
#define SERVER_REQUESTS_PER_SECOND 10

/* All zeros: nothing is spent yet. */
struct server_budget {
    struct server_spent {
        int64_t count;
        int64_t counted_ms; /* monotonic: up to when the refill has been counted */
    } spent[SERVER_REQUEST_KINDS];
};

/* Whether one more request of the kind is answered now; if so, it is counted. */
bool server_budget_take(struct server_budget *budget, enum server_request kind,
                        int64_t monotonic_ms);
