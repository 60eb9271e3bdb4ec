/* Operands: literals, entities, variables, calls, sets, records, and access to their parts. */
#include "parser.h"

/* ---- Numbers --------------------------------------------------------------------------- */

static const struct node *parse_number(struct parser *parser, bool *negative)
{
    struct token token = parser->token;
    parser_advance(parser);
    enum token_kind next = parser->token.kind;
    /* In -1.x and the like the sign belongs to the whole. */
    if (next == TOKEN_DOT || next == TOKEN_OPEN_BRACKET || next == TOKEN_OPEN_PARENTHESIS)
        *negative = false;
    uint64_t magnitude = 0;
    bool fits = true;
    for (size_t i = 0; i < token.text.length && fits; i++)
        fits = digits_append(&magnitude, token.text.bytes[i]);
    if (!fits || magnitude > (uint64_t)INT64_MAX + *negative) {
        parser_note(parser, token.offset,
                    "this number does not fit; expected one from -9223372036854775808 to "
                    "9223372036854775807");
        magnitude = 0;
    }
    return node_make_constant(parser, token.offset,
                              cedar_long((int64_t)(*negative ? 0 - magnitude : magnitude)));
}

/* ---- Lists ----------------------------------------------------------------------------- */

/* Expressions up to `close`, separated by commas, one of which may stand behind the last. */
static bool parse_list(struct parser *parser, enum token_kind close, const char *expected,
                       struct operand_list *list)
{
    while (!parser_take(parser, close)) {
        const struct node *element = parser->expression(parser);
        if (!element)
            return false;
        operands_append(parser, list, element, STR_EMPTY);
        if (!parser_take(parser, TOKEN_COMMA) && parser->token.kind != close)
            return parser_unexpected(parser, expected);
    }
    return true;
}

static const struct node *parse_set(struct parser *parser)
{
    uint32_t offset = parser->token.offset;
    struct operand_list list = {0};
    parser_advance(parser);
    if (!parse_list(parser, TOKEN_CLOSE_BRACKET, "\",\" or \"]\"", &list))
        return NULL;
    return node_make_set(parser, offset, &list);
}

static bool parse_attribute_name(struct parser *parser, struct str *name)
{
    struct token token = parser->token;
    if (token.kind == TOKEN_STRING)
        return parse_string(parser, name, "an attribute");
    if (!parser_expect(parser, TOKEN_WORD, "an attribute (a name or a string) or \"}\""))
        return false;
    if (name_is_reserved(token.text))
        parser_note(parser, token.offset,
                    "\"%.*s\" is a reserved word; expected an attribute in quotes",
                    STR_ARGS(token.text));
    *name = token.text;
    return true;
}

static const struct node *parse_record(struct parser *parser)
{
    uint32_t offset = parser->token.offset;
    struct operand_list list = {0};
    parser_advance(parser);
    while (!parser_take(parser, TOKEN_CLOSE_BRACE)) {
        struct str name;
        if (!parse_attribute_name(parser, &name) ||
            !parser_expect(parser, TOKEN_COLON, "\":\" behind the attribute"))
            return NULL;
        const struct node *value = parser->expression(parser);
        if (!value)
            return NULL;
        operands_append(parser, &list, value, name);
        if (!parser_take(parser, TOKEN_COMMA) && parser->token.kind != TOKEN_CLOSE_BRACE)
            return parser_unexpected(parser, "\",\" or \"}\"");
    }
    return node_make_record(parser, offset, &list);
}

/* ---- Names ----------------------------------------------------------------------------- */

static const struct node *placeholder(struct parser *parser, uint32_t offset)
{
    return node_make_constant(parser, offset, cedar_bool(false));
}

/* The parenthesis stands at the present token. */
static const struct node *parse_function(struct parser *parser, uint32_t offset, struct str name)
{
    struct operand_list list = {0};
    parser_advance(parser);
    if (!parse_list(parser, TOKEN_CLOSE_PARENTHESIS, "\",\" or \")\"", &list))
        return NULL;
    const struct extension *extension = extension_find(name);
    if (extension && !extension->method)
        return node_make_call(parser, offset, extension, &list);
    if (extension || method_find(name))
        parser_note(parser, offset, "\"%.*s\" is a method; expected VALUE.%.*s(…)", STR_ARGS(name),
                    STR_ARGS(name));
    else
        parser_note(parser, offset,
                    "there is no function \"%.*s\"; expected ip, decimal, datetime or duration",
                    STR_ARGS(name));
    return placeholder(parser, offset);
}

static const struct node *parse_variable(struct parser *parser, const struct token *token)
{
    static const struct str names[] = {[VARIABLE_PRINCIPAL] = {"principal", 9},
                                       [VARIABLE_ACTION] = {"action", 6},
                                       [VARIABLE_RESOURCE] = {"resource", 8},
                                       [VARIABLE_CONTEXT] = {"context", 7}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!str_equal(names[i], token->text))
            continue;
        struct node *node =
            node_make(parser, NODE_VARIABLE, token->offset, &(struct operand_list){0});
        node->variable = (enum variable)i;
        return node;
    }
    return NULL;
}

