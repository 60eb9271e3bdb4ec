/* Globs: how a pattern is compiled. */
#include "glob_internal.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"

/* Room for one more behind `count` of them: doubled whenever it is full. */
static void *glob_grow(void *items, size_t count, size_t size)
{
    bool is_full = (count & (count - 1)) == 0;
    return is_full ? memory_grow_array(items, count > 0 ? 2 * count : 1, size) : items;
}

static struct token *add_token(struct glob *glob, enum token_kind kind)
{
    glob->tokens = glob_grow(glob->tokens, glob->count, sizeof *glob->tokens);
    struct token *token = &glob->tokens[glob->count++];
    *token = (struct token){.kind = kind, .start = glob->literals.length};
    return token;
}

static void glob_add_literal(struct glob *glob, struct str text)
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
    *rest = glob_advance(*rest, stars);
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
        *rest = glob_advance(*rest, 1);
    return true;
}

static void add_range(struct token *token, uint32_t first, uint32_t last)
{
    token->ranges = glob_grow(token->ranges, token->range_count, sizeof *token->ranges);
    token->ranges[token->range_count++] = (struct range){first, last};
}

/* The inside of a class: single characters, and "a-z" wherever a "-" has both neighbours. */
static void compile_members(struct token *token, struct str members)
{
    while (members.length) {
        size_t length, last_length;
        uint32_t first = glob_next_character(members, &length);
        struct str after = glob_advance(members, length);
        if (after.length > 1 && after.bytes[0] == '-') {
            uint32_t last = glob_next_character(glob_advance(after, 1), &last_length);
            add_range(token, first, last);
            members = glob_advance(after, 1 + last_length);
        } else {
            add_range(token, first, first);
            members = after;
        }
    }
}

/* "[…]": "!" first negates, "]" first (after that) is a member. */
static bool compile_class(struct glob *glob, struct str *rest, struct error *error)
{
    struct str inside = glob_advance(*rest, 1);
    bool is_negated = inside.length && inside.bytes[0] == '!';
    if (is_negated)
        inside = glob_advance(inside, 1);
    const char *end = NULL;
    if (inside.length > 1)
        end = memchr(inside.bytes + 1, ']', inside.length - 1);
    if (!end)
        return error_set(error, "the class has no closing ]");
    struct str members = str_slice(inside.bytes, (size_t)(end - inside.bytes));
    size_t length;
    glob_next_character(members, &length);
    if (!is_negated && length == members.length) {
        glob_add_literal(glob, members); /* "[*]" is how a star is escaped */
    } else {
        struct token *token = add_token(glob, TOKEN_CLASS);
        token->is_negated = is_negated;
        compile_members(token, members);
    }
    *rest = glob_advance(inside, members.length + 1);
    return true;
}

/* ---- runs ---- */

static void add_position(struct run *run, const struct token *token, uint32_t character)
{
    run->positions = glob_grow(run->positions, run->length, sizeof *run->positions);
    run->positions[run->length++] =
        (struct position){.kind = token->kind, .character = character, .class = token};
}

static void add_positions(struct run *run, const struct glob *glob, const struct token *token)
{
    if (token->kind != TOKEN_LITERAL) {
        add_position(run, token, 0);
        return;
    }
    struct str rest = str_slice(glob->literals.bytes + token->start, token->length);
    size_t length;
    for (; rest.length > 0; rest = glob_advance(rest, length))
        add_position(run, token, glob_next_character(rest, &length));
}

/* Whether each, or some, of the characters beyond ASCII fits. */
static void look_beyond_ascii(const struct position *position, bool *all, bool *some)
{
    bool is_class = position->kind == TOKEN_CLASS;
    bool names_any = is_class ? false : position->character >= 0x80;
    for (size_t i = 0; is_class && i < position->class->range_count; i++)
        names_any = names_any || position->class->ranges[i].last >= 0x80;
    bool takes_rest = is_class && position->class->is_negated;
    *all = position->kind == TOKEN_ANY_CHARACTER || (takes_rest && !names_any);
    *some = names_any;
}

static void fill_masks(struct run *run)
{
    for (size_t i = 0; i < run->length && i < 64; i++) {
        const uint64_t bit = UINT64_C(1) << i;
        bool all, some;
        for (uint32_t c = 0; c < 128; c++)
            run->fits_ascii[c] |= glob_position_fits(&run->positions[i], c) ? bit : 0;
        look_beyond_ascii(&run->positions[i], &all, &some);
        run->fits_other |= all ? bit : 0;
        run->may_fit |= some ? bit : 0;
    }
}

static void add_run(struct glob *glob, size_t first)
{
    glob->runs = glob_grow(glob->runs, glob->run_count, sizeof *glob->runs);
    ASSERT_NUMBERS(first, <, glob->count);
    ASSERT(glob->tokens[first].kind >= TOKEN_ANY_RUN);
    struct run *run = &glob->runs[glob->run_count++];
    *run = (struct run){.wildcard = glob->tokens[first].kind};
    size_t i = first + 1;
    for (; i < glob->count && glob->tokens[i].kind < TOKEN_ANY_RUN; i++)
        add_positions(run, glob, &glob->tokens[i]);
    if (i == first + 2 && glob->tokens[first + 1].kind == TOKEN_LITERAL)
        run->literal = str_slice(glob->literals.bytes + glob->tokens[first + 1].start,
                                 glob->tokens[first + 1].length);
    fill_masks(run);
}

static void make_runs(struct glob *glob)
{
    if (glob->count == 0)
        return;
    struct token *last = &glob->tokens[glob->count - 1];
    /* With nothing behind it there is no component to be whole: any run will do. */
    if (last->kind == TOKEN_COMPONENTS)
        last->kind = TOKEN_ANY_RUN;
    while (glob->prefix_count < glob->count &&
           glob->tokens[glob->prefix_count].kind < TOKEN_ANY_RUN)
        glob->prefix_count++;
    for (size_t i = glob->prefix_count; i < glob->count; i++) {
        if (glob->tokens[i].kind >= TOKEN_ANY_RUN)
            add_run(glob, i);
    }
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
            rest = glob_advance(rest, 1);
            break;
        default:
            glob_add_literal(glob, str_slice(rest.bytes, 1));
            rest = glob_advance(rest, 1);
        }
    }
    if (is_valid) {
        make_runs(glob);
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
    for (size_t i = 0; i < glob->run_count; i++)
        free(glob->runs[i].positions);
    free(glob->runs);
    free(glob->tokens);
    buffer_finish(&glob->literals);
    free(glob);
}

bool glob_next_literal(const struct glob *glob, size_t *position, struct str *literal)
{
    while (*position < glob->count) {
        const struct token *token = &glob->tokens[(*position)++];
        if (token->kind == TOKEN_LITERAL) {
            *literal = str_slice(glob->literals.bytes + token->start, token->length);
            return true;
        }
    }
    return false;
}
