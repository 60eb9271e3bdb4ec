/* Tokens to and fro, and complaints. */
#include "parser.h"

#include <stdarg.h>
#include <stdio.h>

#include "literal.h"

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

bool parser_at_word(const struct parser *parser, const char *word)
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
static bool is_plain(struct str text)
{
    for (size_t i = 0; i < text.length; i++)
        if (text.bytes[i] < ' ' || text.bytes[i] > '~')
            return false;
    return text.length <= SHOWN_BYTES;
}

static const char *describe(const struct token *token, char text[SHOWN_BYTES + 3])
{
    switch (token->kind) {
    case TOKEN_END:
        return "the end of the text";
    case TOKEN_STRING:
        return "a string";
    case TOKEN_UNTERMINATED:
        return "a string without its closing quote";
    default:
        if (!is_plain(token->text))
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
                    describe(&parser->token, text), expected);
    else
        parser_note(parser, parser->token.offset, "unexpected %s; expected %s",
                    describe(&parser->token, text), expected);
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
static struct str join(struct parser *parser, struct str path, struct str word)
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
        *path = join(parser, *path, token.text);
    }
    return true;
}
