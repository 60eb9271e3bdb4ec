/* White space and comments away, then the longest token that fits. */
#include "lexer.h"

#include <stdbool.h>

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

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* How many bytes from `start` on are letters or digits. */
static size_t word_length(struct str rest, size_t start)
{
    size_t length = start;
    while (length < rest.length && (is_letter(rest.bytes[length]) || is_digit(rest.bytes[length])))
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
    if (is_letter(c)) {
        *length = word_length(rest, 1);
        return TOKEN_WORD;
    }
    if (is_digit(c)) {
        *length = 1;
        while (*length < rest.length && is_digit(rest.bytes[*length]))
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
    if (c == '?' && rest.length > 1 && is_letter(rest.bytes[1])) {
        *length = word_length(rest, 2);
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
