/* Expressions as text: each operand in parentheses only where the grammar would read it
 * otherwise. */
#include "print.h"

/* From the loosest to the tightest, as parse_expression.c goes down. */
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

static bool is_number(const struct node *node)
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
        return is_number(node) && node->constant.number < 0 ? OF_SIGN : OF_MEMBER;
    default:
        return signs[node->kind].text ? signs[node->kind].own : OF_MEMBER;
    }
}

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
    bool is_minus = sign == '-' && is_number(operand);
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

void print_expression(struct buffer *out, const struct node *node)
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

void print_lines(struct buffer *out, const struct node *node, size_t indent)
{
    bool is_first = true;
    if (node->kind == NODE_AND || node->kind == NODE_OR) {
        print_link_lines(out, node, node->kind, indent, &is_first);
        return;
    }
    buffer_append_format(out, "\n%*s", (int)indent, "");
    print_expression(out, node);
}
