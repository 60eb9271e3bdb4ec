/* A ring: they begin and are over in the same order. */
#include "attempts.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/digest.h"
#include "taskgate/core/memory.h"

#define ATTEMPTS_MAX 1000

struct attempts {
    struct attempt items[ATTEMPTS_MAX]; /* a `state` of "" is one that was taken */
    size_t next;
};

struct attempts *attempts_create(void)
{
    return memory_alloc(sizeof(struct attempts));
}

void attempts_destroy(struct attempts *attempts)
{
    if (attempts)
        explicit_bzero(attempts, sizeof *attempts);
    free(attempts);
}

const struct attempt *attempts_begin(struct attempts *attempts, struct str cookie, int64_t now_ms)
{
    struct attempt *attempt = &attempts->items[attempts->next];
    attempts->next = (attempts->next + 1) % ATTEMPTS_MAX;
    cookie_make_value(attempt->state);
    cookie_make_value(attempt->nonce);
    cookie_make_value(attempt->verifier);
    digest_sha256_hex(cookie, attempt->browser);
    attempt->begun_ms = now_ms;
    return attempt;
}

bool attempts_take(struct attempts *attempts, struct str state, struct str cookie, int64_t now_ms,
                   struct attempt *attempt)
{
    char browser[65];
    digest_sha256_hex(cookie, browser);
    for (size_t i = 0; i < ATTEMPTS_MAX; i++) {
        struct attempt *item = &attempts->items[i];
        if (!*item->state || !str_equal_constant_time(str_from(item->state), state))
            continue;
        if (strcmp(item->browser, browser) != 0)
            return false;
        *attempt = *item;
        explicit_bzero(item, sizeof *item);
        return now_ms - attempt->begun_ms < ATTEMPT_LIFE_MS;
    }
    return false;
}
