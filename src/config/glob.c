/* Globs: a pattern is cut into tokens once; a match goes through them once, left to right. */
#include "taskgate/config/glob.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/memory.h"

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

struct glob {
    struct token *tokens;
    size_t count;
    struct buffer literals; /* the bytes of all literals, one after the other */
};

/* The character at the start of `s`, which is not empty. A byte that begins no character
 * stands for itself, beyond Unicode, so that nothing else matches it by accident. */
static uint32_t next_character(struct str s, size_t *length)
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

static struct str advance(struct str s, size_t length)
{
    return str_slice(s.bytes + length, s.length - length);
}

static struct token *add_token(struct glob *glob, enum token_kind kind)
{
    glob->tokens = memory_grow_array(glob->tokens, glob->count + 1, sizeof *glob->tokens);
    struct token *token = &glob->tokens[glob->count++];
    *token = (struct token){.kind = kind, .start = glob->literals.length};
    return token;
}

static void add_literal(struct glob *glob, struct str text)
{
    struct token *last = glob->count ? &glob->tokens[glob->count - 1] : NULL;
    if (!last || last->kind != TOKEN_LITERAL)
        last = add_token(glob, TOKEN_LITERAL);
    buffer_append(&glob->literals, text);
    last->length += text.length;
}

/* "*", or "**" as a whole component. `rest` begins at the first star. */
static bool compile_stars(struct glob *glob, struct str pattern, struct str *rest,
                          struct error *error)
{
    size_t stars = 0;
    while (stars < rest->length && rest->bytes[stars] == '*')
        stars++;
    bool at_start = rest->bytes == pattern.bytes || rest->bytes[-1] == '/';
    *rest = advance(*rest, stars);
    if (stars > 2)
        return error_set(error, "wildcards are * or **, not more stars");
    if (stars == 1) {
        add_token(glob, TOKEN_ANY_RUN);
        return true;
    }
    bool at_end = rest->length == 0;
    if (!at_start || !(at_end || rest->bytes[0] == '/'))
        return error_set(error, "** must be a whole path component, such as a/**/b");
    /* At the end it is any run; before a "/" it takes that with it. */
    add_token(glob, at_end ? TOKEN_ANY_RUN : TOKEN_COMPONENTS);
    if (!at_end)
        *rest = advance(*rest, 1);
    return true;
}

static void add_range(struct token *token, uint32_t first, uint32_t last)
{
    token->ranges = memory_grow_array(token->ranges, token->range_count + 1, sizeof *token->ranges);
    token->ranges[token->range_count++] = (struct range){first, last};
}

/* The inside of a class: single characters, and "a-z" wherever a "-" has both neighbours. */
static void compile_members(struct token *token, struct str members)
{
    while (members.length) {
        size_t length, last_length;
        uint32_t first = next_character(members, &length);
        struct str after = advance(members, length);
        if (after.length > 1 && after.bytes[0] == '-') {
            uint32_t last = next_character(advance(after, 1), &last_length);
            add_range(token, first, last);
            members = advance(after, 1 + last_length);
        } else {
            add_range(token, first, first);
            members = after;
        }
    }
}

/* "[…]": "!" first negates, "]" first (after that) is a member. */
static bool compile_class(struct glob *glob, struct str *rest, struct error *error)
{
    struct str inside = advance(*rest, 1);
    bool is_negated = inside.length && inside.bytes[0] == '!';
    if (is_negated)
        inside = advance(inside, 1);
    const char *end = NULL;
    if (inside.length > 1)
        end = memchr(inside.bytes + 1, ']', inside.length - 1);
    if (!end)
        return error_set(error, "the class has no closing ]");
    struct str members = str_slice(inside.bytes, (size_t)(end - inside.bytes));
    size_t length;
    next_character(members, &length);
    if (!is_negated && length == members.length) {
        add_literal(glob, members); /* "[*]" is how a star is escaped */
    } else {
        struct token *token = add_token(glob, TOKEN_CLASS);
        token->is_negated = is_negated;
        compile_members(token, members);
    }
    *rest = advance(inside, members.length + 1);
    return true;
}

struct glob *glob_compile(struct str pattern, struct error *error)
{
    struct glob *glob = memory_alloc(sizeof *glob);
    buffer_init(&glob->literals);
    bool is_valid = str_is_utf8(pattern) || error_set(error, "the pattern is not UTF-8");
    struct str rest = pattern;
    while (is_valid && rest.length) {
        switch (rest.bytes[0]) {
        case '*':
            is_valid = compile_stars(glob, pattern, &rest, error);
            break;
        case '[':
            is_valid = compile_class(glob, &rest, error);
            break;
        case '?':
            add_token(glob, TOKEN_ANY_CHARACTER);
            rest = advance(rest, 1);
            break;
        default:
            add_literal(glob, str_slice(rest.bytes, 1));
            rest = advance(rest, 1);
        }
    }
    if (is_valid) {
        /* With nothing behind it there is no component to be whole: any run will do. */
        if (glob->count && glob->tokens[glob->count - 1].kind == TOKEN_COMPONENTS)
            glob->tokens[glob->count - 1].kind = TOKEN_ANY_RUN;
        return glob;
    }
    glob_destroy(glob);
    return NULL;
}

