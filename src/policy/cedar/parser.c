/* Tokens to and fro, and complaints. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ast.h"
#include "parser.h"

#include "taskgate/core/assert.h"

/* White space and comments away, then the longest token that fits. */

/* The bytes of the white space character at `position`, 0 when there is none. White space
 * is Unicode's White_Space; beyond ASCII: U+0085, 00A0, 1680, 2000-200A, 2028, 2029, 202F, 205F
 * and 3000. */
static size_t space_length(struct str text, size_t position)
{
    const unsigned char *p = (const unsigned char *)text.bytes + position;
    size_t left = text.length - position;
    if (p[0] == ' ' || (p[0] >= '\t' && p[0] <= '\r'))
        return 1;
    if (p[0] == 0xc2 && left > 1)
        return p[1] == 0x85 || p[1] == 0xa0 ? 2 : 0;
    if (left < 3)
        return 0;
    unsigned last = (unsigned)p[1] << 8 | p[2];
    switch (p[0]) {
    case 0xe1:
        return last == 0x9a80 ? 3 : 0;
    case 0xe2:
        return (last >= 0x8080 && last <= 0x808a) || last == 0x80a8 || last == 0x80a9 ||
                       last == 0x80af || last == 0x819f
                   ? 3
                   : 0;
    case 0xe3:
        return last == 0x8080 ? 3 : 0;
    default:
        return 0;
    }
}

static void skip_space(struct lexer *lexer)
{
    struct str text = lexer->text;
    while (lexer->position < text.length) {
        size_t length = space_length(text, lexer->position);
        if (length == 0 && text.length - lexer->position > 1 &&
            text.bytes[lexer->position] == '/' && text.bytes[lexer->position + 1] == '/') {
            while (lexer->position + length < text.length &&
                   text.bytes[lexer->position + length] != '\n' &&
                   text.bytes[lexer->position + length] != '\r')
                length++;
        }
        if (length == 0)
            return;
        lexer->position += length;
    }
}

static bool parser_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool parser_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* How many bytes from `start` on are letters or digits. */
static size_t parser_word_length(struct str rest, size_t start)
{
    size_t length = start;
    while (length < rest.length &&
           (parser_is_letter(rest.bytes[length]) || parser_is_digit(rest.bytes[length])))
        length++;
    return length;
}

/* With its quotes; 0 without a closing one. A line may end inside a string, but not behind a
 * backslash. */
static size_t string_length(struct str rest)
{
    for (size_t i = 1; i < rest.length; i++) {
        if (rest.bytes[i] == '"')
            return i + 1;
        if (rest.bytes[i] == '\\' && (++i == rest.length || rest.bytes[i] == '\n'))
            return 0;
    }
    return 0;
}

/* Longer ones first. */
static const struct {
    struct str text;
    enum token_kind kind;
} signs[] = {
    {{"::", 2}, TOKEN_COLONS},
    {{"==", 2}, TOKEN_EQUAL},
    {{"!=", 2}, TOKEN_NOT_EQUAL},
    {{"<=", 2}, TOKEN_LESS_OR_EQUAL},
    {{">=", 2}, TOKEN_GREATER_OR_EQUAL},
    {{"||", 2}, TOKEN_OR},
    {{"&&", 2}, TOKEN_AND},
    {{"@", 1}, TOKEN_AT},
    {{".", 1}, TOKEN_DOT},
    {{",", 1}, TOKEN_COMMA},
    {{";", 1}, TOKEN_SEMICOLON},
    {{":", 1}, TOKEN_COLON},
    {{"(", 1}, TOKEN_OPEN_PARENTHESIS},
    {{")", 1}, TOKEN_CLOSE_PARENTHESIS},
    {{"{", 1}, TOKEN_OPEN_BRACE},
    {{"}", 1}, TOKEN_CLOSE_BRACE},
    {{"[", 1}, TOKEN_OPEN_BRACKET},
    {{"]", 1}, TOKEN_CLOSE_BRACKET},
    {{"<", 1}, TOKEN_LESS},
    {{">", 1}, TOKEN_GREATER},
    {{"=", 1}, TOKEN_ASSIGN},
    {{"+", 1}, TOKEN_PLUS},
    {{"-", 1}, TOKEN_MINUS},
    {{"*", 1}, TOKEN_STAR},
    {{"/", 1}, TOKEN_SLASH},
    {{"%", 1}, TOKEN_PERCENT},
    {{"!", 1}, TOKEN_NOT},
};

