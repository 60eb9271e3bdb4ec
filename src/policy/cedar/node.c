/* Nodes, and their facts that the parser can compute. */
#include <string.h>

#include "parser.h"

void operands_append(struct parser *parser, struct operand_list *list, const struct node *node,
                     struct str name)
{
    struct operand *operand = arena_alloc(&parser->lists, sizeof *operand);
    *operand = (struct operand){.node = node, .name = name};
    if (list->last)
        list->last->next = operand;
    else
        list->first = operand;
    list->last = operand;
    list->count++;
}

struct node *node_make(struct parser *parser, enum node_kind kind, uint32_t offset,
                       const struct operand_list *operands)
{
    struct node *node = arena_alloc(parser->arena, sizeof *node);
    memset(node, 0, sizeof *node);
    node->kind = kind;
    node->offset = offset;
    node->count = operands->count;
    const struct node **nodes =
        arena_alloc_array(parser->arena, node->count, sizeof(struct node *));
    node->operands = nodes;
    size_t i = 0;
    for (const struct operand *operand = operands->first; operand; operand = operand->next) {
        nodes[i++] = operand->node;
        if (operand->node->height > node->height)
            node->height = operand->node->height;
    }
    if (++node->height <= NODE_MAX_HEIGHT)
        return node;
    parser_note(parser, offset, "an expression of more than %d steps; split the policy",
                NODE_MAX_HEIGHT);
    return NULL;
}

struct node *node_make_unary(struct parser *parser, enum node_kind kind, uint32_t offset,
                             const struct node *operand)
{
    struct operand_list list = {0};
    operands_append(parser, &list, operand, STR_EMPTY);
    return node_make(parser, kind, offset, &list);
}

struct node *node_make_binary(struct parser *parser, enum node_kind kind, uint32_t offset,
                              const struct node *left, const struct node *right)
{
    struct operand_list list = {0};
    operands_append(parser, &list, left, STR_EMPTY);
    operands_append(parser, &list, right, STR_EMPTY);
    return node_make(parser, kind, offset, &list);
}

struct node *node_make_constant(struct parser *parser, uint32_t offset, struct cedar_value value)
{
    struct node *node = node_make(parser, NODE_CONSTANT, offset, &(struct operand_list){0});
    node->constant = value;
    return node;
}

static bool are_constants(const struct operand_list *operands)
{
    for (const struct operand *operand = operands->first; operand; operand = operand->next)
        if (operand->node->kind != NODE_CONSTANT)
            return false;
    return true;
}

static struct cedar_value *collect_constants(struct parser *parser,
                                             const struct operand_list *operands)
{
    struct cedar_value *values = arena_alloc_array(parser->arena, operands->count, sizeof *values);
    size_t i = 0;
    for (const struct operand *operand = operands->first; operand; operand = operand->next)
        values[i++] = operand->node->constant;
    return values;
}

/* The value of `written`, which is kept so that it can be printed as it was. */
static const struct node *make_folded(struct parser *parser, const struct node *written,
                                      struct cedar_value value)
{
    struct node *node =
        node_make(parser, NODE_CONSTANT, written->offset, &(struct operand_list){0});
    node->constant = value;
    node->written = written;
    node->height = written->height;
    return node;
}

static const struct node *too_deep(struct parser *parser, uint32_t offset)
{
    parser_note(parser, offset, "sets and records nested deeper than %d", CEDAR_MAX_VALUE_DEPTH);
    return NULL;
}

const struct node *node_make_set(struct parser *parser, uint32_t offset,
                                 const struct operand_list *operands)
{
    struct node *node = node_make(parser, NODE_SET, offset, operands);
    if (!node || !are_constants(operands))
        return node;
    struct cedar_value set;
    if (!set_build(parser->arena, collect_constants(parser, operands), operands->count, &set))
        return too_deep(parser, offset);
    return make_folded(parser, node, set);
}

static const struct str *collect_names(struct parser *parser, const struct operand_list *operands)
{
    struct str *names = arena_alloc_array(parser->arena, operands->count, sizeof *names);
    size_t i = 0;
    for (const struct operand *operand = operands->first; operand; operand = operand->next)
        names[i++] = operand->name;
    return names;
}

const struct node *node_make_record(struct parser *parser, uint32_t offset,
                                    const struct operand_list *operands)
{
    /* Built in any case: that is how a name that stands twice is found. */
    bool constant = are_constants(operands);
    struct cedar_member *members =
        arena_alloc_array(parser->arena, operands->count, sizeof *members);
    size_t i = 0;
    for (const struct operand *operand = operands->first; operand; operand = operand->next)
        members[i++] = (struct cedar_member){
            .name = operand->name,
            .value = constant ? operand->node->constant : cedar_bool(false),
        };
    struct cedar_value record;
    struct str twice = STR_EMPTY;
    if (!record_build(parser->arena, members, operands->count, &record, &twice)) {
        if (!twice.bytes)
            return too_deep(parser, offset);
        parser_note(parser, offset, "a record with the attribute \"%.*s\" twice", STR_ARGS(twice));
        return node_make_constant(parser, offset, cedar_bool(false));
    }
    struct node *node = node_make(parser, NODE_RECORD, offset, operands);
    if (!node)
        return NULL;
    node->names = collect_names(parser, operands);
    node->name_count = operands->count;
    return constant ? make_folded(parser, node, record) : node;
}

const struct node *node_make_call(struct parser *parser, uint32_t offset,
                                  const struct extension *extension,
                                  const struct operand_list *operands)
{
    struct cedar_value result;
    struct cedar_failure failure;
    struct node *node = node_make(parser, NODE_CALL, offset, operands);
    if (!node)
        return NULL;
    node->extension = extension;
    /* A call that fails stays a call: it is an error of each evaluation, not of the text. */
    if (are_constants(operands) &&
        extension_call(extension, parser->arena, collect_constants(parser, operands),
                       operands->count, &result, &failure))
        return make_folded(parser, node, result);
    return node;
}
