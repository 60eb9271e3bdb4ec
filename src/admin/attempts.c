/* Between the store's rows and the way to the provider and back. */
#include "attempts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/digest.h"
#include "taskgate/core/memory.h"

#include "internal.h"
#include "seal.h"

/* One that is on its way to the store, or back. */
struct asked {
    attempt_callback callback;
    void *context;
    struct attempt attempt;
    char cookie[COOKIE_VALUE_BYTES];
};

static struct asked *ask(struct str cookie, attempt_callback callback, void *context)
{
    struct asked *asked = memory_alloc(sizeof *asked);
    asked->callback = callback;
    asked->context = context;
    memcpy(asked->cookie, cookie.bytes, cookie.length);
    return asked;
}

static void answer(struct asked *asked, enum attempt_result result)
{
    asked->callback(asked->context, result, result == ATTEMPT_OK ? &asked->attempt : NULL);
    explicit_bzero(asked, sizeof *asked);
    free(asked);
}

/* ---- beginning ---- */

static void on_kept(void *context, const struct store_reply *reply)
{
    answer(context, reply->status == STORE_OK ? ATTEMPT_OK : ATTEMPT_UNAVAILABLE);
}

void attempts_begin(struct admin *admin, struct str cookie, attempt_callback callback,
                    void *context)
{
    char digest[DIGEST_HEX_BYTES], browser[DIGEST_HEX_BYTES];
    struct asked *asked = ask(cookie, callback, context);
    struct attempt *attempt = &asked->attempt;
    cookie_make_value(attempt->state);
    cookie_make_value(attempt->nonce);
    cookie_make_value(attempt->verifier);
    digest_sha256_hex(str_from(attempt->state), digest);
    digest_sha256_hex(cookie, browser);
    char *text = memory_format("%s%s", attempt->nonce, attempt->verifier);
    char *sealed = seal_close(cookie, str_from(text));
    store_attempt_put(admin->store, &(struct store_attempt){digest, browser, sealed},
                      (struct store_call){admin->loop, on_kept, asked});
    explicit_bzero(text, strlen(text));
    free(text);
    free(sealed);
}

/* ---- and back ---- */

static bool open_attempt(struct asked *asked, const char *sealed)
{
    struct attempt *attempt = &asked->attempt;
    const size_t length = COOKIE_VALUE_BYTES - 1;
    char *text = seal_open(str_from(asked->cookie), str_from(sealed));
    bool is_whole = text && strlen(text) == 2 * length;
    if (is_whole) {
        snprintf(attempt->nonce, sizeof attempt->nonce, "%.*s", (int)length, text);
        snprintf(attempt->verifier, sizeof attempt->verifier, "%s", text + length);
    }
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
    return is_whole;
}

static void on_taken(void *context, const struct store_reply *reply)
{
    struct asked *asked = context;
    enum attempt_result result = ATTEMPT_UNAVAILABLE;
    if (reply->status == STORE_OK)
        result = open_attempt(asked, reply->sealed) ? ATTEMPT_OK : ATTEMPT_NONE;
    else if (reply->status == STORE_NOT_FOUND)
        result = ATTEMPT_NONE;
    answer(asked, result);
}

void attempts_take(struct admin *admin, struct str state, struct str cookie,
                   attempt_callback callback, void *context)
{
    char digest[DIGEST_HEX_BYTES], browser[DIGEST_HEX_BYTES];
    struct asked *asked = ask(cookie, callback, context);
    digest_sha256_hex(state, digest);
    digest_sha256_hex(cookie, browser);
    store_attempt_take(admin->store, str_from(digest), str_from(browser),
                       (struct store_call){admin->loop, on_taken, asked});
}
