/* Policies as text: annotations, effect, scope and conditions. */
#include "print.h"
#include "taskgate/policy/cedar_print.h"

#define INDENT 2

static void print_annotations(struct buffer *out, const struct cedar_policy *policy)
{
    for (size_t i = 0; i < policy->annotation_count; i++) {
        const struct annotation *annotation = &policy->annotations[i];
        buffer_append_char(out, '@');
        buffer_append(out, annotation->name);
        /* Without a value it has this one. */
        if (annotation->value.length) {
            buffer_append_char(out, '(');
            print_string(out, annotation->value);
            buffer_append_char(out, ')');
        }
        buffer_append_char(out, '\n');
    }
}

/* ---- Scope ----------------------------------------------------------------------------- */

/* An action may be in several entities, or in none. */
static void print_entities(struct buffer *out, const struct scope *scope)
{
    if (scope->count == 1) {
        print_uid(out, scope->entities[0]);
        return;
    }
    buffer_append_char(out, '[');
    for (size_t i = 0; i < scope->count; i++) {
        if (i > 0)
            buffer_append_text(out, ", ");
        print_uid(out, scope->entities[i]);
    }
    buffer_append_char(out, ']');
}

static void print_scope(struct buffer *out, const char *variable, const struct scope *scope)
{
    buffer_append_text(out, variable);
    if (scope->kind == SCOPE_IS || scope->kind == SCOPE_IS_IN) {
        buffer_append_text(out, " is ");
        buffer_append(out, scope->type);
    }
    if (scope->kind == SCOPE_EQUAL)
        buffer_append_text(out, " == ");
    if (scope->kind == SCOPE_IN || scope->kind == SCOPE_IS_IN)
        buffer_append_text(out, " in ");
    if (scope->kind != SCOPE_ANY && scope->kind != SCOPE_IS)
        print_entities(out, scope);
}

/* The three parts, with the given texts before, between and after them. */
static void print_scopes(struct buffer *out, const struct cedar_policy *policy, const char *before,
                         const char *between, const char *behind)
{
    buffer_append_text(out, policy->effect == CEDAR_PERMIT ? "permit" : "forbid");
    buffer_append_text(out, before);
    print_scope(out, "principal", &policy->principal);
    buffer_append_text(out, between);
    print_scope(out, "action", &policy->action);
    buffer_append_text(out, between);
    print_scope(out, "resource", &policy->resource);
    buffer_append_text(out, behind);
}

static void print_head(struct buffer *out, const struct cedar_policy *policy)
{
    struct buffer line;
    buffer_init(&line);
    print_scopes(&line, policy, "(", ", ", ")");
    if (line.length <= PRINT_COLUMNS)
        buffer_append(out, buffer_str(&line));
    else
        print_scopes(out, policy, "(\n  ", ",\n  ", "\n)");
    buffer_finish(&line);
}

/* ---- Conditions ------------------------------------------------------------------------ */

/* An `unless` is a NOT that stands where its word does. */
static bool is_unless(const struct cedar_policy *policy, const struct node *node)
{
    return node->kind == NODE_NOT && policy->source->text.bytes[node->offset] == 'u';
}

static void print_condition(struct buffer *out, const struct cedar_policy *policy,
                            const struct node *node)
{
    bool unless = is_unless(policy, node);
    const struct node *body = unless ? node->operands[0] : node;
    struct buffer line;
    buffer_init(&line);
    buffer_append_text(&line, unless ? "unless { " : "when { ");
    print_expression(&line, body);
    buffer_append_text(&line, " }");
    if (line.length <= PRINT_COLUMNS) {
        buffer_append(out, buffer_str(&line));
    } else {
        buffer_append_text(out, unless ? "unless {" : "when {");
        print_lines(out, body, INDENT);
        buffer_append_text(out, "\n}");
    }
    buffer_finish(&line);
}

void cedar_policy_print(const struct cedar_policy *policy, struct buffer *out)
{
    print_annotations(out, policy);
    print_head(out, policy);
    for (uint32_t i = 0; policy->condition && i < policy->condition->count; i++) {
        buffer_append_char(out, '\n');
        print_condition(out, policy, policy->condition->operands[i]);
    }
    buffer_append_text(out, ";\n");
}

void cedar_policies_print(const struct cedar_policies *policies, struct buffer *out)
{
    for (size_t i = 0; i < policies->count; i++) {
        if (i > 0)
            buffer_append_char(out, '\n');
        cedar_policy_print(policies->items[i], out);
    }
}
