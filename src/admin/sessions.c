/* Between the store's rows and operators. */
#include "sessions.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/clock.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/random.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"

#include "events.h"
#include "results.h"

/* Longer ones fit into no address. */
#define TOKEN_MAX_BYTES 6144
#define SEALED_TOKEN "sealed_id_token"

/* ---- the issuer's word, as it is kept ---- */

const struct identity_shape sessions_kept_shape = {
    .groups_claim = "groups", .name_claim = "name", .most_groups = SESSIONS_MOST_GROUPS};

static char *write_claims(const struct identity *identity, const char *sealed_token)
{
    OWNED_BUFFER(out);
    buffer_append_char(&out, '{');
    json_add_text(&out, "sub", identity->subject);
    if (sealed_token)
        json_add_text(&out, SEALED_TOKEN, sealed_token);
    if (identity->name)
        json_add_text(&out, "name", identity->name);
    if (identity->email)
        json_add_text(&out, "email", identity->email);
    json_add_bool(&out, "email_verified", identity->email_verified);
    json_add_texts(&out, "groups", identity->groups.items, identity->groups.count);
    buffer_append_char(&out, '}');
    return buffer_take(&out, NULL);
}

char *sessions_write_claims(const struct identity *identity)
{
    return write_claims(identity, NULL);
}

char *sessions_open_token(const struct operator_identity *who, struct str cookie)
{
    return who->sealed_token ? seal_open(cookie, str_from(who->sealed_token)) : NULL;
}

/* ---- finding ---- */

struct lookup {
    session_found callback;
    void *context;
};

static int64_t sessions_until_ms(const struct config *config, const struct store_sign_in *sign_in)
{
    int64_t allowed_ms = sign_in->created_ms + config->oidc.max_age_ms;
    return allowed_ms < sign_in->until_ms ? allowed_ms : sign_in->until_ms;
}

/* NULL when it is over, or the configuration has somebody else in their place. */
static struct operator_identity *operator_of(const struct config *config,
                                             const struct store_sign_in *sign_in)
{
    struct identity *identity =
        identity_create(str_from(sign_in->claims), sign_in->issuer, &sessions_kept_shape,
                        sessions_until_ms(config, sign_in));
    struct operator_identity *who = identity ? operator_of_identity(config, identity) : NULL;
    identity_unref(identity);
    if (!who)
        return NULL;
    if (clock_now_ms() >= who->until_ms || strcmp(who->person.name, sign_in->person) != 0) {
        operator_unref(who);
        return NULL;
    }
    who->is_session = true;
    who->begun_ms = sign_in->created_ms;
    struct str sealed = json_member(str_from(sign_in->claims), SEALED_TOKEN);
    size_t length;
    if (json_type(sealed) == JSON_STRING)
        who->sealed_token = json_string_text(sealed, &length);
    memcpy(who->sha256, sign_in->digest, sizeof who->sha256);
    return who;
}

static void sessions_on_row(void *context, const struct store_reply *reply)
{
    struct lookup lookup = *(struct lookup *)context;
    struct snapshot *snapshot = snapshot_current();
    struct operator_identity *who = NULL;
    free(context);
    if (snapshot && reply->status == STORE_OK)
        who = operator_of(snapshot->config, reply->sign_in);
    bool is_none = reply->status == STORE_OK || reply->status == STORE_NOT_FOUND;
    lookup.callback(lookup.context,
                    who       ? SESSION_OK
                    : is_none ? SESSION_NONE
                              : SESSION_UNAVAILABLE,
                    who);
    snapshot_unref(snapshot);
}

void sessions_find(struct admin *admin, struct str cookie, session_found callback, void *context)
{
    char digest[65];
    struct lookup *lookup = memory_alloc(sizeof *lookup);
    *lookup = (struct lookup){callback, context};
    digest_sha256_hex(cookie, digest);
    store_sign_in_get(admin->store, str_from(digest),
                      (struct store_call){admin->loop, sessions_on_row, lookup});
}

/* ---- beginning and ending ---- */

struct change {
    session_stored callback;
    void *context;
};

static void on_changed(void *context, const struct store_reply *reply)
{
    struct change change = *(struct change *)context;
    free(context);
    change.callback(change.context, reply->status == STORE_OK);
}

static struct store_call changing(struct admin *admin, session_stored callback, void *context)
{
    struct change *change = memory_alloc(sizeof *change);
    *change = (struct change){callback, context};
    return (struct store_call){admin->loop, on_changed, change};
}

