/*
 * Shared by the parser's files: the place in the text, the mistakes so far, and the making of
 * nodes.
 *
 * A function that returns NULL or false cannot read on: the parser gives the policy up and tries
 * the next one. parser_note() notes a mistake that the parser can read past, so that all mistakes
 * are reported at once.
 */
#pragma once

#include <stdint.h>

#include "ast.h"
#include "taskgate/core/str.h"

/*
 * Policy text to tokens, one at a time, nothing allocated.
 */

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

#define PROBLEMS_MAX 100

struct parser {
    struct arena *arena;
    struct arena lists; /* memory for one policy: its nodes stay close together */
    const struct source *source;
    struct lexer lexer;
    struct token token; /* the one to be looked at */
    unsigned nesting;   /* of expressions */
    struct buffer *problems;
    unsigned problem_count; /* over all sources */
    /* parse_expression(), for what stands in brackets. */
    const struct node *(*expression)(struct parser *parser);
};

void parser_advance(struct parser *parser);
/* Advances over a token of this kind. */
bool parser_take(struct parser *parser, enum token_kind kind);
/* The same with a complaint; `expected` completes "expected …". */
bool parser_expect(struct parser *parser, enum token_kind kind, const char *expected);
bool parser_take_word(struct parser *parser, const char *word);
/* "unexpected X; expected …" at the present token. Returns NULL. */
void *parser_unexpected(struct parser *parser, const char *expected);
void parser_note(struct parser *parser, size_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A string token's text. Notes its mistakes; false when the token is not a string. */
bool parse_string(struct parser *parser, struct str *text, const char *expected);
/* WORD { "::" WORD }. With `entity`, a "::" may also be followed by a string, which makes it
 * an entity: *entity is NULL when none came. Notes reserved words. */
bool parse_path(struct parser *parser, struct str *path, const struct cedar_uid **entity);

const struct node *parse_expression(struct parser *parser);

/* Reads all policies of a source; they are appended to `policies`. */
void parse_source(struct parser *parser, struct cedar_policies *policies, size_t *capacity);

/* ---- Nodes ----------------------------------------------------------------------------- */

/* Operands in the order of the text. */
struct operand_list {
    struct operand *first, *last;
    uint32_t count;
};
struct operand {
    struct operand *next;
    const struct node *node;
    struct str name; /* in a record */
};
void operands_append(struct parser *parser, struct operand_list *list, const struct node *node,
                     struct str name);

/* NULL, noted, when the tree would grow too high; so do those below. */
struct node *node_make(struct parser *parser, enum node_kind kind, uint32_t offset,
                       const struct operand_list *operands);
struct node *node_make_unary(struct parser *parser, enum node_kind kind, uint32_t offset,
                             const struct node *operand);
struct node *node_make_constant(struct parser *parser, uint32_t offset, struct cedar_value value);

/*
 * The text between the quotes of a string or a pattern.
 */

/* The place and fault of a wrong literal. */
struct literal_error {
    size_t offset; /* from the opening quote */
    const char *message;
};
