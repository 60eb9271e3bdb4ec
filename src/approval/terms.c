/* Terms as a value and as JSON. */
#include "taskgate/approval/terms.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"

/* ---- sets of names ---- */

bool ballot_names_has(const struct ballot_names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->items[i], name) == 0)
            return true;
    }
    return false;
}

void ballot_names_add(struct ballot_names *names, const char *name)
{
    if (ballot_names_has(names, name))
        return;
    names->items = memory_grow_array(names->items, names->count + 1, sizeof *names->items);
    names->items[names->count++] = memory_copy_text(name);
}

#define FEW_NAMES 32

/* An issuer's groups may be many: each is looked up in a map. */
static void add_many(struct ballot_names *names, const struct ballot_names *more)
{
    struct map *known = map_create();
    for (size_t i = 0; i < names->count; i++)
        map_put(known, str_from(names->items[i]), known);
    names->items =
        memory_grow_array(names->items, names->count + more->count, sizeof *names->items);
    for (size_t i = 0; i < more->count; i++) {
        if (map_put(known, str_from(more->items[i]), known))
            continue;
        names->items[names->count++] = memory_copy_text(more->items[i]);
    }
    map_destroy(known, NULL);
}

void ballot_names_add_all(struct ballot_names *names, const struct ballot_names *more)
{
    if (more->count > FEW_NAMES) {
        add_many(names, more);
        return;
    }
    for (size_t i = 0; i < more->count; i++)
        ballot_names_add(names, more->items[i]);
}

bool ballot_names_meet(const struct ballot_names *left, const struct ballot_names *right)
{
    for (size_t i = 0; i < left->count; i++) {
        if (ballot_names_has(right, left->items[i]))
            return true;
    }
    return false;
}

void ballot_names_finish(struct ballot_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
    *names = (struct ballot_names){NULL, 0};
}

void ballot_names_write(struct buffer *out, const struct ballot_names *names)
{
    json_write_texts(out, names->items, names->count);
}

void ballot_names_read(struct ballot_names *names, struct str array)
{
    size_t position = 0;
    struct str element;
    while (json_type(array) == JSON_ARRAY && json_next_element(array, &position, &element)) {
        char *name = json_string_text(element, NULL);
        if (name)
            ballot_names_add(names, name);
        free(name);
    }
}

/* ---- terms ---- */

void ballot_terms_init(struct ballot_terms *terms)
{
    *terms = (struct ballot_terms){.quorum = 1};
}

void ballot_terms_finish(struct ballot_terms *terms)
{
    ballot_names_finish(&terms->groups);
    ballot_names_finish(&terms->people);
    ballot_names_finish(&terms->emergency);
    ballot_names_finish(&terms->grants.vary);
    ballot_names_finish(&terms->grants.by);
    ballot_names_finish(&terms->allow_edit);
    for (size_t i = 0; i < terms->need_count; i++)
        free(terms->needs[i].group);
    free(terms->needs);
    *terms = (struct ballot_terms){.quorum = 1};
}

void ballot_terms_add_need(struct ballot_terms *terms, const char *group, int64_t count)
{
    ASSERT_NUMBERS(count, >, 0);
    terms->needs = memory_grow_array(terms->needs, terms->need_count + 1, sizeof *terms->needs);
    terms->needs[terms->need_count++] = (struct ballot_need){memory_copy_text(group), count};
    terms->quorum = 0;
}

bool ballot_terms_are_plain(const struct ballot_terms *terms)
{
    return !terms->is_unreadable && terms->quorum == 1 && terms->groups.count == 0 &&
           terms->people.count == 0 && terms->emergency.count == 0 &&
           !terms->approve_needs_reason && !terms->reject_needs_reason;
}

int64_t ballot_terms_persons(const struct ballot_terms *terms)
{
    int64_t persons = terms->quorum;
    for (size_t i = 0; i < terms->need_count; i++)
        persons += terms->needs[i].count;
    return persons;
}

/* ---- as JSON ---- */

static void terms_write_quorum(struct buffer *out, const struct ballot_terms *terms)
{
    json_add_key(out, "quorum");
    if (terms->need_count == 0) {
        buffer_append_format(out, "%" PRId64, terms->quorum);
        return;
    }
    buffer_append_char(out, '{');
    for (size_t i = 0; i < terms->need_count; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        buffer_append_json_string(out, str_from(terms->needs[i].group));
        buffer_append_format(out, ":%" PRId64, terms->needs[i].count);
    }
    buffer_append_char(out, '}');
}

static void write_grants(struct buffer *out, const struct ballot_grants *grants)
{
    if (!grants->are_offered)
        return;
    json_add_key(out, "grants");
    buffer_append_format(out, "{\"maxMs\":%" PRId64 ",\"maxCalls\":%" PRId64, grants->max_ms,
                         grants->max_calls);
    json_add_key(out, "vary");
    ballot_names_write(out, &grants->vary);
    json_add_key(out, "by");
    ballot_names_write(out, &grants->by);
    buffer_append_char(out, '}');
}

