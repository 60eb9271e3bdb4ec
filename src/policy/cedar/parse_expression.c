/* Operators, from the loosest to the tightest: if, ||, &&, one relation, + and -, *, ! and -. */
#include "literal.h"
#include "parser.h"

static const struct node *parse_unary(struct parser *parser)
{
    struct token sign = parser->token;
    int count = 0;
    if (sign.kind == TOKEN_NOT || sign.kind == TOKEN_MINUS)
        while (parser_take(parser, sign.kind))
            count++;
    if (count > SIGNS_MAX)
        parser_note(parser, sign.offset, "\"%.*s\" stands at most %d times in front of an operand",
                    STR_ARGS(sign.text), SIGNS_MAX);
    bool negative = sign.kind == TOKEN_MINUS && count > 0;
    const struct node *node = parse_member(parser, &negative);
    if (negative)
        count--; /* one of them belongs to the number */
    if (count > SIGNS_MAX)
        count = SIGNS_MAX;
    enum node_kind kind = sign.kind == TOKEN_NOT ? NODE_NOT : NODE_NEGATE;
    for (; node && count > 0; count--)
        node = node_make_unary(parser, kind, sign.offset, node);
    return node;
}

static const struct node *parse_product(struct parser *parser)
{
    const struct node *left = parse_unary(parser);
    while (left && (parser->token.kind == TOKEN_STAR || parser->token.kind == TOKEN_SLASH ||
                    parser->token.kind == TOKEN_PERCENT)) {
        struct token sign = parser->token;
        parser_advance(parser);
        if (sign.kind != TOKEN_STAR)
            parser_note(parser, sign.offset, "there is no operator \"%.*s\"; expected \"*\"",
                        STR_ARGS(sign.text));
        const struct node *right = parse_unary(parser);
        left = right ? node_make_binary(parser, NODE_MULTIPLY, sign.offset, left, right) : NULL;
    }
    return left;
}

static const struct node *parse_sum(struct parser *parser)
{
    const struct node *left = parse_product(parser);
    while (left && (parser->token.kind == TOKEN_PLUS || parser->token.kind == TOKEN_MINUS)) {
        struct token sign = parser->token;
        parser_advance(parser);
        const struct node *right = parse_product(parser);
        enum node_kind kind = sign.kind == TOKEN_PLUS ? NODE_ADD : NODE_SUBTRACT;
        left = right ? node_make_binary(parser, kind, sign.offset, left, right) : NULL;
    }
    return left;
}

/* NAME { "." NAME }, or one string. */
static const struct node *parse_has(struct parser *parser, uint32_t offset,
                                    const struct node *target)
{
    struct operand_list list = {0};
    struct token token = parser->token;
    struct str name;
    if (token.kind == TOKEN_STRING) {
        if (!parse_string(parser, &name, "an attribute"))
            return NULL;
        operands_append(parser, &list, target, name);
    } else {
        do {
            token = parser->token;
            if (!parser_expect(parser, TOKEN_WORD, "an attribute: a name or a string"))
                return NULL;
            if (name_is_reserved(token.text))
                parser_note(parser, token.offset,
                            "\"%.*s\" is a reserved word; expected an attribute in quotes",
                            STR_ARGS(token.text));
            operands_append(parser, &list, target, token.text);
        } while (parser_take(parser, TOKEN_DOT));
    }
    struct node *node = node_make_unary(parser, NODE_HAS, offset, target);
    if (!node)
        return NULL;
    struct str *names = arena_alloc_array(parser->arena, list.count, sizeof *names);
    for (struct operand *operand = list.first; operand; operand = operand->next)
        names[node->name_count++] = operand->name;
    node->names = names;
    return node;
}

static const struct node *parse_like(struct parser *parser, uint32_t offset,
                                     const struct node *target)
{
    struct token token = parser->token;
    if (!parser_expect(parser, TOKEN_STRING, "a pattern in quotes"))
        return NULL;
    struct pattern pattern = {0};
    struct literal_error error;
    if (!literal_pattern(parser->arena, token.text, &pattern, &error))
        parser_note(parser, token.offset + error.offset, "%s", error.message);
    struct node *node = node_make_unary(parser, NODE_LIKE, offset, target);
    if (node)
        node->pattern = pattern;
    return node;
}