static size_t character_length(struct str rest)
{
    size_t length = 1;
    while (length < rest.length && ((unsigned char)rest.bytes[length] & 0xc0) == 0x80)
        length++;
    return length;
}

static enum token_kind scan(struct str rest, size_t *length)
{
    char c = rest.bytes[0];
    if (parser_is_letter(c)) {
        *length = parser_word_length(rest, 1);
        return TOKEN_WORD;
    }
    if (parser_is_digit(c)) {
        *length = 1;
        while (*length < rest.length && parser_is_digit(rest.bytes[*length]))
            ++*length;
        return TOKEN_NUMBER;
    }
    if (c == '"') {
        *length = string_length(rest);
        if (*length)
            return TOKEN_STRING;
        *length = rest.length;
        return TOKEN_UNTERMINATED;
    }
    if (c == '?' && rest.length > 1 && parser_is_letter(rest.bytes[1])) {
        *length = parser_word_length(rest, 2);
        return TOKEN_SLOT;
    }
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        *length = signs[i].text.length;
        if (str_starts_with(rest, signs[i].text))
            return signs[i].kind;
    }
    *length = character_length(rest);
    return TOKEN_WRONG;
}

struct token lexer_next(struct lexer *lexer)
{
    skip_space(lexer);
    struct token token = {.kind = TOKEN_END, .offset = (uint32_t)lexer->position};
    if (lexer->position == lexer->text.length)
        return token;
    struct str rest =
        str_slice(lexer->text.bytes + lexer->position, lexer->text.length - lexer->position);
    size_t length;
    token.kind = scan(rest, &length);
    token.text = str_slice(rest.bytes, length);
    lexer->position += length;
    return token;
}

/* Escapes: \n \r \t \\ \0 \' \" \xHH below 0x80, \u{H…} with up to six digits and underscores
 * between them; in patterns \*, too. */

/* One decoded character: its code point, and whether it was written `\*`. */
struct character {
    uint32_t code;
    bool star; /* written as \* */
};

/* `*position` is after "\x". */
static const char *parser_read_byte(struct str text, size_t *position, uint32_t *code)
{
    *code = 0;
    for (int i = 0; i < 2; i++) {
        int digit = *position < text.length ? str_hex_digit(text.bytes[*position]) : -1;
        if (digit < 0)
            return "\\x needs two hexadecimal digits";
        *code = *code * 16 + (uint32_t)digit;
        ++*position;
    }
    return *code > 0x7f ? "\\x goes up to \\x7f; write \\u{…}" : NULL;
}

/* `*position` is after "\u". */
static const char *read_code_point(struct str text, size_t *position, uint32_t *code)
{
    if (*position == text.length || text.bytes[*position] != '{')
        return "\\u needs its digits in braces: \\u{1F600}";
    int digits = 0;
    *code = 0;
    for (++*position; *position < text.length && text.bytes[*position] != '}'; ++*position) {
        int digit = str_hex_digit(text.bytes[*position]);
        if (digit < 0 && (text.bytes[*position] != '_' || digits == 0))
            return "\\u{…} takes hexadecimal digits";
        if (digit >= 0 && ++digits <= 6)
            *code = *code * 16 + (uint32_t)digit;
    }
    if (*position == text.length)
        return "\\u{ needs its closing brace";
    ++*position;
    if (digits == 0 || digits > 6)
        return "\\u{…} takes one to six hexadecimal digits";
    if (*code > 0x10ffff || (*code >= 0xd800 && *code <= 0xdfff))
        return "this is no Unicode character";
    return NULL;
}

