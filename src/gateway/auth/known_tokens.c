/* A table in which each header has one place, told by its last bytes: those of a signature. */
#include "known_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"
#include "taskgate/identity/identity.h"

#define PLACES 512 /* a power of two */
#define VALUE_BYTES ((size_t)4096)
#define SESSION_BYTES ((size_t)256)

struct known {
    char *value; /* of the header; NULL: nothing is here */
    size_t length;
    uint64_t rules;
    struct identity *identity;
    struct policy_verified verified; /* its words */
    char token[DIGEST_HEX_BYTES];    /* as call_identify() has it */
    /* The session of the last call with it. */
    char session[SESSION_BYTES];
    size_t session_length;
    char session_digest[DIGEST_HEX_BYTES];
};

struct known_tokens {
    struct known places[PLACES];
};

struct known_tokens *known_tokens_create(void)
{
    return memory_alloc(sizeof(struct known_tokens));
}

static void forget(struct known *known)
{
    if (!known->value)
        return;
    explicit_bzero(known->value, known->length);
    free(known->value);
    identity_unref(known->identity);
    known->value = NULL;
    known->identity = NULL;
}

void known_tokens_clear(struct known_tokens *tokens)
{
    for (size_t i = 0; i < PLACES; i++)
        forget(&tokens->places[i]);
}

void known_tokens_destroy(struct known_tokens *tokens)
{
    if (!tokens)
        return;
    known_tokens_clear(tokens);
    free(tokens);
}

static struct str header_of(const struct call *call)
{
    return http_header_known(call->exchange, HTTP_NAME_AUTHORIZATION);
}

/* NULL for a header that is not kept. */
static struct known *place_of(struct known_tokens *tokens, struct str value)
{
    uint64_t end;
    if (value.length < sizeof end || value.length > VALUE_BYTES)
        return NULL;
    memcpy(&end, value.bytes + value.length - sizeof end, sizeof end);
    return &tokens->places[(end * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & (PLACES - 1)];
}

static void take_session(struct known *known, struct call *call, struct str session)
{
    if (session.length == 0)
        return;
    bool is_same = session.length == known->session_length &&
                   memcmp(session.bytes, known->session, session.length) == 0;
    if (is_same) {
        memcpy(call->session, known->session_digest, sizeof call->session);
        return;
    }
    call_digest_session(call, session, call->session);
    if (session.length > SESSION_BYTES)
        return;
    memcpy(known->session, session.bytes, session.length);
    known->session_length = session.length;
    memcpy(known->session_digest, call->session, sizeof known->session_digest);
}

bool known_tokens_identify(struct known_tokens *tokens, uint64_t rules, struct call *call,
                           int64_t now_ms)
{
    struct str value = header_of(call);
    struct known *known = place_of(tokens, value);
    if (!known || !known->value || known->rules != rules || known->length != value.length ||
        http_header_is_repeated(call->exchange, HTTP_NAME_AUTHORIZATION) ||
        now_ms >= known->identity->until_ms || memcmp(known->value, value.bytes, value.length) != 0)
        return false;
    call->identity = identity_ref(known->identity);
    call->verified = known->verified;
    call->identified = true;
    memcpy(call->token, known->token, sizeof call->token);
    memcpy(call->owner, known->identity->owner, sizeof known->identity->owner);
    call_vouch(call);
    take_session(known, call, http_header_known(call->exchange, HTTP_NAME_MCP_SESSION_ID));
    return true;
}

void known_tokens_add(struct known_tokens *tokens, uint64_t rules, struct call *call)
{
    struct str value = header_of(call);
    struct known *known = place_of(tokens, value);
    if (!known)
        return;
    call_identify(call);
    forget(known);
    known->value = memory_copy_str(value);
    known->length = value.length;
    known->rules = rules;
    known->identity = identity_ref(call->identity);
    known->verified = call->verified;
    known->session_length = 0;
    memcpy(known->token, call->token, sizeof known->token);
}
