/* The policies of a configuration: parsed, checked, distinguished by their annotations. */
#include <stdlib.h>
#include <string.h>

#include "cedar/ast.h"
#include "engine.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

/* The facts that policies can ask about, and a search in each policy for other names. A misspelt
 * name, or one of another system, makes a policy that silently never applies. */

/* ---- known names ---- */

#define NAMESPACE "ThoughtGate::"

struct shape;
struct field {
    const char *name;
    const struct shape *shape;
};
/* The known shape of a value: none (NULL), text, an argument or part of one, or its members. */
struct shape {
    const char *name; /* as messages call it */
    bool is_text, is_argument;
    struct field fields[9]; /* ended by one without a name */
};

static const struct shape vocabulary_text = {.name = "a string", .is_text = true};
static const struct shape argument = {.name = "an argument", .is_argument = true};
static const struct shape role = {.name = NAMESPACE "Role", .fields = {{"name", &vocabulary_text}}};
static const struct shape app = {.name = "the principal",
                                 .fields = {{"name", &vocabulary_text},
                                            {"identity", &vocabulary_text},
                                            {"client_name", &vocabulary_text},
                                            {"client_version", &vocabulary_text},
                                            {"issuer", &vocabulary_text},
                                            {"subject", &vocabulary_text},
                                            {"groups", NULL},
                                            {"scopes", NULL}}};
static const struct shape tool_call = {
    .name = "the resource",
    .fields = {{"name", &vocabulary_text}, {"server", &vocabulary_text}, {"arguments", &argument}}};
static const struct shape method = {
    .name = NAMESPACE "McpMethod",
    .fields = {{"method", &vocabulary_text}, {"server", &vocabulary_text}}};
static const struct shape moment = {
    .name = "context.time",
    .fields = {{"hour", NULL}, {"day_of_week", NULL}, {"timestamp", NULL}, {"datetime", NULL}}};
static const struct shape annotations = {.name = "context.annotations",
                                         .fields = {{"readOnlyHint", NULL},
                                                    {"destructiveHint", NULL},
                                                    {"idempotentHint", NULL},
                                                    {"openWorldHint", NULL}}};
static const struct shape context = {.name = "the context",
                                     .fields = {{"policy_id", &vocabulary_text},
                                                {"source_id", &vocabulary_text},
                                                {"time", &moment},
                                                {"annotations", &annotations}}};

static const struct {
    const char *type;
    const struct shape *shape;
} types[] = {
    {NAMESPACE "App", &app},
    {NAMESPACE "Role", &role},
    {NAMESPACE "ToolCall", &tool_call},
    {NAMESPACE "McpMethod", &method},
};

static const char *const actions[] = {"Forward", "Approve", "tools/call", "mcp/method"};
static const char *const roles[] = {"authorization", "session", "admin", "anonymous"};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* ---- looking ---- */

struct inspection {
    const struct cedar_policy *policy;
    const struct shape *resource; /* as the policy's scope has it */
    struct config_problems *problems;
    bool has_groups; /* a source has auth, so that any role may exist */
};

static void engine_warn(const struct inspection *inspection, uint32_t offset, char *message)
{
    struct cedar_position position = source_position(inspection->policy->source, offset);
    config_problems_add(inspection->problems, true, position.source, (int)position.line,
                        (int)position.column, message);
    free(message);
}

static const struct field *find_field(const struct shape *shape, struct str name)
{
    for (const struct field *field = shape->fields; field->name; field++) {
        if (str_equal(name, str_from(field->name)))
            return field;
    }
    return NULL;
}

static void warn_of_field(const struct inspection *inspection, uint32_t offset,
                          const struct shape *shape, struct str name)
{
    OWNED_BUFFER(message);
    buffer_append_format(&message, "%s has no attribute \"%.*s\"; it has", shape->name,
                         STR_ARGS(name));
    for (const struct field *field = shape->fields; field->name; field++)
        buffer_append_format(&message, "%s %s", field == shape->fields ? "" : ",", field->name);
    engine_warn(inspection, offset, buffer_take(&message, NULL));
}

static const struct shape *shape_of_type(struct str type)
{
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        if (str_equal(type, str_from(types[i].type)))
            return types[i].shape;
    }
    return NULL;
}