/* `*position` is at the backslash. Returns NULL, or the mistake. */
static const char *parser_read_escape(struct str text, size_t *position, bool pattern,
                                      struct character *character)
{
    static const char from[] = "nrt\\0'\"", to[] = "\n\r\t\\\0'\"";
    char c = text.bytes[*position + 1]; /* the lexer has seen to it */
    *position += 2;
    character->star = false;
    if (c == 'x')
        return parser_read_byte(text, position, &character->code);
    if (c == 'u')
        return read_code_point(text, position, &character->code);
    character->star = pattern && c == '*';
    character->code = '*';
    if (character->star)
        return NULL;
    const char *found = memchr(from, c, sizeof from - 1);
    if (!found)
        return pattern ? "this is no escape; there are \\n \\r \\t \\\\ \\0 \\' \\\" \\x \\u \\*"
                       : "this is no escape; there are \\n \\r \\t \\\\ \\0 \\' \\\" \\x \\u";
    character->code = (unsigned char)to[found - from];
    return NULL;
}

static size_t write_utf8(char *out, uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    out[0] = (char)(lead[more] | code >> (6 * more));
    for (size_t i = 1; i <= more; i++)
        out[i] = (char)(0x80 | ((code >> (6 * (more - i))) & 0x3f));
    return more + 1;
}

/* Decodes into `out`, which is as long as the literal: no escape is shorter than its
 * character. In a pattern, the places of wildcards go to `stars` (NULL to count alone). */
static bool parser_decode(struct str text, bool pattern, char *out, size_t *length, size_t *stars,
                          size_t *star_count, struct literal_error *error)
{
    *length = *star_count = 0;
    for (size_t i = 0; i < text.length;) {
        size_t start = i;
        struct character character = {.code = (unsigned char)text.bytes[i]};
        const char *message = NULL;
        if (text.bytes[i] == '\\')
            message = parser_read_escape(text, &i, pattern, &character);
        else if (text.bytes[i++] == '\r')
            message = "a carriage return cannot stand in a string; write \\r";
        if (message) {
            *error = (struct literal_error){.offset = start + 1, .message = message};
            return false;
        }
        if (pattern && character.code == '*' && !character.star) {
            if (stars)
                stars[*star_count] = *length;
            ++*star_count;
        } else if (text.bytes[start] == '\\') {
            *length += write_utf8(out + *length, character.code);
        } else {
            out[(*length)++] = text.bytes[start];
        }
    }
    return true;
}

/* `literal` has its quotes. The result lives in `arena`, or in `literal` when nothing is
 * escaped. */
static bool literal_string(struct arena *arena, struct str literal, struct str *text,
                           struct literal_error *error)
{
    struct str inner = str_slice(literal.bytes + 1, literal.length - 2);
    *text = inner;
    if (inner.length == 0 ||
        (!memchr(inner.bytes, '\\', inner.length) && !memchr(inner.bytes, '\r', inner.length)))
        return true;
    char *out = arena_alloc(arena, inner.length);
    size_t stars;
    text->bytes = out;
    return parser_decode(inner, false, out, &text->length, NULL, &stars, error);
}

/* A search for a short piece prepares a table first. */
#define STEPS_PER_PIECE 4

