/* The request for the policies: entities for caller, action and tool, and a context. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"

/* Arguments of a call as values that policies can look at: one pass, however deep they nest. */

/* The text is valid JSON, so the first byte gives the kind of value. */
struct reader {
    struct cedar_heap *heap;
    const char *at, *end;
    unsigned depth;
};

static bool question_read_value(struct reader *reader, struct cedar_value *value);

/* Whether the next byte is one of `bytes`. */
static bool is_at(const struct reader *reader, struct str bytes)
{
    return reader->at < reader->end && memchr(bytes.bytes, *reader->at, bytes.length);
}

static char question_peek(struct reader *reader)
{
    while (is_at(reader, STR(" \t\r\n")))
        reader->at++;
    if (reader->at == reader->end)
        return '\0';
    return *reader->at;
}

static struct str question_read_string(struct reader *reader)
{
    const char *quote = reader->at++;
    bool has_escapes = false;
    for (; *reader->at != '"'; reader->at++) {
        if (*reader->at == '\\') {
            has_escapes = true;
            reader->at++;
        }
    }
    reader->at++;
    struct str quoted = str_slice(quote, (size_t)(reader->at - quote));
    if (!has_escapes)
        return str_slice(quote + 1, quoted.length - 2);
    OWNED_BUFFER(text);
    json_decode_string(quoted, &text);
    struct str copy = cedar_heap_copy(reader->heap, buffer_str(&text));
    return copy;
}

/* Digits alone, within 64 bits. 1.0 and 1e3 are no integers: policies get them as written. */
static bool question_is_integer(struct str text, int64_t *number)
{
    bool is_negative = str_starts_with(text, STR("-"));
    uint64_t magnitude;
    if (is_negative)
        text = str_slice(text.bytes + 1, text.length - 1);
    if (!str_to_u64(text, &magnitude) || magnitude > (uint64_t)INT64_MAX + is_negative)
        return false;
    *number = (int64_t)(is_negative ? 0 - magnitude : magnitude);
    return true;
}

static struct cedar_value question_read_number(struct reader *reader)
{
    const char *start = reader->at;
    int64_t number;
    while (is_at(reader, STR("+-.0123456789eE")))
        reader->at++;
    struct str text = str_slice(start, (size_t)(reader->at - start));
    return question_is_integer(text, &number) ? cedar_long(number) : cedar_string(text);
}

/* Room for one more item; the arrays double. */
static void *question_grow(void *items, size_t count, size_t size)
{
    bool is_full = count == 0 || (count >= 8 && (count & (count - 1)) == 0);
    if (!is_full)
        return items;
    return memory_grow_array(items, count < 8 ? 8 : count * 2, size);
}

static bool question_read_set(struct reader *reader, struct cedar_value *value)
{
    OWNED struct cedar_value *elements = NULL;
    size_t count = 0;
    bool good = true;
    reader->at++;
    while (good && question_peek(reader) != ']') {
        elements = question_grow(elements, count, sizeof *elements);
        good = question_read_value(reader, &elements[count++]);
        if (good && question_peek(reader) == ',')
            reader->at++;
    }
    reader->at++;
    good = good && cedar_set(reader->heap, elements, count, value);
    return good;
}

static bool question_read_record(struct reader *reader, struct cedar_value *value)
{
    OWNED struct cedar_member *members = NULL;
    size_t count = 0;
    bool good = true;
    reader->at++;
    while (good && question_peek(reader) != '}') {
        members = question_grow(members, count, sizeof *members);
        members[count].name = question_read_string(reader);
        question_peek(reader);
        reader->at++; /* the colon */
        good = question_read_value(reader, &members[count++].value);
        if (good && question_peek(reader) == ',')
            reader->at++;
    }
    reader->at++;
    good = good && cedar_record_of_names(reader->heap, members, count, value);
    return good;
}

static bool read_nested(struct reader *reader, struct cedar_value *value)
{
    if (reader->depth == ENGINE_MAX_ARGUMENT_DEPTH)
        return false;
    reader->depth++;
    bool good =
        *reader->at == '{' ? question_read_record(reader, value) : question_read_set(reader, value);
    ASSERT_NUMBERS(reader->depth, >, 0);
    reader->depth--;
    return good;
}

