/* A JWK set, read into keys that tokens can be checked with. */
#include "taskgate/identity/key_set.h"

#include <stdlib.h>

#include "jose.h"
#include "key_set_internal.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"

struct key {
    char *id;
    size_t id_length;
    struct jose_key *jose;
    unsigned algorithms; /* bits of enum jose_algorithm */
};

struct key_set {
    unsigned references;
    size_t count, ignored;
    struct key keys[KEY_SET_MAX_KEYS];
};

enum { KTY, CRV, KID, USE, KEY_OPS, ALG, N, E, X, Y, D, K, MEMBER_COUNT };

static const char *const member_names[MEMBER_COUNT] = {
    [KTY] = "kty", [CRV] = "crv", [KID] = "kid", [USE] = "use", [KEY_OPS] = "key_ops",
    [ALG] = "alg", [N] = "n",     [E] = "e",     [X] = "x",     [Y] = "y",
    [D] = "d",     [K] = "k",
};

/* RFC 7517 §4.2 and §4.3. */
static bool is_for_signatures(const struct str *members)
{
    if (members[USE].length && !json_string_equals(members[USE], STR("sig")))
        return false;
    return !members[KEY_OPS].length || json_has_text(members[KEY_OPS], STR("verify"));
}

/* Appends the decoded number; `number` is where, valid until the buffer grows. */
static bool decode_number(struct str member, struct buffer *bytes)
{
    OWNED_BUFFER(text);
    bool is_read = json_decode_string(member, &text) && base64url_decode(buffer_str(&text), bytes);
    return is_read && bytes->length > 0;
}

static struct jose_key *read_ec(const struct str *members, enum jose_key_type type)
{
    OWNED_BUFFER(x);
    OWNED_BUFFER(y);
    struct jose_key *key = NULL;
    if (decode_number(members[X], &x) && decode_number(members[Y], &y))
        key = jose_key_create_ec(type, buffer_str(&x), buffer_str(&y));
    return key;
}

static struct jose_key *read_rsa(const struct str *members)
{
    OWNED_BUFFER(n);
    OWNED_BUFFER(e);
    struct jose_key *key = NULL;
    if (decode_number(members[N], &n) && decode_number(members[E], &e))
        key = jose_key_create_rsa(buffer_str(&n), buffer_str(&e));
    return key;
}

static struct jose_key *read_ed25519(const struct str *members)
{
    OWNED_BUFFER(x);
    struct jose_key *key = NULL;
    if (decode_number(members[X], &x))
        key = jose_key_create_ed25519(buffer_str(&x));
    return key;
}

static struct jose_key *read_public_key(const struct str *members)
{
    if (json_string_equals(members[KTY], STR("RSA")))
        return read_rsa(members);
    if (json_string_equals(members[KTY], STR("OKP")))
        return json_string_equals(members[CRV], STR("Ed25519")) ? read_ed25519(members) : NULL;
    if (!json_string_equals(members[KTY], STR("EC")))
        return NULL;
    if (json_string_equals(members[CRV], STR("P-256")))
        return read_ec(members, JOSE_KEY_P256);
    return json_string_equals(members[CRV], STR("P-384")) ? read_ec(members, JOSE_KEY_P384) : NULL;
}

/* The algorithms that a key may sign by: those of its type, or the one that `alg` names. */
static unsigned algorithms_of(const struct str *members, enum jose_key_type type)
{
    unsigned algorithms = 0;
    for (unsigned i = 0; i < JOSE_ALGORITHM_COUNT; i++) {
        if (jose_algorithm_key_type((enum jose_algorithm)i) == type)
            algorithms |= 1U << i;
    }
    if (!members[ALG].length)
        return algorithms;
    OWNED_BUFFER(name);
    enum jose_algorithm named;
    bool is_known =
        json_decode_string(members[ALG], &name) && jose_algorithm_parse(buffer_str(&name), &named);
    return is_known ? algorithms & 1U << named : 0;
}

static bool key_set_read_key(struct str document, struct key *key)
{
    struct str members[MEMBER_COUNT];
    if (json_type(document) != JSON_OBJECT)
        return false;
    json_members(document, member_names, MEMBER_COUNT, members);
    /* An issuer that publishes a secret has no secret any more. */
    if (members[D].length || members[K].length || !is_for_signatures(members))
        return false;
    key->id = json_string_text(members[KID], &key->id_length);
    key->jose = key->id && key->id_length ? read_public_key(members) : NULL;
    key->algorithms = key->jose ? algorithms_of(members, jose_key_type(key->jose)) : 0;
    if (key->algorithms)
        return true;
    free(key->id);
    jose_key_destroy(key->jose);
    return false;
}

struct key_set *key_set_parse(struct str document, struct error *error)
{
    if (document.length > KEY_SET_MAX_BYTES) {
        error_set(error, "the key set is larger than %zu bytes", KEY_SET_MAX_BYTES);
        return NULL;
    }
    if (!json_check(document, error)) {
        error_prefix(error, "the key set is not good JSON");
        return NULL;
    }
    struct str keys = json_member(document, "keys"), element;
    if (json_type(keys) != JSON_ARRAY) {
        error_set(error, "the key set has no list `keys`");
        return NULL;
    }
    if (json_count(keys) > KEY_SET_MAX_KEYS) {
        error_set(error, "the key set has more than %d keys", KEY_SET_MAX_KEYS);
        return NULL;
    }
    struct key_set *set = memory_alloc(sizeof(*set));
    set->references = 1;
    for (size_t at = 0; json_next_element(keys, &at, &element);) {
        if (key_set_read_key(element, &set->keys[set->count]))
            set->count++;
        else
            set->ignored++;
    }
    return set;
}

struct key_set *key_set_ref(struct key_set *set)
{
    __atomic_fetch_add(&set->references, 1, __ATOMIC_RELAXED);
    return set;
}

void key_set_unref(struct key_set *set)
{
    if (!set)
        return;
    unsigned before = __atomic_fetch_sub(&set->references, 1, __ATOMIC_ACQ_REL);
    ASSERT_NUMBERS(before, >, 0);
    if (before != 1)
        return;
    for (size_t i = 0; i < set->count; i++) {
        free(set->keys[i].id);
        jose_key_destroy(set->keys[i].jose);
    }
    free(set);
}

size_t key_set_count(const struct key_set *set)
{
    return set->count;
}

size_t key_set_ignored_count(const struct key_set *set)
{
    return set->ignored;
}

const struct jose_key *key_set_next(const struct key_set *set, struct str id,
                                    enum jose_algorithm algorithm, size_t *position)
{
    while (*position < set->count) {
        const struct key *key = &set->keys[(*position)++];
        if (key->algorithms & 1U << algorithm && str_equal(str_slice(key->id, key->id_length), id))
            return key->jose;
    }
    return NULL;
}
