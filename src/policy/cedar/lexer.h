/*
 * Policy text to tokens, one at a time, nothing allocated.
 */
#pragma once

#include <stdint.h>

#include "taskgate/core/str.h"

enum token_kind {
    TOKEN_END,
    TOKEN_WRONG,        /* no token starts like this */
    TOKEN_UNTERMINATED, /* a string without its closing quote */
    TOKEN_WORD,
    TOKEN_NUMBER,
    TOKEN_STRING, /* with its quotes, not unescaped */
    TOKEN_SLOT,   /* ?principal */
    TOKEN_AT,
    TOKEN_DOT,
    TOKEN_COMMA,
    TOKEN_SEMICOLON,
    TOKEN_COLON,
    TOKEN_COLONS,
    TOKEN_OPEN_PARENTHESIS,
    TOKEN_CLOSE_PARENTHESIS,
    TOKEN_OPEN_BRACE,
    TOKEN_CLOSE_BRACE,
    TOKEN_OPEN_BRACKET,
    TOKEN_CLOSE_BRACKET,
    TOKEN_EQUAL,
    TOKEN_NOT_EQUAL,
    TOKEN_LESS,
    TOKEN_LESS_OR_EQUAL,
    TOKEN_GREATER,
    TOKEN_GREATER_OR_EQUAL,
    TOKEN_ASSIGN,
    TOKEN_OR,
    TOKEN_AND,
    TOKEN_PLUS,
    TOKEN_MINUS,
    TOKEN_STAR,
    TOKEN_SLASH,
    TOKEN_PERCENT,
    TOKEN_NOT,
};

struct token {
    enum token_kind kind;
    uint32_t offset; /* in the text */
    struct str text;
};

struct lexer {
    struct str text; /* UTF-8, shorter than 4 GiB */
    size_t position;
};

struct token lexer_next(struct lexer *lexer);