void glob_destroy(struct glob *glob)
{
    if (!glob)
        return;
    for (size_t i = 0; i < glob->count; i++)
        free(glob->tokens[i].ranges);
    free(glob->tokens);
    buffer_finish(&glob->literals);
    free(glob);
}

static bool class_holds(const struct token *token, uint32_t character)
{
    for (size_t i = 0; i < token->range_count; i++) {
        if (character >= token->ranges[i].first && character <= token->ranges[i].last)
            return !token->is_negated;
    }
    return token->is_negated;
}

/* Whether a token that stands for a fixed text matches at the start of `subject`. */
static bool match_fixed(const struct glob *glob, const struct token *token, struct str *subject)
{
    size_t length;
    if (token->kind == TOKEN_LITERAL) {
        struct str literal = str_slice(glob->literals.bytes + token->start, token->length);
        if (!str_starts_with(*subject, literal))
            return false;
        *subject = advance(*subject, literal.length);
        return true;
    }
    if (subject->length == 0)
        return false;
    uint32_t character = next_character(*subject, &length);
    *subject = advance(*subject, length);
    return token->kind == TOKEN_ANY_CHARACTER || class_holds(token, character);
}

/* Where a wildcard may end next after `from`: one character on, or behind the next "/".
 * false: nowhere. */
static bool extend(const struct token *wildcard, struct str *from)
{
    size_t length;
    if (from->length == 0)
        return false;
    if (wildcard->kind == TOKEN_COMPONENTS) {
        const char *slash = memchr(from->bytes, '/', from->length);
        if (!slash)
            return false;
        *from = advance(*from, (size_t)(slash - from->bytes) + 1);
        return true;
    }
    next_character(*from, &length);
    *from = advance(*from, length);
    return true;
}

/* Moves `from` to the next place where the wildcard may end, itself first, that the text after it
 * allows: a name may be as long as a body. A literal begins with no byte that could stand within
 * a character. false: there is none. */
static bool seek(const struct glob *glob, size_t after_wildcard, struct str *from)
{
    const struct token *next = &glob->tokens[after_wildcard];
    if (glob->tokens[after_wildcard - 1].kind != TOKEN_ANY_RUN || next->kind != TOKEN_LITERAL)
        return true;
    const char *literal = glob->literals.bytes + next->start, *found;
    if (from->length < next->length)
        return false;
    if (after_wildcard + 1 < glob->count)
        found = memmem(from->bytes, from->length, literal, next->length);
    else
        found = from->bytes + from->length - next->length; /* only the end will do */
    if (found)
        *from = advance(*from, (size_t)(found - from->bytes));
    return found != NULL;
}

/* Only the last wildcard ever needs another try: whatever an earlier one could give up, the
 * last one, having begun at its leftmost place, can take as well. */
bool glob_matches(const struct glob *glob, struct str subject)
{
    size_t i = 0;
    const struct token *wildcard = NULL;
    size_t after_wildcard = 0;
    struct str retry = STR_EMPTY;
    for (;;) {
        const struct token *token = i < glob->count ? &glob->tokens[i] : NULL;
        if (!token && subject.length == 0)
            return true;
        if (token && token->kind >= TOKEN_ANY_RUN) {
            if (++i == glob->count)
                return true; /* the last token of a pattern is never TOKEN_COMPONENTS */
            wildcard = token;
            after_wildcard = i;
            retry = subject;
            if (!seek(glob, i, &retry))
                return false;
            subject = retry;
            continue;
        }
        if (token && match_fixed(glob, token, &subject)) {
            i++;
            continue;
        }
        if (!wildcard || !extend(wildcard, &retry) || !seek(glob, after_wildcard, &retry))
            return false;
        subject = retry;
        i = after_wildcard;
    }
}

size_t glob_literal_count(const struct glob *glob)
{
    size_t count = 0;
    for (size_t i = 0; i < glob->count; i++)
        count += glob->tokens[i].kind == TOKEN_LITERAL;
    return count;
}

struct str glob_literal(const struct glob *glob, size_t index)
{
    for (size_t i = 0; i < glob->count; i++) {
        if (glob->tokens[i].kind == TOKEN_LITERAL && index-- == 0)
            return str_slice(glob->literals.bytes + glob->tokens[i].start, glob->tokens[i].length);
    }
    return STR_EMPTY;
}