static bool question_read_value(struct reader *reader, struct cedar_value *value)
{
    switch (question_peek(reader)) {
    case '{':
    case '[':
        return read_nested(reader, value);
    case '"':
        *value = cedar_string(question_read_string(reader));
        return true;
    case 't':
        reader->at += 4;
        *value = cedar_bool(true);
        return true;
    case 'f':
        reader->at += 5;
        *value = cedar_bool(false);
        return true;
    case 'n':
        reader->at += 4;
        return cedar_record(reader->heap, NULL, 0, value);
    case '\0':
        return false;
    default:
        *value = question_read_number(reader);
        return true;
    }
}

bool arguments_convert(struct cedar_heap *heap, struct str json, struct cedar_value *value)
{
    struct reader reader = {.heap = heap, .at = json.bytes, .end = json.bytes + json.length};
    return json.length > 0 && question_read_value(&reader, value);
}

#define NAMESPACE "ThoughtGate::"

/* Members of a record while it is written down; no record here has more. */
struct members {
    struct cedar_member items[HINT_COUNT + 4];
    size_t count;
};

static const char *const hint_names[HINT_COUNT] = {
    [HINT_READ_ONLY] = "readOnlyHint",
    [HINT_DESTRUCTIVE] = "destructiveHint",
    [HINT_IDEMPOTENT] = "idempotentHint",
    [HINT_OPEN_WORLD] = "openWorldHint",
};

const char *policy_hint_name(enum policy_hint hint)
{
    ASSERT_NUMBERS(hint, <, HINT_COUNT);
    return hint_names[hint];
}

static void question_add(struct members *members, const char *name, struct cedar_value value)
{
    ASSERT_NUMBERS(members->count, <, sizeof members->items / sizeof *members->items);
    members->items[members->count++] = (struct cedar_member){str_from(name), value};
}

static void question_add_text(struct members *members, const char *name, struct str text)
{
    question_add(members, name, cedar_string(text));
}

static struct cedar_value record_of(struct cedar_heap *heap, const struct members *members)
{
    struct cedar_value record;
    /* No name is duplicate, and the depth is bounded elsewhere. */
    bool good = cedar_record(heap, members->items, members->count, &record);
    return good ? record : cedar_bool(false);
}

/* The origin of the owner's name, by its form. */
static struct str question_identity_of(struct str owner, const struct policy_verified *verified)
{
    static const struct {
        struct str prefix, identity;
    } forms[] = {{STR("auth:"), STR("authorization")},
                 {STR("session:"), STR("session")},
                 {STR("admin:"), STR("admin")}};
    if (verified)
        return STR("subject");
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (str_starts_with(owner, forms[i].prefix))
            return forms[i].identity;
    }
    return STR("anonymous");
}

static struct cedar_value set_of(struct cedar_heap *heap, const struct config_strings *texts)
{
    struct cedar_value *items = memory_alloc_array(texts->count + 1, sizeof *items), set;
    for (size_t i = 0; i < texts->count; i++)
        items[i] = cedar_string(str_from(texts->items[i]));
    bool good = cedar_set(heap, items, texts->count, &set);
    free(items);
    return good ? set : cedar_bool(false); /* a set of texts is never too deep */
}

static bool add_role(struct cedar_entities *entities, const struct cedar_uid *role)
{
    struct members attributes = {.count = 0};
    question_add_text(&attributes, "name", role->id);
    return cedar_entities_add(entities, role,
                              record_of(cedar_entities_heap(entities), &attributes).record, NULL,
                              NULL, 0, NULL);
}

/* The parents of the principal: its groups, or the one role that its owner's name tells. The same
 * group may be named twice. */
static struct cedar_uid *question_roles_of(struct str identity,
                                           const struct policy_verified *verified, size_t *count)
{
    const struct config_strings none = {0};
    const struct config_strings *groups = verified ? &verified->groups : &none;
    struct cedar_uid *roles = memory_alloc_array(groups->count + 1, sizeof *roles);
    for (size_t i = 0; i < groups->count; i++)
        roles[i] = cedar_uid(STR(NAMESPACE "Role"), str_from(groups->items[i]));
    if (!verified)
        roles[0] = cedar_uid(STR(NAMESPACE "Role"), identity);
    *count = verified ? groups->count : 1;
    return roles;
}