static void engine_check_type(const struct inspection *inspection, uint32_t offset, struct str type)
{
    if (shape_of_type(type) || str_equal(type, STR(NAMESPACE "Action")))
        return;
    engine_warn(inspection, offset,
                memory_format("there are no entities of the type %.*s; there are " NAMESPACE
                              "App, Role, ToolCall and Action",
                              STR_ARGS(type)));
}

static bool engine_is_one_of(struct str id, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (str_equal(id, str_from(names[i])))
            return true;
    }
    return false;
}

static void check_entity(const struct inspection *inspection, uint32_t offset,
                         const struct cedar_uid *uid)
{
    engine_check_type(inspection, offset, uid->type);
    if (str_equal(uid->type, STR(NAMESPACE "Action")) &&
        !engine_is_one_of(uid->id, actions, COUNT_OF(actions)))
        engine_warn(
            inspection, offset,
            memory_format("there is no action \"%.*s\"; there are Forward, Approve and tools/call",
                          STR_ARGS(uid->id)));
    if (str_equal(uid->type, STR(NAMESPACE "Role")) && !inspection->has_groups &&
        !engine_is_one_of(uid->id, roles, COUNT_OF(roles)))
        engine_warn(
            inspection, offset,
            memory_format("there is no role \"%.*s\"; there are authorization, session, admin and "
                          "anonymous",
                          STR_ARGS(uid->id)));
}

static void check_constant(const struct inspection *inspection, uint32_t offset,
                           const struct cedar_value *value)
{
    if (value->kind == CEDAR_ENTITY)
        check_entity(inspection, offset, value->entity);
    for (size_t i = 0; value->kind == CEDAR_SET && i < value->set->count; i++)
        check_constant(inspection, offset, &value->set->items[i]);
    for (size_t i = 0; value->kind == CEDAR_RECORD && i < value->record->count; i++)
        check_constant(inspection, offset, &value->record->members[i].value);
}

/* ---- expressions ---- */

static const struct shape *shape_of_variable(const struct inspection *inspection,
                                             enum variable variable)
{
    switch (variable) {
    case VARIABLE_PRINCIPAL:
        return &app;
    case VARIABLE_RESOURCE:
        return inspection->resource;
    case VARIABLE_CONTEXT:
        return &context;
    case VARIABLE_ACTION:
        break;
    }
    return NULL;
}

static bool has_known_members(const struct shape *shape)
{
    return shape && !shape->is_text && !shape->is_argument;
}

/* `has` of a path: the warning names the first member that never exists. */
static void check_path(const struct inspection *inspection, const struct node *node,
                       const struct shape *shape)
{
    for (uint32_t i = 0; has_known_members(shape) && i < node->name_count; i++) {
        const struct field *field = find_field(shape, node->names[i]);
        if (!field)
            warn_of_field(inspection, node->offset, shape, node->names[i]);
        shape = field ? field->shape : NULL;
    }
}

static const struct shape *shape_of_member(const struct inspection *inspection,
                                           const struct node *node, const struct shape *shape)
{
    if (!has_known_members(shape))
        return shape && shape->is_argument ? shape : NULL;
    const struct field *field = find_field(shape, node->name);
    if (!field)
        warn_of_field(inspection, node->offset, shape, node->name);
    return field ? field->shape : NULL;
}

static void warn_of_operation(const struct inspection *inspection, const struct node *node,
                              const char *operation, const struct shape *shape, const char *hint)
{
    engine_warn(inspection, node->offset,
                memory_format("%s on %s is an error each time; %s", operation, shape->name, hint));
}

/* Searches the tree; returns the known shape of the node's value. The parser bounds the height. */
static const struct shape *inspect(const struct inspection *inspection, const struct node *node)
{
    const struct shape *first = NULL;
    for (uint32_t i = 0; i < node->count; i++) {
        const struct shape *shape = inspect(inspection, node->operands[i]);
        if (i == 0)
            first = shape;
    }
    bool on_text = first && first->is_text, on_argument = first && first->is_argument;
    switch (node->kind) {
    case NODE_CONSTANT:
        check_constant(inspection, node->offset, &node->constant);
        return node->constant.kind == CEDAR_STRING ? &vocabulary_text : NULL;
    case NODE_VARIABLE:
        return shape_of_variable(inspection, node->variable);
    case NODE_GET:
        return shape_of_member(inspection, node, first);
    case NODE_HAS:
        check_path(inspection, node, first);
        break;
    case NODE_IS:
        engine_check_type(inspection, node->offset, node->name);
        if (on_text || on_argument)
            warn_of_operation(inspection, node, "\"is\"", first, "only an entity is of a type");
        break;
    case NODE_IN:
        if (on_text || on_argument)
            warn_of_operation(inspection, node, "\"in\"", first,
                              "write [\"a\", \"b\"].contains(…)");
        break;
    case NODE_CONTAINS:
    case NODE_CONTAINS_ALL:
    case NODE_CONTAINS_ANY:
        if (on_text)
            warn_of_operation(inspection, node, "\"contains\"", first, "write … like \"*part*\"");
        break;
    default:
        break;
    }
    return NULL;
}

