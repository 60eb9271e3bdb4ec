/* Votes as values and as JSON. */
#include "taskgate/approval/votes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"

/* ---- votes ---- */

const char *ballot_verb_name(enum ballot_verb verb)
{
    return verb == BALLOT_APPROVE ? "approve" : "reject";
}

static void finish_vote(struct ballot_vote *vote)
{
    person_finish(&vote->person);
    free(vote->reason);
    free(vote->reaction);
}

void ballot_votes_finish(struct ballot_votes *votes)
{
    for (size_t i = 0; i < votes->count; i++)
        finish_vote(&votes->items[i]);
    free(votes->items);
    *votes = (struct ballot_votes){NULL, 0};
}

static struct ballot_vote *votes_append(struct ballot_votes *votes)
{
    votes->items = memory_grow_array(votes->items, votes->count + 1, sizeof *votes->items);
    struct ballot_vote *vote = &votes->items[votes->count++];
    *vote = (struct ballot_vote){.stands = true};
    return vote;
}

struct ballot_vote *ballot_votes_add(struct ballot_votes *votes, const struct person *person,
                                     enum ballot_verb verb)
{
    struct ballot_vote *vote = votes_append(votes);
    person_copy(&vote->person, person);
    vote->verb = verb;
    return vote;
}

void ballot_votes_remove(struct ballot_votes *votes, size_t index)
{
    ASSERT_NUMBERS(index, <, votes->count);
    finish_vote(&votes->items[index]);
    votes->count--;
    memmove(&votes->items[index], &votes->items[index + 1],
            (votes->count - index) * sizeof *votes->items);
}

struct ballot_vote *ballot_votes_of(const struct ballot_votes *votes, const struct person *person)
{
    for (size_t i = 0; i < votes->count; i++) {
        if (person_is(&votes->items[i].person, person))
            return &votes->items[i];
    }
    return NULL;
}

/* ---- as JSON ---- */

/* The texts of a vote by their keys; the first must be there. */
static const struct {
    const char *key;
    size_t offset;
} texts[] = {
    {"person", offsetof(struct ballot_vote, person.name)},
    {"reason", offsetof(struct ballot_vote, reason)},
    {"reaction", offsetof(struct ballot_vote, reaction)},
    {"via", offsetof(struct ballot_vote, person.via)},
    {"credential", offsetof(struct ballot_vote, person.credential)},
    {"issuer", offsetof(struct ballot_vote, person.issuer)},
    {"subject", offsetof(struct ballot_vote, person.subject)},
};
#define TEXT_COUNT (sizeof texts / sizeof *texts)

static char **votes_text_at(const struct ballot_vote *vote, size_t i)
{
    return (char **)(void *)((char *)vote + texts[i].offset);
}

static void votes_write_vote(struct buffer *out, const struct ballot_vote *vote)
{
    buffer_append_format(out, "{\"at\":%" PRId64, vote->at_ms);
    json_add_text(out, "verb", ballot_verb_name(vote->verb));
    for (size_t i = 0; i < TEXT_COUNT; i++) {
        if (*votes_text_at(vote, i))
            json_add_text(out, texts[i].key, *votes_text_at(vote, i));
    }
    json_add_bool(out, "named", vote->person.is_named);
    json_add_bool(out, "emergency", vote->is_emergency);
    if (vote->grant.calls > 0)
        buffer_append_format(out, ",\"grantForMs\":%" PRId64 ",\"grantCalls\":%" PRId64,
                             vote->grant.for_ms, vote->grant.calls);
    json_add_key(out, "emails");
    ballot_names_write(out, &vote->person.emails);
    json_add_key(out, "groups");
    ballot_names_write(out, &vote->person.groups);
    json_add_key(out, "claimed");
    ballot_names_write(out, &vote->person.claimed);
    json_add_key(out, "keys");
    ballot_names_write(out, &vote->person.keys);
    buffer_append_char(out, '}');
}

void ballot_votes_write(struct buffer *out, const struct ballot_votes *votes)
{
    for (size_t i = 0; i < votes->count; i++) {
        buffer_append_char(out, i == 0 ? '[' : ',');
        votes_write_vote(out, &votes->items[i]);
    }
    if (votes->count > 0)
        buffer_append_char(out, ']');
}

/* Votes of an older version have none. */
static void votes_read_wish(struct ballot_wish *wish, struct str object)
{
    uint64_t for_ms, calls;
    if (!str_to_u64(json_member(object, "grantForMs"), &for_ms) || for_ms > INT64_MAX ||
        !str_to_u64(json_member(object, "grantCalls"), &calls) || calls > INT64_MAX)
        return;
    *wish = (struct ballot_wish){(int64_t)for_ms, (int64_t)calls};
}

static bool read_vote(struct ballot_vote *vote, struct str object)
{
    uint64_t at_ms;
    struct str verb = json_member(object, "verb");
    for (size_t i = 0; i < TEXT_COUNT; i++)
        *votes_text_at(vote, i) = json_string_text(json_member(object, texts[i].key), NULL);
    vote->person.is_named = json_type(json_member(object, "named")) == JSON_TRUE;
    vote->is_emergency = json_type(json_member(object, "emergency")) == JSON_TRUE;
    votes_read_wish(&vote->grant, object);
    ballot_names_read(&vote->person.emails, json_member(object, "emails"));
    ballot_names_read(&vote->person.groups, json_member(object, "groups"));
    ballot_names_read(&vote->person.claimed, json_member(object, "claimed"));
    ballot_names_read(&vote->person.keys,
                      json_member(object, "keys")); /* of an older version: none */
    vote->verb = json_string_equals(verb, STR("approve")) ? BALLOT_APPROVE : BALLOT_REJECT;
    if (!str_to_u64(json_member(object, "at"), &at_ms) || at_ms > INT64_MAX || !vote->person.name)
        return false;
    vote->at_ms = (int64_t)at_ms;
    return vote->verb == BALLOT_APPROVE || json_string_equals(verb, STR("reject"));
}

bool ballot_votes_read(struct ballot_votes *votes, struct str text)
{
    size_t position = 0;
    struct str element;
    *votes = (struct ballot_votes){NULL, 0};
    if (text.length == 0)
        return true;
    bool is_good = json_check(text, NULL) && json_type(text) == JSON_ARRAY;
    while (is_good && json_next_element(text, &position, &element))
        is_good = read_vote(votes_append(votes), element);
    if (!is_good)
        ballot_votes_finish(votes);
    return is_good;
}