static bool add_principal(struct cedar_entities *entities, const struct inquiry *inquiry,
                          struct cedar_request *request)
{
    static const struct policy_verified nobody = {.subject = STR("")};
    const struct policy_principal *principal = &inquiry->facts->principal;
    const struct policy_verified *verified = inquiry->request->verified;
    const struct policy_verified *claims = verified ? verified : &nobody;
    struct cedar_heap *heap = cedar_entities_heap(entities);
    struct str identity = question_identity_of(principal->owner, verified);
    struct str name = verified ? verified->subject : principal->owner;
    struct members app = {.count = 0};
    size_t count;
    OWNED struct cedar_uid *roles = question_roles_of(identity, verified, &count);
    bool good = true;
    request->principal = cedar_uid(STR(NAMESPACE "App"), name);
    question_add_text(&app, "name", name);
    question_add_text(&app, "identity", identity);
    question_add_text(&app, "client_name", principal->client_name);
    question_add_text(&app, "client_version", principal->client_version);
    question_add(&app, "groups", set_of(heap, &claims->groups));
    question_add(&app, "scopes", set_of(heap, &claims->scopes));
    if (verified) {
        question_add_text(&app, "issuer", verified->issuer);
        question_add_text(&app, "subject", verified->subject);
    }
    for (size_t i = 0; good && i < count; i++)
        good = add_role(entities, &roles[i]);
    good = good && cedar_entities_add(entities, &request->principal, record_of(heap, &app).record,
                                      NULL, roles, count, NULL);
    return good;
}

static bool question_add_tool(struct cedar_entities *entities, const struct policy_request *asked,
                              struct cedar_value arguments, struct cedar_request *request)
{
    struct members tool = {.count = 0};
    struct cedar_heap *heap = cedar_entities_heap(entities);
    request->resource = cedar_uid(STR(NAMESPACE "ToolCall"), asked->name);
    question_add_text(&tool, "name", asked->name);
    question_add_text(&tool, "server", str_from(asked->source->id));
    question_add(&tool, "arguments", arguments);
    return cedar_entities_add(entities, &request->resource, record_of(heap, &tool).record, NULL,
                              NULL, 0, NULL);
}

/* In UTC; Sunday is 0. */
static struct cedar_value time_of(struct cedar_heap *heap, int64_t now_ms)
{
    struct members members = {.count = 0};
    time_t seconds = (time_t)(now_ms / 1000);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    question_add(&members, "hour", cedar_long(parts.tm_hour));
    question_add(&members, "day_of_week", cedar_long(parts.tm_wday));
    question_add(&members, "timestamp", cedar_long(seconds));
    question_add(&members, "datetime", cedar_datetime(now_ms));
    return record_of(heap, &members);
}

static struct cedar_value annotations_of(struct cedar_heap *heap, const struct policy_hints *hints)
{
    struct members members = {.count = 0};
    for (unsigned i = 0; i < HINT_COUNT; i++) {
        if (hints->given & 1U << i)
            question_add(&members, hint_names[i], cedar_bool(hints->truth & 1U << i));
    }
    return record_of(heap, &members);
}

static const struct cedar_record *context_of(struct cedar_heap *heap, const struct inquiry *inquiry,
                                             const struct config_rule *rule)
{
    struct members members = {.count = 0};
    question_add_text(&members, "policy_id", str_from(rule ? rule->policy_id : NULL));
    question_add_text(&members, "source_id", str_from(inquiry->request->source->id));
    bool is_unknown = inquiry->unknown & UNKNOWN_CALLER;
    question_add(&members, "time",
                 is_unknown ? cedar_unknown() : time_of(heap, inquiry->facts->now_ms));
    question_add(&members, "annotations",
                 is_unknown ? cedar_unknown() : annotations_of(heap, &inquiry->facts->hints));
    return record_of(heap, &members).record;
}

const char *question_init(struct question *question, const struct inquiry *inquiry,
                          const struct policy_decision *decision)
{
    struct cedar_value arguments = cedar_unknown();
    *question = (struct question){.entities = cedar_entities_create()};
    struct cedar_heap *heap = cedar_entities_heap(question->entities);
    struct str json = inquiry->request->arguments;
    question->request.principal_is_unknown = inquiry->unknown & UNKNOWN_CALLER;
    if (!(inquiry->unknown & UNKNOWN_ARGUMENTS) &&
        !arguments_convert(heap, json.length ? json : STR("{}"), &arguments))
        return "the arguments nest too deeply";
    bool good =
        add_principal(question->entities, inquiry, &question->request) &&
        question_add_tool(question->entities, inquiry->request, arguments, &question->request) &&
        cedar_entities_seal(question->entities, NULL);
    question->request.context = context_of(heap, inquiry, decision->rule);
    return good ? NULL : "policies cannot judge the request";
}

void question_finish(struct question *question)
{
    cedar_entities_destroy(question->entities);
}

struct cedar_uid question_action(const char *name)
{
    return cedar_uid(STR(NAMESPACE "Action"), str_from(name));
}
