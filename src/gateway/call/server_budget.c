/* A burst, and then so many a second. */
#include "server_budget.h"

#define MS_PER_REQUEST (1000 / SERVER_REQUESTS_PER_SECOND)

static const int64_t bursts[SERVER_REQUEST_KINDS] = {
    [SERVER_PING] = SERVER_PING_BURST,
    [SERVER_REQUEST] = SERVER_REQUEST_BURST,
};

static void refill(struct server_spent *spent, int64_t monotonic_ms)
{
    int64_t due = (monotonic_ms - spent->counted_ms) / MS_PER_REQUEST;
    if (due <= 0)
        return;
    spent->count = due < spent->count ? spent->count - due : 0;
    spent->counted_ms += due * MS_PER_REQUEST;
}

bool server_budget_take(struct server_budget *budget, enum server_request kind,
                        int64_t monotonic_ms)
{
    struct server_spent *spent = &budget->spent[kind];
    refill(spent, monotonic_ms);
    if (spent->count >= bursts[kind])
        return false;
    spent->count++;
    return true;
}
