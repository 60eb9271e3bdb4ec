/* The request for the policies: entities for caller, action and tool, and a context. */
#include <string.h>
#include <time.h>

#include "engine.h"

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
    return hint_names[hint];
}

static void add(struct members *members, const char *name, struct cedar_value value)
{
    members->items[members->count++] = (struct cedar_member){str_from(name), value};
}

static void add_text(struct members *members, const char *name, struct str text)
{
    add(members, name, cedar_string(text));
}

static struct cedar_value record_of(struct cedar_heap *heap, const struct members *members)
{
    struct cedar_value record;
    /* No name is duplicate, and the depth is bounded elsewhere. */
    bool good = cedar_record(heap, members->items, members->count, &record);
    return good ? record : cedar_bool(false);
}

/* Where the owner's name comes from; seen in its form. */
static struct str identity_of(struct str owner)
{
    static const struct {
        struct str prefix, identity;
    } forms[] = {{STR("auth:"), STR("authorization")},
                 {STR("session:"), STR("session")},
                 {STR("admin:"), STR("admin")}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (str_starts_with(owner, forms[i].prefix))
            return forms[i].identity;
    }
    return STR("anonymous");
}

static bool add_principal(struct cedar_entities *entities, const struct policy_principal *principal,
                          struct cedar_request *request)
{
    struct members app = {.count = 0}, role_attributes = {.count = 0};
    struct cedar_heap *heap = cedar_entities_heap(entities);
    struct str identity = identity_of(principal->owner);
    struct cedar_uid role = cedar_uid(STR(NAMESPACE "Role"), identity);
    request->principal = cedar_uid(STR(NAMESPACE "App"), principal->owner);
    add_text(&role_attributes, "name", identity);
    add_text(&app, "name", principal->owner);
    add_text(&app, "identity", identity);
    add_text(&app, "client_name", principal->client_name);
    add_text(&app, "client_version", principal->client_version);
    return cedar_entities_add(entities, &role, record_of(heap, &role_attributes).record, NULL, NULL,
                              0, NULL) &&
           cedar_entities_add(entities, &request->principal, record_of(heap, &app).record, NULL,
                              &role, 1, NULL);
}

static bool add_tool(struct cedar_entities *entities, const struct policy_request *asked,
                     struct cedar_value arguments, struct cedar_request *request)
{
    struct members tool = {.count = 0};
    struct cedar_heap *heap = cedar_entities_heap(entities);
    request->resource = cedar_uid(STR(NAMESPACE "ToolCall"), asked->name);
    add_text(&tool, "name", asked->name);
    add_text(&tool, "server", str_from(asked->source->id));
    add(&tool, "arguments", arguments);
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
    add(&members, "hour", cedar_long(parts.tm_hour));
    add(&members, "day_of_week", cedar_long(parts.tm_wday));
    add(&members, "timestamp", cedar_long(seconds));
    add(&members, "datetime", cedar_datetime(now_ms));
    return record_of(heap, &members);
}

static struct cedar_value annotations_of(struct cedar_heap *heap, const struct policy_hints *hints)
{
    struct members members = {.count = 0};
    for (unsigned i = 0; i < HINT_COUNT; i++) {
        if (hints->given & 1U << i)
            add(&members, hint_names[i], cedar_bool(hints->truth & 1U << i));
    }
    return record_of(heap, &members);
}

static const struct cedar_record *context_of(struct cedar_heap *heap, const struct inquiry *inquiry,
                                             const struct config_rule *rule)
{
    struct members members = {.count = 0};
    add_text(&members, "policy_id", str_from(rule ? rule->policy_id : NULL));
    add_text(&members, "source_id", str_from(inquiry->request->source->id));
    bool is_unknown = inquiry->unknown & UNKNOWN_CALLER;
    add(&members, "time", is_unknown ? cedar_unknown() : time_of(heap, inquiry->facts->now_ms));
    add(&members, "annotations",
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
    bool good = add_principal(question->entities, &inquiry->facts->principal, &question->request) &&
                add_tool(question->entities, inquiry->request, arguments, &question->request) &&
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