/* The same for `like`: a star is a wildcard, `\*` is a star. */
static bool literal_pattern(struct arena *arena, struct str literal, struct pattern *pattern,
                            struct literal_error *error)
{
    struct str inner = str_slice(literal.bytes + 1, literal.length - 2);
    char *out = arena_alloc(arena, inner.length);
    size_t length, count;
    if (!parser_decode(inner, true, out, &length, NULL, &count, error))
        return false;
    size_t *stars = arena_alloc_array(arena, count, sizeof *stars);
    if (!parser_decode(inner, true, out, &length, stars, &count, error))
        return false;
    struct str *pieces = arena_alloc_array(arena, count + 1, sizeof *pieces);
    for (size_t i = 0; i <= count; i++) {
        size_t start = i == 0 ? 0 : stars[i - 1];
        size_t end = i == count ? length : stars[i];
        pieces[i] = str_slice(out + start, end - start);
    }
    *pattern = (struct pattern){.pieces = pieces,
                                .count = count + 1,
                                .weight = (count + 1) * STEPS_PER_PIECE + length / BYTES_PER_STEP};
    return true;
}

/* Nodes, and their facts that the parser can compute. */

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

static struct node *node_make_binary(struct parser *parser, enum node_kind kind, uint32_t offset,
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

/* Sets, records and calls of constants alone become constants. */
static const struct node *node_make_set(struct parser *parser, uint32_t offset,
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

static const struct node *node_make_record(struct parser *parser, uint32_t offset,
                                           const struct operand_list *operands)
{
    /* Built in any case: that is how a duplicate name is found. */
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

static const struct node *node_make_call(struct parser *parser, uint32_t offset,
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

/* The methods of sets and entities, as one table. */

static const struct method methods[] = {
    {{"contains", 8}, NODE_CONTAINS, 2},
    {{"containsAll", 11}, NODE_CONTAINS_ALL, 2},
    {{"containsAny", 11}, NODE_CONTAINS_ANY, 2},
    {{"isEmpty", 7}, NODE_IS_EMPTY, 1},
    {{"getTag", 6}, NODE_GET_TAG, 2},
    {{"hasTag", 6}, NODE_HAS_TAG, 2},
};

/* NULL when there is no such method. */
static const struct method *method_find(struct str name)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (str_equal(methods[i].name, name))
            return &methods[i];
    return NULL;
}

const struct method *method_of(enum node_kind kind)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (methods[i].kind == kind)
            return &methods[i];
    return NULL;
}

#define PATH_MAX_WORDS 100
#define SHOWN_BYTES 40

void parser_advance(struct parser *parser)
{
    parser->token = lexer_next(&parser->lexer);
}

bool parser_take(struct parser *parser, enum token_kind kind)
{
    if (parser->token.kind != kind)
        return false;
    parser_advance(parser);
    return true;
}

bool parser_expect(struct parser *parser, enum token_kind kind, const char *expected)
{
    return parser_take(parser, kind) || parser_unexpected(parser, expected);
}

static bool parser_at_word(const struct parser *parser, const char *word)
{
    return parser->token.kind == TOKEN_WORD && str_equal(parser->token.text, str_from(word));
}

bool parser_take_word(struct parser *parser, const char *word)
{
    if (!parser_at_word(parser, word))
        return false;
    parser_advance(parser);
    return true;
}

void parser_note(struct parser *parser, size_t offset, const char *format, ...)
{
    if (++parser->problem_count > PROBLEMS_MAX)
        return;
    struct cedar_position position = source_position(parser->source, offset);
    char message[ERROR_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    buffer_append_format(parser->problems, "%s:%u:%u: ", position.source, position.line,
                         position.column);
    buffer_append_text(parser->problems, message);
    buffer_append_char(parser->problems, '\n');
}

/* Whether it can be shown as it is: a terminal must not be led astray by a policy file. */
static bool parser_is_plain(struct str text)
{
    for (size_t i = 0; i < text.length; i++)
        if (text.bytes[i] < ' ' || text.bytes[i] > '~')
            return false;
    return text.length <= SHOWN_BYTES;
}

static const char *parser_describe(const struct token *token, char text[SHOWN_BYTES + 3])
{
    switch (token->kind) {
    case TOKEN_END:
        return "the end of the text";
    case TOKEN_STRING:
        return "a string";
    case TOKEN_UNTERMINATED:
        return "a string without its closing quote";
    default:
        if (!parser_is_plain(token->text))
            return token->kind == TOKEN_WRONG ? "a character that no token has" : "a long word";
        snprintf(text, SHOWN_BYTES + 3, "\"%.*s\"", STR_ARGS(token->text));
        return text;
    }
}

void *parser_unexpected(struct parser *parser, const char *expected)
{
    char text[SHOWN_BYTES + 3];
    if (parser->token.kind == TOKEN_SLOT)
        parser_note(parser, parser->token.offset, "templates are not supported: %s; expected %s",
                    parser_describe(&parser->token, text), expected);
    else
        parser_note(parser, parser->token.offset, "unexpected %s; expected %s",
                    parser_describe(&parser->token, text), expected);
    return NULL;
}

bool parse_string(struct parser *parser, struct str *text, const char *expected)
{
    struct token token = parser->token;
    if (!parser_expect(parser, TOKEN_STRING, expected))
        return false;
    struct literal_error error;
    if (!literal_string(parser->arena, token.text, text, &error)) {
        parser_note(parser, token.offset + error.offset, "%s", error.message);
        *text = STR_EMPTY;
    }
    return true;
}

/* path::word; shares the source's bytes while there is no space between them. */
static struct str parser_join(struct parser *parser, struct str path, struct str word)
{
    if (word.bytes == path.bytes + path.length + 2)
        return str_slice(path.bytes, path.length + 2 + word.length);
    char *joined = arena_alloc(parser->arena, path.length + 2 + word.length);
    snprintf(joined, path.length + 3, "%.*s::", STR_ARGS(path));
    for (size_t i = 0; i < word.length; i++)
        joined[path.length + 2 + i] = word.bytes[i];
    return str_slice(joined, path.length + 2 + word.length);
}

static void refuse_reserved(struct parser *parser, const struct token *token)
{
    if (name_is_reserved(token->text))
        parser_note(parser, token->offset, "\"%.*s\" is a reserved word; expected a name",
                    STR_ARGS(token->text));
}

bool parse_path(struct parser *parser, struct str *path, const struct cedar_uid **entity)
{
    struct token token = parser->token;
    if (!parser_expect(parser, TOKEN_WORD, "a name"))
        return false;
    *path = token.text;
    refuse_reserved(parser, &token);
    if (entity)
        *entity = NULL;
    for (int words = 1; parser_take(parser, TOKEN_COLONS); words++) {
        token = parser->token;
        if (entity && token.kind == TOKEN_STRING) {
            struct str id;
            if (!parse_string(parser, &id, "an id"))
                return false;
            struct cedar_uid uid = cedar_uid(*path, id);
            struct cedar_uid *made = arena_alloc(parser->arena, sizeof *made);
            *made = uid;
            *entity = made;
            return true;
        }
        if (words == PATH_MAX_WORDS) {
            parser_note(parser, token.offset, "a name of more than %d words", PATH_MAX_WORDS);
            return false;
        }
        if (!parser_expect(parser, TOKEN_WORD, entity ? "a name or an id in quotes" : "a name"))
            return false;
        refuse_reserved(parser, &token);
        *path = parser_join(parser, *path, token.text);
    }
    return true;
}

/* Operands: literals, entities, variables, calls, sets, records, and access to their parts. */

/* ---- Numbers --------------------------------------------------------------------------- */

static const struct node *parser_parse_number(struct parser *parser, bool *negative)
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

/* The present token is the parenthesis. */
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
        return parser_parse_number(parser, negative);
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

/* A primary with its ".", "[" and "(" parts. `*negative`: a number that stands alone shall be read
 * as negative; false afterwards when it was not. */
static const struct node *parse_member(struct parser *parser, bool *negative)
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

/* Operators, from the loosest to the tightest: if, ||, &&, one relation, + and -, *, ! and -. */

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
    ASSERT_NUMBERS(parser->nesting, >, 0);
    parser->nesting--;
    return node;
}
