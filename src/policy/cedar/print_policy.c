/* Policies as text: annotations, effect, scope and conditions. */
#include "ast.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/owned.h"
#include "taskgate/policy/cedar.h"

/* A longer text is broken into lines if possible. */
#define PRINT_COLUMNS 100

/* Strings, patterns and names as they stand in a policy. */

/* The code point at the front of `text`, which is UTF-8, and its length. */
static size_t next_character(struct str text, uint32_t *code)
{
    const unsigned char *p = (const unsigned char *)text.bytes;
    size_t length = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    *code = length == 1 ? p[0] : p[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length && i < text.length; i++)
        *code = *code << 6 | (p[i] & 0x3f);
    return length < text.length ? length : text.length;
}

/* Whether it is not visible as itself: controls, marks of direction, characters without width. */
static bool print_policy_is_hidden(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x00, 0x1f},     {0x7f, 0xa0},     {0xad, 0xad},     {0x61c, 0x61c},
        {0x180e, 0x180e}, {0x2000, 0x200f}, {0x2028, 0x202f}, {0x205f, 0x206f},
        {0x3000, 0x3000}, {0xfeff, 0xfeff}, {0xfff0, 0xfffb}, {0xe0000, 0xe0fff},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return false;
}

static void print_character(struct buffer *out, struct str character, uint32_t code)
{
    static const struct {
        uint32_t code;
        const char *escape;
    } short_ones[] = {{'"', "\\\""}, {'\\', "\\\\"}, {'\n', "\\n"},
                      {'\r', "\\r"}, {'\t', "\\t"},  {'\0', "\\0"}};
    for (size_t i = 0; i < sizeof short_ones / sizeof *short_ones; i++) {
        if (short_ones[i].code != code)
            continue;
        buffer_append_text(out, short_ones[i].escape);
        return;
    }
    if (print_policy_is_hidden(code))
        buffer_append_format(out, "\\u{%x}", (unsigned)code);
    else
        buffer_append(out, character);
}

static void print_characters(struct buffer *out, struct str text, bool is_pattern)
{
    while (text.length) {
        uint32_t code;
        size_t length = next_character(text, &code);
        if (is_pattern && code == '*')
            buffer_append_char(out, '\\');
        print_character(out, str_slice(text.bytes, length), code);
        text = str_slice(text.bytes + length, text.length - length);
    }
}

/* As a string literal, nothing in it that hides or misleads. */
static void print_string(struct buffer *out, struct str text)
{
    buffer_append_char(out, '"');
    print_characters(out, text, false);
    buffer_append_char(out, '"');
}

static void print_pattern(struct buffer *out, const struct pattern *pattern)
{
    buffer_append_char(out, '"');
    for (size_t i = 0; i < pattern->count; i++) {
        if (i > 0)
            buffer_append_char(out, '*');
        print_characters(out, pattern->pieces[i], true);
    }
    buffer_append_char(out, '"');
}

/* A name as it is when that will do, else as a string literal. */
static void print_name(struct buffer *out, struct str name)
{
    if (name_is_identifier(name) && !name_is_reserved(name))
        buffer_append(out, name);
    else
        print_string(out, name);
}

static void print_uid(struct buffer *out, const struct cedar_uid *uid)
{
    buffer_append(out, uid->type);
    buffer_append_text(out, "::");
    print_string(out, uid->id);
}

/* Expressions as text: each operand in parentheses only where the grammar would read it
 * otherwise. */

/* From the loosest to the tightest, as parser.c goes down. */
enum tightness { OF_IF, OF_OR, OF_AND, OF_RELATION, OF_SUM, OF_PRODUCT, OF_SIGN, OF_MEMBER };

static const struct sign {
    const char *text;
    enum tightness own, left, right;
} signs[NODE_KIND_COUNT] = {
    [NODE_OR] = {" || ", OF_OR, OF_AND, OF_AND},
    [NODE_AND] = {" && ", OF_AND, OF_RELATION, OF_RELATION},
    [NODE_EQUAL] = {" == ", OF_RELATION, OF_SUM, OF_SUM},
    [NODE_NOT_EQUAL] = {" != ", OF_RELATION, OF_SUM, OF_SUM},
    [NODE_LESS] = {" < ", OF_RELATION, OF_SUM, OF_SUM},
    [NODE_LESS_OR_EQUAL] = {" <= ", OF_RELATION, OF_SUM, OF_SUM},
    [NODE_GREATER] = {" > ", OF_RELATION, OF_SUM, OF_SUM},
    [NODE_GREATER_OR_EQUAL] = {" >= ", OF_RELATION, OF_SUM, OF_SUM},
    [NODE_IN] = {" in ", OF_RELATION, OF_SUM, OF_SUM},
    [NODE_ADD] = {" + ", OF_SUM, OF_SUM, OF_PRODUCT},
    [NODE_SUBTRACT] = {" - ", OF_SUM, OF_SUM, OF_PRODUCT},
    [NODE_MULTIPLY] = {" * ", OF_PRODUCT, OF_PRODUCT, OF_SIGN},
};

