/* Persons as values, and the one comparison of them. */
#include "taskgate/approval/person.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"

void person_finish(struct person *person)
{
    free(person->name);
    free(person->via);
    free(person->credential);
    free(person->issuer);
    free(person->subject);
    ballot_names_finish(&person->emails);
    ballot_names_finish(&person->groups);
    ballot_names_finish(&person->claimed);
    ballot_names_finish(&person->keys);
    *person = (struct person){.name = NULL};
}

void person_copy(struct person *copy, const struct person *person)
{
    *copy = (struct person){
        .name = memory_copy_text(person->name),
        .is_named = person->is_named,
        .via = memory_copy_text(person->via),
        .credential = memory_copy_text(person->credential),
        .issuer = memory_copy_text(person->issuer),
        .subject = memory_copy_text(person->subject),
    };
    ballot_names_add_all(&copy->emails, &person->emails);
    ballot_names_add_all(&copy->groups, &person->groups);
    ballot_names_add_all(&copy->claimed, &person->claimed);
    ballot_names_add_all(&copy->keys, &person->keys);
}

/* ---- keys ---- */

#define SUBJECT_PREFIX "sub:"

void person_subject_owner(const char *issuer, const char *subject, char owner[PERSON_SUBJECT_BYTES])
{
    OWNED_BUFFER(text);
    buffer_append_text(&text, issuer);
    buffer_append_char(&text, '\0');
    buffer_append_text(&text, subject);
    memcpy(owner, SUBJECT_PREFIX, sizeof SUBJECT_PREFIX);
    digest_sha256_hex(buffer_str(&text), owner + strlen(SUBJECT_PREFIX));
}

void person_email_digest(const char *email, char digest[DIGEST_HEX_BYTES])
{
    OWNED_BUFFER(text);
    digest[0] = '\0';
    for (const char *at = email; at && *at; at++) {
        char byte = *at;
        if (byte >= 'A' && byte <= 'Z')
            byte = (char)(byte - 'A' + 'a');
        buffer_append_char(&text, byte);
    }
    if (text.length > 0)
        digest_sha256_hex(buffer_str(&text), digest);
}

static void person_add(struct ballot_names *keys, const char *kind, const char *text)
{
    char *key = memory_format("%s:%s", kind, text);
    ballot_names_add(keys, key);
    free(key);
}

void person_add_name(struct ballot_names *keys, const char *name)
{
    if (name)
        person_add(keys, "name", name);
}

void person_add_credential(struct ballot_names *keys, const char *via, const char *credential)
{
    if (via && credential)
        person_add(keys, via, credential);
}

void person_add_subject(struct ballot_names *keys, const char *issuer, const char *subject)
{
    char owner[PERSON_SUBJECT_BYTES];
    if (!issuer || !subject)
        return;
    person_subject_owner(issuer, subject, owner);
    ballot_names_add(keys, owner);
}

void person_add_email(struct ballot_names *keys, const char *digest)
{
    if (digest && *digest)
        person_add(keys, "email", digest);
}

void person_keys(const struct person *person, struct ballot_names *keys)
{
    *keys = (struct ballot_names){NULL, 0};
    person_add_name(keys, person->name);
    person_add_credential(keys, person->via, person->credential);
    person_add_subject(keys, person->issuer, person->subject);
    for (size_t i = 0; i < person->emails.count; i++)
        person_add_email(keys, person->emails.items[i]);
    ballot_names_add_all(keys, &person->keys);
}

/* An agent whose token is verified is its subject; the name of an operator is a person's or, of
 * before it had one, a token's. Nobody knows whose other calls are. */
static void maker_keys(const struct person_maker *maker, struct ballot_names *keys)
{
    struct str owner = str_from(maker->owner);
    *keys = (struct ballot_names){NULL, 0};
    if (str_starts_with(owner, STR(SUBJECT_PREFIX))) {
        ballot_names_add(keys, maker->owner);
    } else if (str_starts_with(owner, STR(PERSON_OWNER))) {
        const char *name = maker->owner + strlen(PERSON_OWNER);
        person_add_name(keys, name);
        person_add_credential(keys, "token", name);
    }
    person_add_email(keys, maker->email);
    if (*maker->keys && json_check(str_from(maker->keys), NULL))
        ballot_names_read(keys, str_from(maker->keys));
}

/* ---- comparing ---- */

static bool person_meets(const struct person *person, struct ballot_names *others)
{
    struct ballot_names keys;
    person_keys(person, &keys);
    bool is_same = ballot_names_meet(&keys, others);
    ballot_names_finish(&keys);
    ballot_names_finish(others);
    return is_same;
}

bool person_is(const struct person *left, const struct person *right)
{
    struct ballot_names keys;
    person_keys(right, &keys);
    return person_meets(left, &keys);
}

bool person_made(const struct person *person, const struct person_maker *maker)
{
    struct ballot_names keys;
    maker_keys(maker, &keys);
    return person_meets(person, &keys);
}