/* ---- heads ---- */

static void check_scope(const struct inspection *inspection, const struct scope *scope)
{
    if (scope->kind == SCOPE_IS || scope->kind == SCOPE_IS_IN)
        engine_check_type(inspection, inspection->policy->start, scope->type);
    for (size_t i = 0; scope->kind != SCOPE_ANY && i < scope->count; i++)
        check_entity(inspection, inspection->policy->start, scope->entities[i]);
}

static bool names_only(const struct scope *action, const char *name)
{
    bool names = action->count > 0;
    for (size_t i = 0; i < action->count; i++)
        names = names && str_equal(action->entities[i]->id, str_from(name));
    return action->kind != SCOPE_ANY && names;
}

static const struct shape *resource_of(const struct scope *scope)
{
    struct str type = scope->kind == SCOPE_EQUAL ? scope->entities[0]->type : scope->type;
    bool is_told = scope->kind != SCOPE_ANY && scope->kind != SCOPE_IN;
    return is_told ? shape_of_type(type) : &tool_call;
}

static void check_policy(const struct cedar_policy *policy, bool has_groups,
                         struct config_problems *problems)
{
    struct inspection inspection = {policy, resource_of(&policy->resource), problems, has_groups};
    check_scope(&inspection, &policy->principal);
    check_scope(&inspection, &policy->action);
    check_scope(&inspection, &policy->resource);
    if (policy->effect == CEDAR_FORBID && names_only(&policy->action, "Forward"))
        engine_warn(
            &inspection, policy->start,
            memory_copy_text("a forbid on Forward alone does not reject: the call may still be "
                             "approved; leave the action out to reject it"));
    if (policy->condition)
        inspect(&inspection, policy->condition);
}

/* Warns of a fact that a policy asks about and the gateway never has. */
static void vocabulary_check(const struct config *config, const struct cedar_policies *policies,
                             struct config_problems *problems)
{
    bool has_groups = false;
    for (size_t i = 0; i < config->source_count; i++)
        has_groups = has_groups || config->sources[i].auth.issuer;
    for (size_t i = 0; i < cedar_policies_count(policies); i++)
        check_policy(cedar_policies_at(policies, i), has_groups, problems);
}

#define WORKFLOW_ANNOTATION STR("thoughtgate_approval")

/* "NAME:LINE:COLUMN: MESSAGE", by the name of a source. `line` ends with a NUL. */
static bool add_placed(struct config_problems *problems, const char *name, struct str line)
{
    struct str rest, row, column;
    uint64_t row_number, column_number;
    size_t length = strlen(name);
    if (line.length <= length || !str_starts_with(line, str_from(name)) ||
        line.bytes[length] != ':')
        return false;
    rest = str_slice(line.bytes + length + 1, line.length - length - 1);
    if (!str_cut(rest, ':', &row, &rest) || !str_cut(rest, ':', &column, &rest) ||
        !str_to_u64(row, &row_number) || !str_to_u64(column, &column_number))
        return false;
    config_problems_add(problems, false, name, (int)row_number, (int)column_number,
                        str_trim(rest).bytes);
    return true;
}

/* Each line of `text` is a problem of its own, which says where it is. */
static void engine_add_lines(const struct config *config, struct config_problems *problems,
                             struct str text)
{
    struct str line;
    while (text.length) {
        str_cut(text, '\n', &line, &text);
        OWNED char *message = memory_copy_str(line);
        bool is_added = line.length == 0;
        for (size_t i = 0; !is_added && i < config->policy_count; i++)
            is_added = add_placed(problems, config->policies[i].name, str_from(message));
        if (!is_added)
            config_problems_add(problems, false, NULL, 0, 0, message);
    }
}