static bool print_policy_is_number(const struct node *node)
{
    return node->kind == NODE_CONSTANT && !node->written && node->constant.kind == CEDAR_LONG;
}

static enum tightness tightness_of(const struct node *node)
{
    switch (node->kind) {
    case NODE_IF:
        return OF_IF;
    case NODE_HAS:
    case NODE_LIKE:
    case NODE_IS:
        return OF_RELATION;
    case NODE_NOT:
    case NODE_NEGATE:
        return OF_SIGN;
    case NODE_CONSTANT:
        return print_policy_is_number(node) && node->constant.number < 0 ? OF_SIGN : OF_MEMBER;
    default:
        return signs[node->kind].text ? signs[node->kind].own : OF_MEMBER;
    }
}

static void print_expression(struct buffer *out, const struct node *node);

/* In parentheses when it binds more loosely than its place asks for. */
static void print_operand(struct buffer *out, const struct node *node, enum tightness least)
{
    bool enclosed = tightness_of(node) < least;
    if (enclosed)
        buffer_append_char(out, '(');
    print_expression(out, node);
    if (enclosed)
        buffer_append_char(out, ')');
}

/* ---- Operators ------------------------------------------------------------------------- */

static void print_binary(struct buffer *out, const struct node *node)
{
    const struct sign *sign = &signs[node->kind];
    print_operand(out, node->operands[0], sign->left);
    buffer_append_text(out, sign->text);
    print_operand(out, node->operands[1], sign->right);
}

/* A chain within a chain of its kind is the same chain: it stops at the same operand. */
static void print_link(struct buffer *out, const struct node *node, enum node_kind chain)
{
    print_operand(out, node, node->kind == chain ? signs[chain].own : signs[chain].left);
}

static void print_chain(struct buffer *out, const struct node *node)
{
    for (uint32_t i = 0; i < node->count; i++) {
        if (i > 0)
            buffer_append_text(out, signs[node->kind].text);
        print_link(out, node->operands[i], node->kind);
    }
}

/* Signs of one kind stand together, so many of them at most; a minus before a number is the
 * number's. */
static void print_signs(struct buffer *out, const struct node *node)
{
    char sign = node->kind == NODE_NOT ? '!' : '-';
    const struct node *operand = node;
    unsigned count = 0;
    for (; operand->kind == node->kind && count < SIGNS_MAX; count++) {
        buffer_append_char(out, sign);
        operand = operand->operands[0];
    }
    bool is_minus = sign == '-' && print_policy_is_number(operand);
    bool is_bare = is_minus ? operand->constant.number < 0 && count < SIGNS_MAX
                            : tightness_of(operand) == OF_MEMBER;
    print_operand(out, operand, is_bare ? OF_SIGN : OF_MEMBER + 1);
}

static void print_is(struct buffer *out, const struct node *node)
{
    print_operand(out, node->operands[0], OF_SUM);
    buffer_append_text(out, " is ");
    buffer_append(out, node->name);
    if (node->count == 1)
        return;
    buffer_append_text(out, " in ");
    print_operand(out, node->operands[1], OF_SUM);
}

static void print_has(struct buffer *out, const struct node *node)
{
    print_operand(out, node->operands[0], OF_SUM);
    buffer_append_text(out, " has ");
    for (uint32_t i = 0; i < node->name_count; i++) {
        if (i > 0)
            buffer_append_char(out, '.');
        print_name(out, node->names[i]);
    }
}

static void print_if(struct buffer *out, const struct node *node)
{
    static const char *const words[] = {"if ", " then ", " else "};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        buffer_append_text(out, words[i]);
        print_expression(out, node->operands[i]);
    }
}

/* ---- Operands -------------------------------------------------------------------------- */

static void print_list(struct buffer *out, const struct node *node, uint32_t first)
{
    for (uint32_t i = first; i < node->count; i++) {
        if (i > first)
            buffer_append_text(out, ", ");
        print_expression(out, node->operands[i]);
    }
}

static void print_record(struct buffer *out, const struct node *node)
{
    buffer_append_char(out, '{');
    for (uint32_t i = 0; i < node->count; i++) {
        if (i > 0)
            buffer_append_text(out, ", ");
        print_name(out, node->names[i]);
        buffer_append_text(out, ": ");
        print_expression(out, node->operands[i]);
    }
    buffer_append_char(out, '}');
}

