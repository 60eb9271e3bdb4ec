/* A caller's identity: read from claims, kept by reference. */
#include "taskgate/identity/identity.h"

#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

#define SUBJECT_MAX_BYTES 1024

static void list_add(struct identity_list *list, char *item)
{
    list->items = memory_grow_array(list->items, list->count + 1, sizeof(*list->items));
    list->items[list->count++] = item;
}

static void list_finish(struct identity_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
}

static bool list_has(const struct identity_list *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i], text) == 0)
            return true;
    }
    return false;
}

/* A list of texts, or one text; no more than `most`. */
static void identity_read_list(struct str value, struct identity_list *list, size_t most)
{
    char *text = json_plain_text(value);
    if (text)
        list_add(list, text);
    struct str element;
    for (size_t at = 0; list->count < most && json_type(value) == JSON_ARRAY &&
                        json_next_element(value, &at, &element);) {
        text = json_plain_text(element);
        if (text)
            list_add(list, text);
    }
}

/* RFC 6749 §3.3: texts apart by single blanks. Some issuers have a list under the name `scp`. */
static void read_scopes(struct str claims, struct identity_list *scopes)
{
    struct str value = json_member(claims, "scope");
    if (json_type(value) == JSON_NONE)
        value = json_member(claims, "scp");
    char *text = json_plain_text(value);
    if (!text) {
        identity_read_list(value, scopes, SIZE_MAX);
        return;
    }
    struct str rest = str_from(text), scope;
    while (rest.length) {
        str_cut(rest, ' ', &scope, &rest);
        if (scope.length)
            list_add(scopes, memory_copy_str(scope));
    }
    free(text);
}

struct identity *identity_create(struct str claims, const char *issuer,
                                 const struct identity_shape *shape, int64_t until_ms)
{
    char *subject = json_plain_text(json_member(claims, "sub"));
    if (!subject || !*subject || strlen(subject) > SUBJECT_MAX_BYTES) {
        free(subject);
        return NULL;
    }
    struct identity *identity = memory_alloc(sizeof(*identity));
    identity->references = 1;
    identity->issuer = memory_copy_text(issuer);
    identity->subject = subject;
    identity->name =
        json_plain_text(claim_find(claims, shape->name_claim ? shape->name_claim : "name"));
    identity->email = json_plain_text(json_member(claims, "email"));
    identity->email_verified = json_type(json_member(claims, "email_verified")) == JSON_TRUE;
    person_email_digest(identity->email_verified ? identity->email : NULL,
                        identity->verified_email);
    identity->client_id = json_plain_text(json_member(claims, "azp"));
    if (!identity->client_id)
        identity->client_id = json_plain_text(json_member(claims, "client_id"));
    identity->session = json_plain_text(json_member(claims, "sid"));
    claim_time(json_member(claims, "auth_time"), &identity->signed_in_ms);
    identity_read_list(claim_find(claims, shape->groups_claim ? shape->groups_claim : "groups"),
                       &identity->groups, shape->most_groups > 0 ? shape->most_groups : SIZE_MAX);
    read_scopes(claims, &identity->scopes);
    identity->until_ms = until_ms;
    person_subject_owner(issuer, subject, identity->owner);
    return identity;
}

struct identity *identity_ref(struct identity *identity)
{
    __atomic_fetch_add(&identity->references, 1, __ATOMIC_RELAXED);
    return identity;
}

void identity_unref(struct identity *identity)
{
    if (!identity)
        return;
    unsigned before = __atomic_fetch_sub(&identity->references, 1, __ATOMIC_ACQ_REL);
    ASSERT_NUMBERS(before, >, 0);
    if (before != 1)
        return;
    free(identity->issuer);
    free(identity->subject);
    free(identity->name);
    free(identity->email);
    free(identity->client_id);
    free(identity->session);
    list_finish(&identity->groups);
    list_finish(&identity->scopes);
    free(identity);
}

bool identity_has_group(const struct identity *identity, const char *group)
{
    return list_has(&identity->groups, group);
}

bool identity_has_scope(const struct identity *identity, const char *scope)
{
    return list_has(&identity->scopes, scope);
}
