/* The sealed text is the end of the attempt's life, the nonce and the verifier. */
#include "attempts.h"

#include <inttypes.h>
#include <string.h>

#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/state_seal.h"

#define PREFIX STR("sign_in_")
#define VALUE_LENGTH ((size_t)COOKIE_VALUE_BYTES - 1)

void attempt_begin(struct attempt *attempt, const struct state_keys *keys, struct str cookie,
                   struct buffer *state)
{
    struct buffer text;
    cookie_make_value(attempt->nonce);
    cookie_make_value(attempt->verifier);
    buffer_init(&text);
    buffer_append_format(&text, "%s%s%" PRId64, attempt->nonce, attempt->verifier,
                         clock_now_ms() + ATTEMPT_LIFE_MS);
    if (!state_seal(keys, PREFIX, cookie, buffer_str(&text), state))
        memory_exhausted(); /* nothing else can be missing */
    explicit_bzero(text.bytes, text.length);
    buffer_finish(&text);
}

static bool attempts_read_text(struct attempt *attempt, struct str text)
{
    uint64_t until_ms;
    if (text.length <= 2 * VALUE_LENGTH ||
        !str_to_u64(str_slice(text.bytes + 2 * VALUE_LENGTH, text.length - 2 * VALUE_LENGTH),
                    &until_ms) ||
        until_ms <= (uint64_t)clock_now_ms())
        return false;
    memcpy(attempt->nonce, text.bytes, VALUE_LENGTH);
    memcpy(attempt->verifier, text.bytes + VALUE_LENGTH, VALUE_LENGTH);
    attempt->nonce[VALUE_LENGTH] = attempt->verifier[VALUE_LENGTH] = '\0';
    return true;
}

bool attempt_read(struct attempt *attempt, const struct state_keys *keys, struct str cookie,
                  struct str state)
{
    struct buffer text;
    buffer_init(&text);
    bool is_good = state_unseal(keys, PREFIX, cookie, state, &text) &&
                   attempts_read_text(attempt, buffer_str(&text));
    if (text.length > 0)
        explicit_bzero(text.bytes, text.length);
    buffer_finish(&text);
    return is_good;
}