static void print_call(struct buffer *out, const struct node *node, struct str name, bool method)
{
    if (method) {
        print_operand(out, node->operands[0], OF_MEMBER);
        buffer_append_char(out, '.');
    }
    buffer_append(out, name);
    buffer_append_char(out, '(');
    print_list(out, node, method);
    buffer_append_char(out, ')');
}

static void print_get(struct buffer *out, const struct node *node)
{
    bool bare = name_is_identifier(node->name) && !name_is_reserved(node->name);
    print_operand(out, node->operands[0], OF_MEMBER);
    buffer_append_char(out, bare ? '.' : '[');
    print_name(out, node->name);
    if (!bare)
        buffer_append_char(out, ']');
}

static void print_constant(struct buffer *out, const struct node *node)
{
    const struct cedar_value *value = &node->constant;
    if (node->written)
        print_expression(out, node->written);
    else if (value->kind == CEDAR_BOOL)
        buffer_append_text(out, value->boolean ? "true" : "false");
    else if (value->kind == CEDAR_LONG)
        buffer_append_format(out, "%lld", (long long)value->number);
    else if (value->kind == CEDAR_STRING)
        print_string(out, value->text);
    else if (value->kind == CEDAR_ENTITY)
        print_uid(out, value->entity);
}

static void print_variable(struct buffer *out, const struct node *node)
{
    static const char *const names[] = {[VARIABLE_PRINCIPAL] = "principal",
                                        [VARIABLE_ACTION] = "action",
                                        [VARIABLE_RESOURCE] = "resource",
                                        [VARIABLE_CONTEXT] = "context"};
    buffer_append_text(out, names[node->variable]);
}

/* ---- Both ------------------------------------------------------------------------------ */

static void print_expression(struct buffer *out, const struct node *node)
{
    switch (node->kind) {
    case NODE_CONSTANT:
        print_constant(out, node);
        break;
    case NODE_VARIABLE:
        print_variable(out, node);
        break;
    case NODE_IF:
        print_if(out, node);
        break;
    case NODE_AND:
    case NODE_OR:
        print_chain(out, node);
        break;
    case NODE_NOT:
    case NODE_NEGATE:
        print_signs(out, node);
        break;
    case NODE_GET:
        print_get(out, node);
        break;
    case NODE_HAS:
        print_has(out, node);
        break;
    case NODE_LIKE:
        print_operand(out, node->operands[0], OF_SUM);
        buffer_append_text(out, " like ");
        print_pattern(out, &node->pattern);
        break;
    case NODE_IS:
        print_is(out, node);
        break;
    case NODE_SET:
        buffer_append_char(out, '[');
        print_list(out, node, 0);
        buffer_append_char(out, ']');
        break;
    case NODE_RECORD:
        print_record(out, node);
        break;
    case NODE_CALL:
        print_call(out, node, node->extension->name, node->extension->method);
        break;
    default:
        if (signs[node->kind].text)
            print_binary(out, node);
        else
            print_call(out, node, method_of(node->kind)->name, true);
    }
}

/* Links of a chain within the chain have lines of their own, too. */
static void print_link_lines(struct buffer *out, const struct node *node, enum node_kind chain,
                             size_t indent, bool *is_first)
{
    if (node->kind == chain) {
        for (uint32_t i = 0; i < node->count; i++)
            print_link_lines(out, node->operands[i], chain, indent, is_first);
        return;
    }
    const char *sign = *is_first ? "" : chain == NODE_AND ? " &&" : " ||";
    *is_first = false;
    buffer_append_format(out, "%s\n%*s", sign, (int)indent, "");
    print_link(out, node, chain);
}

/* The operands of a chain of && or || one below the other, each after `indent` spaces; any other
 * expression in one line. */
static void print_lines(struct buffer *out, const struct node *node, size_t indent)
{
    bool is_first = true;
    if (node->kind == NODE_AND || node->kind == NODE_OR) {
        print_link_lines(out, node, node->kind, indent, &is_first);
        return;
    }
    buffer_append_format(out, "\n%*s", (int)indent, "");
    print_expression(out, node);
}

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
    OWNED_BUFFER(line);
    print_scopes(&line, policy, "(", ", ", ")");
    if (line.length <= PRINT_COLUMNS)
        buffer_append(out, buffer_str(&line));
    else
        print_scopes(out, policy, "(\n  ", ",\n  ", "\n)");
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
    OWNED_BUFFER(line);
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