static struct cedar_policies *engine_parse(const struct config *config,
                                           struct config_problems *problems)
{
    OWNED struct cedar_source *sources = memory_alloc_array(config->policy_count, sizeof *sources);
    OWNED_BUFFER(text);
    for (size_t i = 0; i < config->policy_count; i++)
        sources[i] =
            (struct cedar_source){config->policies[i].name,
                                  str_slice(config->policies[i].text, config->policies[i].length)};
    struct cedar_policies *policies = cedar_policies_parse(sources, config->policy_count, &text);
    engine_add_lines(config, problems, buffer_str(&text));
    return policies;
}

static void engine_complain(struct config_problems *problems, bool is_warning,
                            const struct cedar_policy *policy, const char *message)
{
    struct cedar_position position = cedar_policy_position(policy);
    config_problems_add(problems, is_warning, position.source, (int)position.line,
                        (int)position.column, message);
}

const struct config_workflow *engine_workflow_of(const struct engine *engine,
                                                 const struct cedar_policy *policy)
{
    struct str name;
    if (!cedar_policy_annotation(policy, WORKFLOW_ANNOTATION, &name))
        return NULL;
    return config_workflow_find(engine->config, name);
}

/* With a missing workflow nobody could decide. */
static bool engine_check_workflow(const struct engine *engine, const struct cedar_policy *policy,
                                  struct config_problems *problems)
{
    struct str name;
    if (!cedar_policy_annotation(policy, WORKFLOW_ANNOTATION, &name))
        return true;
    if (!config_workflow_find(engine->config, name)) {
        OWNED char *message =
            memory_format("V-006 undefined workflow \"%.*s\" in @thoughtgate_approval; name one of "
                          "the key approval",
                          STR_ARGS(name));
        engine_complain(problems, false, policy, message);
        return false;
    }
    if (cedar_policy_effect(policy) == CEDAR_FORBID)
        engine_complain(
            problems, true, policy,
            "@thoughtgate_approval has no effect on a forbid; only a permit leads to approval");
    return true;
}

bool engine_asks(const struct cedar_policy *policy, const char *policy_id)
{
    struct str id;
    return !policy_id || !cedar_policy_annotation(policy, STR("id"), &id) ||
           str_equal(id, str_from(policy_id));
}

/* A rule without any permit rejects every call: probably a mistake. */
static void check_rules(const struct engine *engine, struct config_problems *problems)
{
    size_t count = cedar_policies_count(engine->policies);
    for (size_t i = 0; i < engine->config->rule_count; i++) {
        const struct config_rule *rule = &engine->config->rules[i];
        bool asks = rule->action != ACTION_POLICY || !rule->policy_id || count == 0;
        for (size_t j = 0; j < count && !asks; j++) {
            const struct cedar_policy *policy = cedar_policies_at(engine->policies, j);
            asks =
                cedar_policy_effect(policy) == CEDAR_PERMIT && engine_asks(policy, rule->policy_id);
        }
        if (asks)
            continue;
        OWNED char *message =
            memory_format("governance.rules[%zu].policy_id: no permit has @id(\"%s\"), and none is "
                          "without an @id, so every call is rejected",
                          i, rule->policy_id);
        config_problems_add(problems, true, engine->config->path, rule->line, rule->column,
                            message);
    }
}

struct engine *engine_create(const struct config *config, struct config_problems *problems)
{
    struct engine *engine = memory_alloc(sizeof *engine);
    bool good;
    engine->config = config;
    engine->policies = engine_parse(config, problems);
    good = engine->policies != NULL;
    for (size_t i = 0; engine->policies && i < cedar_policies_count(engine->policies); i++)
        good =
            engine_check_workflow(engine, cedar_policies_at(engine->policies, i), problems) && good;
    if (good) {
        check_rules(engine, problems);
        vocabulary_check(config, engine->policies, problems);
        return engine;
    }
    engine_destroy(engine);
    return NULL;
}

void engine_destroy(struct engine *engine)
{
    if (!engine)
        return;
    cedar_policies_destroy(engine->policies);
    free(engine);
}

size_t engine_policy_count(const struct engine *engine)
{
    return cedar_policies_count(engine->policies);
}

const struct cedar_policies *engine_policies(const struct engine *engine)
{
    return engine->policies;
}