static const struct node *parse_name(struct parser *parser)
{
    struct token token = parser->token;
    bool is_true = str_equal(token.text, STR("true"));
    if (is_true || str_equal(token.text, STR("false"))) {
        parser_advance(parser);
        return node_make_constant(parser, token.offset, cedar_bool(is_true));
    }
    if (str_equal(token.text, STR("if")))
        return parser_unexpected(parser, "an operand; put \"if\" in parentheses");
    struct str path;
    const struct cedar_uid *entity;
    if (!parse_path(parser, &path, &entity))
        return NULL;
    if (entity)
        return node_make_constant(parser, token.offset,
                                  (struct cedar_value){.kind = CEDAR_ENTITY, .entity = entity});
    const struct node *variable =
        path.length == token.text.length ? parse_variable(parser, &token) : NULL;
    if (variable)
        return variable;
    if (parser->token.kind == TOKEN_OPEN_PARENTHESIS)
        return parse_function(parser, token.offset, path);
    if (!name_is_reserved(path))
        parser_note(parser, token.offset,
                    "there is no variable \"%.*s\"; expected principal, action, resource or "
                    "context, or an id in quotes behind \"::\"",
                    STR_ARGS(path));
    return placeholder(parser, token.offset);
}

static const struct node *parse_primary(struct parser *parser, bool *negative)
{
    struct token token = parser->token;
    if (token.kind == TOKEN_NUMBER)
        return parse_number(parser, negative);
    *negative = false;
    switch (token.kind) {
    case TOKEN_WORD:
        return parse_name(parser);
    case TOKEN_STRING: {
        struct str text;
        if (!parse_string(parser, &text, "a string"))
            return NULL;
        return node_make_constant(parser, token.offset, cedar_string(text));
    }
    case TOKEN_OPEN_PARENTHESIS: {
        parser_advance(parser);
        const struct node *inner = parser->expression(parser);
        return inner && parser_expect(parser, TOKEN_CLOSE_PARENTHESIS, "\")\"") ? inner : NULL;
    }
    case TOKEN_OPEN_BRACKET:
        return parse_set(parser);
    case TOKEN_OPEN_BRACE:
        return parse_record(parser);
    default:
        return parser_unexpected(parser, "an operand");
    }
}

/* ---- Access ---------------------------------------------------------------------------- */

static const struct node *parse_method(struct parser *parser, const struct token *name,
                                       const struct node *receiver)
{
    struct operand_list list = {0};
    operands_append(parser, &list, receiver, STR_EMPTY);
    parser_advance(parser);
    if (!parse_list(parser, TOKEN_CLOSE_PARENTHESIS, "\",\" or \")\"", &list))
        return NULL;
    const struct extension *extension = extension_find(name->text);
    if (extension && extension->method)
        return node_make_call(parser, name->offset, extension, &list);
    const struct method *method = method_find(name->text);
    if (method && list.count == method->operands)
        return node_make(parser, method->kind, name->offset, &list);
    if (method)
        parser_note(parser, name->offset, "%u arguments for \"%.*s\"; expected %u", list.count - 1,
                    STR_ARGS(name->text), method->operands - 1);
    else if (extension)
        parser_note(parser, name->offset, "\"%.*s\" is a function; expected %.*s(…)",
                    STR_ARGS(name->text), STR_ARGS(name->text));
    else
        parser_note(parser, name->offset, "there is no method \"%.*s\"", STR_ARGS(name->text));
    return placeholder(parser, name->offset);
}

static const struct node *make_get(struct parser *parser, uint32_t offset,
                                   const struct node *target, struct str name)
{
    struct node *node = node_make_unary(parser, NODE_GET, offset, target);
    if (node)
        node->name = name;
    return node;
}

static const struct node *parse_dot(struct parser *parser, const struct node *target)
{
    struct token name = parser->token;
    const char *expected = name.kind == TOKEN_NUMBER
                               ? "an attribute or a method; for a fraction write decimal(\"1.5\")"
                               : "an attribute or a method";
    if (!parser_expect(parser, TOKEN_WORD, expected))
        return NULL;
    if (parser->token.kind == TOKEN_OPEN_PARENTHESIS)
        return parse_method(parser, &name, target);
    if (name_is_reserved(name.text))
        parser_note(parser, name.offset, "\"%.*s\" is a reserved word; expected [\"%.*s\"]",
                    STR_ARGS(name.text), STR_ARGS(name.text));
    return make_get(parser, name.offset, target, name.text);
}

const struct node *parse_member(struct parser *parser, bool *negative)
{
    const struct node *node = parse_primary(parser, negative);
    while (node) {
        uint32_t offset = parser->token.offset;
        struct str name;
        if (parser_take(parser, TOKEN_DOT)) {
            node = parse_dot(parser, node);
        } else if (parser_take(parser, TOKEN_OPEN_BRACKET)) {
            if (!parse_string(parser, &name, "an attribute in quotes") ||
                !parser_expect(parser, TOKEN_CLOSE_BRACKET, "\"]\""))
                return NULL;
            node = make_get(parser, offset, node, name);
        } else if (parser->token.kind == TOKEN_OPEN_PARENTHESIS) {
            return parser_unexpected(parser, "an operator: only functions and methods are called");
        } else {
            return node;
        }
    }
    return NULL;
}
