/*
 * Globs: how a subject is matched. It is read once, left to right, in a few instructions for each
 * byte, for a name may be as long as a body.
 *
 * Each run takes the first place where it fits. Only the last one is bound to a place, the end:
 * whatever an earlier wildcard could leave over, the one after it can take as well.
 */
#include <string.h>

#include "glob_internal.h"

/* Counts the work, in a test. */
#ifndef GLOB_STEP
#define GLOB_STEP() ((void)0)
#endif

bool glob_class_holds(const struct token *token, uint32_t character)
{
    for (size_t i = 0; i < token->range_count; i++) {
        if (character >= token->ranges[i].first && character <= token->ranges[i].last)
            return !token->is_negated;
    }
    return token->is_negated;
}

bool glob_position_fits(const struct position *position, uint32_t character)
{
    if (position->kind == TOKEN_LITERAL)
        return character == position->character;
    return position->kind == TOKEN_ANY_CHARACTER || glob_class_holds(position->class, character);
}

/* Takes a token off the start of the subject, if it fits there. */
static bool glob_match_take(const struct glob *glob, const struct token *token, struct str *subject)
{
    size_t length;
    if (token->kind == TOKEN_LITERAL) {
        struct str literal = str_slice(glob->literals.bytes + token->start, token->length);
        if (!str_starts_with(*subject, literal))
            return false;
        *subject = glob_advance(*subject, literal.length);
        return true;
    }
    if (subject->length == 0)
        return false;
    uint32_t character = glob_next_character(*subject, &length);
    *subject = glob_advance(*subject, length);
    return token->kind == TOKEN_ANY_CHARACTER || glob_class_holds(token, character);
}

/* A literal begins with no byte that could stand within a character. */
static bool find_literal(struct str literal, bool is_last, struct str *subject)
{
    const char *found;
    if (subject->length < literal.length)
        return false;
    if (is_last) {
        found = subject->bytes + subject->length - literal.length;
        return memcmp(found, literal.bytes, literal.length) == 0;
    }
    found = memmem(subject->bytes, subject->length, literal.bytes, literal.length);
    if (!found)
        return false;
    *subject = glob_advance(*subject, (size_t)(found - subject->bytes) + literal.length);
    return true;
}

static uint64_t glob_match_fits(const struct run *run, uint32_t character)
{
    if (character < 128)
        return run->fits_ascii[character];
    uint64_t mask = run->fits_other;
    for (uint64_t left = run->may_fit; left; left &= left - 1) {
        int i = __builtin_ctzll(left);
        GLOB_STEP();
        if (glob_position_fits(&run->positions[i], character))
            mask |= UINT64_C(1) << i;
    }
    return mask;
}

/* The positions beyond those that have a bit. */
static bool take_rest(const struct run *run, struct str *subject)
{
    for (size_t i = 64; i < run->length; i++) {
        size_t length;
        GLOB_STEP();
        if (subject->length == 0 ||
            !glob_position_fits(&run->positions[i], glob_next_character(*subject, &length)))
            return false;
        *subject = glob_advance(*subject, length);
    }
    return true;
}

/* Shift-And (Baeza-Yates and Gonnet, 1992): bit i says that the first i + 1 positions fit the
 * characters that were read last. So all places are tried at once. */
static bool glob_match_find(const struct run *run, bool is_last, struct str *subject)
{
    const uint64_t whole = UINT64_C(1) << (run->length < 64 ? run->length - 1 : 63);
    struct str rest = *subject;
    uint64_t state = 0;
    bool may_begin = true;
    while (rest.length > 0) {
        size_t length;
        GLOB_STEP();
        uint32_t character = glob_next_character(rest, &length);
        rest = glob_advance(rest, length);
        state = (state << 1 | may_begin) & glob_match_fits(run, character);
        may_begin = run->wildcard == TOKEN_ANY_RUN || character == '/';
        if ((state & whole) == 0 || (is_last && run->length <= 64 && rest.length > 0))
            continue;
        *subject = rest;
        if (take_rest(run, subject) && (!is_last || subject->length == 0))
            return true;
    }
    return false;
}

bool glob_matches(const struct glob *glob, struct str subject)
{
    for (size_t i = 0; i < glob->prefix_count; i++) {
        if (!glob_match_take(glob, &glob->tokens[i], &subject))
            return false;
    }
    if (glob->run_count == 0)
        return subject.length == 0;
    for (size_t i = 0; i < glob->run_count; i++) {
        const struct run *run = &glob->runs[i];
        bool is_last = i + 1 == glob->run_count;
        if (run->length == 0)
            continue; /* two wildcards, or one at the end: the next begins here, or all is said */
        bool is_anywhere = run->literal.length > 0 && run->wildcard == TOKEN_ANY_RUN;
        if (is_anywhere ? !find_literal(run->literal, is_last, &subject)
                        : !glob_match_find(run, is_last, &subject))
            return false;
    }
    return true;
}
