/* The facts that policies can ask about, and a search in each policy for other names. A misspelt
 * name, or one of another system, makes a policy that silently never applies. */
#include <stdlib.h>
#include <string.h>

#include "cedar/ast.h"
#include "engine.h"
#include "taskgate/core/memory.h"

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

static const struct shape text = {.name = "a string", .is_text = true};
static const struct shape argument = {.name = "an argument", .is_argument = true};
static const struct shape role = {.name = NAMESPACE "Role", .fields = {{"name", &text}}};
static const struct shape app = {.name = "the principal",
                                 .fields = {{"name", &text},
                                            {"identity", &text},
                                            {"client_name", &text},
                                            {"client_version", &text},
                                            {"issuer", &text},
                                            {"subject", &text},
                                            {"groups", NULL},
                                            {"scopes", NULL}}};
static const struct shape tool_call = {
    .name = "the resource",
    .fields = {{"name", &text}, {"server", &text}, {"arguments", &argument}}};
static const struct shape method = {.name = NAMESPACE "McpMethod",
                                    .fields = {{"method", &text}, {"server", &text}}};
static const struct shape moment = {
    .name = "context.time",
    .fields = {{"hour", NULL}, {"day_of_week", NULL}, {"timestamp", NULL}, {"datetime", NULL}}};
static const struct shape annotations = {.name = "context.annotations",
                                         .fields = {{"readOnlyHint", NULL},
                                                    {"destructiveHint", NULL},
                                                    {"idempotentHint", NULL},
                                                    {"openWorldHint", NULL}}};
static const struct shape context = {.name = "the context",
                                     .fields = {{"policy_id", &text},
                                                {"source_id", &text},
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

static void warn(const struct inspection *inspection, uint32_t offset, char *message)
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
    struct buffer message;
    buffer_init(&message);
    buffer_append_format(&message, "%s has no attribute \"%.*s\"; it has", shape->name,
                         STR_ARGS(name));
    for (const struct field *field = shape->fields; field->name; field++)
        buffer_append_format(&message, "%s %s", field == shape->fields ? "" : ",", field->name);
    warn(inspection, offset, buffer_take(&message, NULL));
}

static const struct shape *shape_of_type(struct str type)
{
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        if (str_equal(type, str_from(types[i].type)))
            return types[i].shape;
    }
    return NULL;
}

static void check_type(const struct inspection *inspection, uint32_t offset, struct str type)
{
    if (shape_of_type(type) || str_equal(type, STR(NAMESPACE "Action")))
        return;
    warn(inspection, offset,
         memory_format("there are no entities of the type %.*s; there are " NAMESPACE
                       "App, Role, ToolCall and Action",
                       STR_ARGS(type)));
}

static bool is_one_of(struct str id, const char *const *names, size_t count)
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
    check_type(inspection, offset, uid->type);
    if (str_equal(uid->type, STR(NAMESPACE "Action")) &&
        !is_one_of(uid->id, actions, COUNT_OF(actions)))
        warn(inspection, offset,
             memory_format("there is no action \"%.*s\"; there are Forward, Approve and tools/call",
                           STR_ARGS(uid->id)));
    if (str_equal(uid->type, STR(NAMESPACE "Role")) && !inspection->has_groups &&
        !is_one_of(uid->id, roles, COUNT_OF(roles)))
        warn(inspection, offset,
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
    warn(inspection, node->offset,
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
        return node->constant.kind == CEDAR_STRING ? &text : NULL;
    case NODE_VARIABLE:
        return shape_of_variable(inspection, node->variable);
    case NODE_GET:
        return shape_of_member(inspection, node, first);
    case NODE_HAS:
        check_path(inspection, node, first);
        break;
    case NODE_IS:
        check_type(inspection, node->offset, node->name);
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
        check_type(inspection, inspection->policy->start, scope->type);
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
        warn(&inspection, policy->start,
             memory_copy_text("a forbid on Forward alone does not reject: the call may still be "
                              "approved; leave the action out to reject it"));
    if (policy->condition)
        inspect(&inspection, policy->condition);
}

void vocabulary_check(const struct config *config, const struct cedar_policies *policies,
                      struct config_problems *problems)
{
    bool has_groups = false;
    for (size_t i = 0; i < config->source_count; i++)
        has_groups = has_groups || config->sources[i].auth.issuer;
    for (size_t i = 0; i < cedar_policies_count(policies); i++)
        check_policy(cedar_policies_at(policies, i), has_groups, problems);
}
