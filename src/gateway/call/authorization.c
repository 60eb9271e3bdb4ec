/* One spelling of an Authorization header, its digest, and the owner's name. */
#include "authorization.h"

#include <string.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/owned.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Takes the next word off `rest`; empty at the end. */
static struct str next_word(struct str *rest)
{
    size_t start = 0, end;
    while (start < rest->length && is_blank(rest->bytes[start]))
        start++;
    for (end = start; end < rest->length && !is_blank(rest->bytes[end]);)
        end++;
    struct str word = str_slice(rest->bytes + start, end - start);
    *rest = str_slice(rest->bytes + end, rest->length - end);
    return word;
}

static void append_lower(struct buffer *out, struct str word)
{
    for (size_t i = 0; i < word.length; i++) {
        unsigned c = (unsigned char)word.bytes[i];
        buffer_append_char(out, (char)(c >= 'A' && c <= 'Z' ? c | 0x20u : c));
    }
}

void authorization_digest(struct str value, char hex[DIGEST_HEX_BYTES])
{
    OWNED_BUFFER(spelled);
    struct str first = next_word(&value), word = next_word(&value);
    if (word.length)
        append_lower(&spelled, first);
    else
        buffer_append(&spelled, first);
    for (; word.length; word = next_word(&value)) {
        buffer_append_char(&spelled, ' ');
        buffer_append(&spelled, word);
    }
    digest_sha256_hex(buffer_str(&spelled), hex);
}

void owner_write(char owner[OWNER_BYTES], const char *token, const char *session,
                 enum config_identity identity)
{
    if (token[0] && identity != IDENTITY_SESSION)
        str_join(owner, OWNER_BYTES, STR("auth:"), str_from(token));
    else if (identity == IDENTITY_ANONYMOUS)
        str_join(owner, OWNER_BYTES, STR(OWNER_SHARED), STR_EMPTY);
    else if (session[0])
        str_join(owner, OWNER_BYTES, STR(OWNER_SESSION), str_from(session));
    else
        str_join(owner, OWNER_BYTES, STR(OWNER_ANONYMOUS), STR_EMPTY);
}

bool owner_is_anybody(const char *owner)
{
    return strcmp(owner, OWNER_ANONYMOUS) == 0 || strcmp(owner, OWNER_SHARED) == 0;
}

bool owner_is_session(const char *owner)
{
    return strncmp(owner, OWNER_SESSION, sizeof OWNER_SESSION - 1) == 0;
}

const struct policy_verified *verified_from(const struct identity *identity,
                                            struct policy_verified *verified)
{
    if (!identity)
        return NULL;
    *verified = (struct policy_verified){
        .issuer = str_from(identity->issuer),
        .subject = str_from(identity->subject),
        .groups = {identity->groups.items, identity->groups.count},
        .scopes = {identity->scopes.items, identity->scopes.count},
    };
    return verified;
}