void ballot_terms_write(struct buffer *out, const struct ballot_terms *terms)
{
    bool has_more = terms->grants.are_offered || terms->allow_edit.count > 0 ||
                    terms->typing != BALLOT_TYPING_RULE;
    if (ballot_terms_are_plain(terms) && !has_more)
        return;
    buffer_append_char(out, '{');
    json_add_key(out, "groups");
    ballot_names_write(out, &terms->groups);
    json_add_key(out, "people");
    ballot_names_write(out, &terms->people);
    terms_write_quorum(out, terms);
    json_add_bool(out, "approveNeedsReason", terms->approve_needs_reason);
    json_add_bool(out, "rejectNeedsReason", terms->reject_needs_reason);
    json_add_key(out, "emergency");
    ballot_names_write(out, &terms->emergency);
    if (terms->typing != BALLOT_TYPING_RULE) {
        json_add_key(out, "typing");
        buffer_append_format(out, "%d", (int)terms->typing);
    }
    write_grants(out, &terms->grants);
    if (terms->allow_edit.count > 0) {
        json_add_key(out, "allowEdit");
        ballot_names_write(out, &terms->allow_edit);
    }
    buffer_append_char(out, '}');
}

static bool terms_read_count(struct str value, int64_t *count)
{
    uint64_t number;
    if (!str_to_u64(value, &number) || number < 1 || number > BALLOT_MOST_PERSONS)
        return false;
    *count = (int64_t)number;
    return true;
}

static bool terms_read_quorum(struct ballot_terms *terms, struct str value)
{
    size_t position = 0;
    struct str key, number;
    int64_t count;
    if (json_type(value) != JSON_OBJECT)
        return terms_read_count(value, &terms->quorum);
    while (json_next_member(value, &position, &key, &number)) {
        char *group = json_string_text(str_slice(key.bytes - 1, key.length + 2), NULL);
        bool is_good = group && terms_read_count(number, &count);
        if (is_good)
            ballot_terms_add_need(terms, group, count);
        free(group);
        if (!is_good)
            return false;
    }
    return terms->need_count > 0 && ballot_terms_persons(terms) <= BALLOT_MOST_PERSONS;
}

/* Terms of an older version have none. Unreadable grants are not offered. */
static void read_grants(struct ballot_grants *grants, struct str object)
{
    static const char *const keys[] = {"maxMs", "maxCalls", "vary", "by"};
    struct str values[sizeof keys / sizeof *keys];
    uint64_t max_ms, max_calls;
    if (json_type(object) != JSON_OBJECT)
        return;
    json_members(object, keys, sizeof keys / sizeof *keys, values);
    grants->are_offered = str_to_u64(values[0], &max_ms) && max_ms <= INT64_MAX &&
                          str_to_u64(values[1], &max_calls) && max_calls <= INT64_MAX &&
                          json_type(values[2]) == JSON_ARRAY && json_type(values[3]) == JSON_ARRAY;
    if (!grants->are_offered)
        return;
    grants->max_ms = (int64_t)max_ms;
    grants->max_calls = (int64_t)max_calls;
    ballot_names_read(&grants->vary, values[2]);
    ballot_names_read(&grants->by, values[3]);
}

void ballot_terms_read(struct ballot_terms *terms, struct str text)
{
    static const char *const keys[] = {
        "groups", "people",    "quorum", "approveNeedsReason", "rejectNeedsReason", "emergency",
        "grants", "allowEdit", "typing"};
    struct str values[sizeof keys / sizeof *keys];
    const struct json_wanted wanted = {
        .keys = keys, .count = sizeof keys / sizeof *keys, .values = values};
    ballot_terms_init(terms);
    if (text.length == 0)
        return;
    terms->is_unreadable =
        !json_check_members(text, &wanted) || json_type(values[0]) != JSON_ARRAY ||
        json_type(values[1]) != JSON_ARRAY || json_type(values[5]) != JSON_ARRAY ||
        !terms_read_quorum(terms, values[2]);
    if (terms->is_unreadable)
        return;
    ballot_names_read(&terms->groups, values[0]);
    ballot_names_read(&terms->people, values[1]);
    ballot_names_read(&terms->emergency, values[5]);
    read_grants(&terms->grants, values[6]);
    ballot_names_read(&terms->allow_edit, values[7]);
    uint64_t typing;
    if (str_to_u64(values[8], &typing) && typing <= BALLOT_TYPING_OFF)
        terms->typing = (enum ballot_typing)typing;
    terms->approve_needs_reason = json_type(values[3]) == JSON_TRUE;
    terms->reject_needs_reason = json_type(values[4]) == JSON_TRUE;
}