void sessions_begin(struct admin *admin, const struct config *config, const char *cookie,
                    const struct operator_identity *who, const char *token, session_stored callback,
                    void *context)
{
    bool is_kept = strlen(token) <= TOKEN_MAX_BYTES;
    OWNED char *sealed = is_kept ? seal_close(str_from(cookie), str_from(token)) : NULL;
    char digest[65], *claims = write_claims(who->identity, sealed);
    int64_t now_ms = clock_now_ms();
    digest_sha256_hex(str_from(cookie), digest);
    const struct store_sign_in sign_in = {
        .digest = digest,
        .person = who->person.name,
        .issuer = who->identity->issuer,
        .claims = claims,
        .created_ms = now_ms,
        .until_ms = now_ms + config->oidc.max_age_ms,
    };
    store_sign_in_put(admin->store, &sign_in, changing(admin, callback, context));
    free(claims);
}

void sessions_end(struct admin *admin, struct str cookie, session_stored callback, void *context)
{
    char digest[65];
    digest_sha256_hex(cookie, digest);
    events_end_of(admin, digest);
    results_end_of(admin, digest);
    store_sign_in_delete(admin->store, str_from(digest), changing(admin, callback, context));
}

/* ---- texts that the holder of a secret alone can read ---- */

#define NONCE_BYTES 12
#define TAG_BYTES 16
/* Apart from the digest of the secret itself, which the store has. */
#define LABEL "taskgate sealed text 1\n"

struct key {
    unsigned char bytes[32];
};

static struct key derive(struct str secret)
{
    struct key key = {{0}};
    char hex[DIGEST_HEX_BYTES];
    OWNED char *input = memory_format(LABEL "%.*s", STR_ARGS(secret));
    digest_sha256_hex(str_from(input), hex);
    str_read_hex(str_from(hex), key.bytes);
    explicit_bzero(input, strlen(input));
    explicit_bzero(hex, sizeof hex);
    return key;
}

static EVP_CIPHER_CTX *seal_begin(struct str secret, const unsigned char *nonce, int encrypts)
{
    struct key key = derive(secret);
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    if (!context ||
        EVP_CipherInit_ex(context, EVP_aes_256_gcm(), NULL, key.bytes, nonce, encrypts) != 1)
        memory_exhausted(); /* nothing else can be missing */
    explicit_bzero(&key, sizeof key);
    return context;
}

char *seal_close(struct str secret, struct str text)
{
    size_t length = NONCE_BYTES + text.length + TAG_BYTES;
    unsigned char *bytes = memory_alloc(length);
    int written = 0, last = 0;
    random_bytes(bytes, NONCE_BYTES);
    EVP_CIPHER_CTX *context = seal_begin(secret, bytes, 1);
    if (EVP_EncryptUpdate(context, bytes + NONCE_BYTES, &written, (const unsigned char *)text.bytes,
                          (int)text.length) != 1 ||
        EVP_EncryptFinal_ex(context, bytes + NONCE_BYTES + written, &last) != 1 ||
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, TAG_BYTES,
                            bytes + NONCE_BYTES + text.length) != 1)
        memory_exhausted();
    EVP_CIPHER_CTX_free(context);
    char *sealed = memory_alloc(2 * length + 1);
    *str_write_hex(bytes, length, sealed) = '\0';
    free(bytes);
    return sealed;
}

char *seal_open(struct str secret, struct str sealed)
{
    size_t length = sealed.length / 2;
    if (length < NONCE_BYTES + TAG_BYTES)
        return NULL;
    unsigned char *bytes = memory_alloc(length);
    size_t text_length = length - NONCE_BYTES - TAG_BYTES;
    char *text = memory_alloc(text_length + 1);
    int written = 0, last = 0;
    bool is_hex = str_read_hex(sealed, bytes);
    EVP_CIPHER_CTX *context = seal_begin(secret, bytes, 0);
    bool is_good = is_hex &&
                   EVP_DecryptUpdate(context, (unsigned char *)text, &written, bytes + NONCE_BYTES,
                                     (int)text_length) == 1 &&
                   EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, TAG_BYTES,
                                       bytes + NONCE_BYTES + text_length) == 1 &&
                   EVP_DecryptFinal_ex(context, (unsigned char *)text + written, &last) == 1;
    EVP_CIPHER_CTX_free(context);
    free(bytes);
    if (is_good)
        return text;
    explicit_bzero(text, text_length);
    free(text);
    return NULL;
}
