/*
 * A compiled glob, for the files that make and match it.
 *
 *     glob.c          a pattern becomes tokens, then runs
 *     glob_match.c    a subject is held against them
 */
#pragma once

#include <stdint.h>

#include "taskgate/config/glob.h"
#include "taskgate/core/buffer.h"

enum token_kind {
    TOKEN_LITERAL,
    TOKEN_ANY_CHARACTER, /* ? */
    TOKEN_CLASS,         /* […] */
    TOKEN_ANY_RUN,       /* * */
    TOKEN_COMPONENTS,    /* ** and the "/" after it: nothing, or a run that ends in "/" */
};

struct range {
    uint32_t first, last;
};

struct token {
    enum token_kind kind;
    size_t start, length; /* of a literal, in `literals` */
    struct range *ranges; /* of a class */
    size_t range_count;
    bool is_negated;
};

/* One character of a run. */
struct position {
    enum token_kind kind; /* never a wildcard */
    uint32_t character;   /* of a literal */
    const struct token *class;
};

/* The tokens between two wildcards, or behind the last one. */
struct run {
    enum token_kind wildcard; /* that stands before it */
    struct str literal;       /* all of it, if it is one literal; else empty */
    struct position *positions;
    size_t length;
    /* The first 64 positions that a character fits, a bit each. */
    uint64_t fits_ascii[128];
    uint64_t fits_other; /* every other character fits these, */
    uint64_t may_fit;    /* and some fit these */
};

struct glob {
    struct token *tokens;
    size_t count;
    struct buffer literals; /* the bytes of all literals, one after the other */
    size_t prefix_count;    /* of the tokens: what stands before the first wildcard */
    struct run *runs;       /* one for each wildcard */
    size_t run_count;
};

/* The character at the start of `s`, which is not empty. A byte that begins no character
 * stands for itself, beyond Unicode, so that nothing else matches it by accident. */
static inline uint32_t glob_next_character(struct str s, size_t *length)
{
    static const unsigned char masks[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    unsigned char first = (unsigned char)s.bytes[0];
    *length = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0x80)
        return first;
    if (*length > s.length || !str_is_utf8(str_slice(s.bytes, *length))) {
        *length = 1;
        return 0x110000u + first;
    }
    uint32_t character = first & masks[*length];
    for (size_t i = 1; i < *length; i++)
        character = (character << 6) | ((unsigned char)s.bytes[i] & 0x3F);
    return character;
}

static inline struct str glob_advance(struct str s, size_t length)
{
    return str_slice(s.bytes + length, s.length - length);
}

/* Whether the character fits the position, or is in the class. */
bool glob_position_fits(const struct position *position, uint32_t character);
bool glob_class_holds(const struct token *token, uint32_t character);