static const struct node *parse_is(struct parser *parser, uint32_t offset,
                                   const struct node *target)
{
    struct operand_list list = {0};
    struct str type;
    operands_append(parser, &list, target, STR_EMPTY);
    if (!parse_path(parser, &type, NULL))
        return NULL;
    if (parser_take_word(parser, "in")) {
        const struct node *ancestor = parse_sum(parser);
        if (!ancestor)
            return NULL;
        operands_append(parser, &list, ancestor, STR_EMPTY);
    }
    struct node *node = node_make(parser, NODE_IS, offset, &list);
    if (node)
        node->name = type;
    return node;
}

static const struct {
    enum token_kind token;
    enum node_kind node;
} relations[] = {
    {TOKEN_EQUAL, NODE_EQUAL},     {TOKEN_NOT_EQUAL, NODE_NOT_EQUAL},
    {TOKEN_LESS, NODE_LESS},       {TOKEN_LESS_OR_EQUAL, NODE_LESS_OR_EQUAL},
    {TOKEN_GREATER, NODE_GREATER}, {TOKEN_GREATER_OR_EQUAL, NODE_GREATER_OR_EQUAL},
};

/* The relation at the present token; NODE_KIND_COUNT when there is none. */
static enum node_kind relation_here(const struct parser *parser)
{
    if (parser_at_word(parser, "in"))
        return NODE_IN;
    for (size_t i = 0; i < sizeof relations / sizeof *relations; i++)
        if (relations[i].token == parser->token.kind)
            return relations[i].node;
    return NODE_KIND_COUNT;
}

static const struct node *parse_relation(struct parser *parser)
{
    const struct node *left = parse_sum(parser);
    if (!left)
        return NULL;
    uint32_t offset = parser->token.offset;
    enum node_kind kind = relation_here(parser);
    const struct node *node = left;
    if (kind != NODE_KIND_COUNT) {
        parser_advance(parser);
        const struct node *right = parse_sum(parser);
        node = right ? node_make_binary(parser, kind, offset, left, right) : NULL;
    } else if (parser_take_word(parser, "has")) {
        node = parse_has(parser, offset, left);
    } else if (parser_take_word(parser, "like")) {
        node = parse_like(parser, offset, left);
    } else if (parser_take_word(parser, "is")) {
        node = parse_is(parser, offset, left);
    } else if (parser->token.kind == TOKEN_ASSIGN) {
        return parser_unexpected(parser, "\"==\" to compare");
    } else {
        return node;
    }
    if (node && (relation_here(parser) != NODE_KIND_COUNT || parser_at_word(parser, "has") ||
                 parser_at_word(parser, "like") || parser_at_word(parser, "is")))
        return parser_unexpected(parser, "one relation; put the first in parentheses");
    return node;
}

/* NODE_AND or NODE_OR of all operands that `sign` joins. */
static const struct node *parse_chain(struct parser *parser, enum token_kind sign,
                                      enum node_kind kind,
                                      const struct node *(*parse_operand)(struct parser *))
{
    const struct node *first = parse_operand(parser);
    if (!first || parser->token.kind != sign)
        return first;
    uint32_t offset = parser->token.offset;
    struct operand_list list = {0};
    operands_append(parser, &list, first, STR_EMPTY);
    while (parser_take(parser, sign)) {
        const struct node *next = parse_operand(parser);
        if (!next)
            return NULL;
        operands_append(parser, &list, next, STR_EMPTY);
    }
    return node_make(parser, kind, offset, &list);
}

static const struct node *parse_and(struct parser *parser)
{
    return parse_chain(parser, TOKEN_AND, NODE_AND, parse_relation);
}

static const struct node *parse_if(struct parser *parser)
{
    uint32_t offset = parser->token.offset;
    parser_advance(parser);
    struct operand_list list = {0};
    static const char *const words[] = {"then", "else", NULL};
    for (int i = 0; i < 3; i++) {
        const struct node *part = parse_expression(parser);
        if (!part)
            return NULL;
        operands_append(parser, &list, part, STR_EMPTY);
        if (words[i] && !parser_take_word(parser, words[i]))
            return parser_unexpected(parser, i == 0 ? "\"then\"" : "\"else\"");
    }
    return node_make(parser, NODE_IF, offset, &list);
}

const struct node *parse_expression(struct parser *parser)
{
    if (parser->nesting == CEDAR_MAX_NESTING) {
        parser_note(parser, parser->token.offset, "expressions nested deeper than %d",
                    CEDAR_MAX_NESTING);
        return NULL;
    }
    parser->nesting++;
    const struct node *node = parser_at_word(parser, "if")
                                  ? parse_if(parser)
                                  : parse_chain(parser, TOKEN_OR, NODE_OR, parse_and);
    parser->nesting--;
    return node;
}
