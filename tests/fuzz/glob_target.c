/*
 * Globs against a second matcher that reads the pattern anew for every question, character by
 * character and with memory of failed tries: both agree about every pattern and subject, and every
 * literal of a pattern is part of every match.
 */
#include <string.h>

#include "fuzz.h"
#include "taskgate/config/glob.h"
#include "taskgate/core/memory.h"

#define MAX_CHARACTERS 96

struct characters {
    uint32_t at[MAX_CHARACTERS];
    size_t count;
};

/* Code points; a byte that begins none stands for itself, beyond Unicode. */
static struct characters decode(struct str text)
{
    struct characters characters = {.count = 0};
    for (size_t i = 0; i < text.length && characters.count < MAX_CHARACTERS;) {
        size_t length = 1;
        while (length < 4 && i + length <= text.length &&
               !str_is_utf8(str_slice(text.bytes + i, length)))
            length++;
        uint32_t character = 0x110000u + (unsigned char)text.bytes[i];
        if (length > 4 || i + length > text.length ||
            !str_is_utf8(str_slice(text.bytes + i, length))) {
            length = 1;
        } else if (length == 1) {
            character = (unsigned char)text.bytes[i];
        } else {
            character = (unsigned char)text.bytes[i] & (0xFFu >> (length + 1));
            for (size_t k = 1; k < length; k++)
                character = character << 6 | ((unsigned char)text.bytes[i + k] & 0x3Fu);
        }
        characters.at[characters.count++] = character;
        i += length;
    }
    return characters;
}

struct question {
    struct characters pattern, subject;
    bool has_failed[MAX_CHARACTERS + 1][MAX_CHARACTERS + 1];
};

static bool matches(struct question *q, size_t p, size_t s);

/* The end of the class that begins at `p`: the "]" after at least one member. */
static size_t class_end(const struct characters *pattern, size_t p)
{
    size_t i = p + 1;
    if (i < pattern->count && pattern->at[i] == '!')
        i++;
    i++;
    while (i < pattern->count && pattern->at[i] != ']')
        i++;
    return i;
}

static bool is_member(const struct characters *pattern, size_t from, size_t to, uint32_t character)
{
    while (from < to) {
        bool is_range = from + 2 < to && pattern->at[from + 1] == '-';
        uint32_t last = is_range ? pattern->at[from + 2] : pattern->at[from];
        if (character >= pattern->at[from] && character <= last)
            return true;
        from += is_range ? 3 : 1;
    }
    return false;
}

static bool matches_class(struct question *q, size_t p, size_t s)
{
    size_t end = class_end(&q->pattern, p);
    bool is_negated = q->pattern.at[p + 1] == '!';
    size_t from = p + (is_negated ? 2 : 1);
    return s < q->subject.count &&
           is_member(&q->pattern, from, end, q->subject.at[s]) != is_negated &&
           matches(q, end + 1, s + 1);
}

static bool matches_stars(struct question *q, size_t p, size_t s)
{
    /* With nothing behind it "**" and a slash are any run, as in the original. */
    bool is_components = p + 3 < q->pattern.count && q->pattern.at[p + 1] == '*';
    bool is_double = p + 1 < q->pattern.count && q->pattern.at[p + 1] == '*';
    bool has_slash = is_double && p + 2 < q->pattern.count;
    size_t next = p + (has_slash ? 3 : is_double ? 2 : 1);
    if (matches(q, next, s))
        return true;
    for (size_t i = s; i < q->subject.count; i++) {
        if ((!is_components || q->subject.at[i] == '/') && matches(q, next, i + 1))
            return true;
    }
    return false;
}

static bool matches_here(struct question *q, size_t p, size_t s)
{
    if (p >= q->pattern.count)
        return s == q->subject.count;
    switch (q->pattern.at[p]) {
    case '*':
        return matches_stars(q, p, s);
    case '[':
        return matches_class(q, p, s);
    case '?':
        return s < q->subject.count && matches(q, p + 1, s + 1);
    default:
        return s < q->subject.count && q->subject.at[s] == q->pattern.at[p] &&
               matches(q, p + 1, s + 1);
    }
}

static bool matches(struct question *q, size_t p, size_t s)
{
    if (p <= q->pattern.count && q->has_failed[p][s])
        return false;
    if (matches_here(q, p, s))
        return true;
    if (p <= q->pattern.count)
        q->has_failed[p][s] = true;
    return false;
}

static size_t stars_at(const struct characters *pattern, size_t p)
{
    size_t count = 0;
    while (p + count < pattern->count && pattern->at[p + count] == '*')
        count++;
    return count;
}

static bool is_valid(const struct characters *pattern)
{
    for (size_t p = 0; p < pattern->count;) {
        size_t stars = stars_at(pattern, p);
        bool starts = p == 0 || pattern->at[p - 1] == '/';
        bool ends = p + stars == pattern->count || pattern->at[p + stars] == '/';
        if (stars > 2 || (stars == 2 && !(starts && ends)))
            return false;
        if (pattern->at[p] == '[') {
            p = class_end(pattern, p);
            if (p >= pattern->count)
                return false;
        }
        p += stars ? stars : 1;
    }
    return true;
}

static bool holds(struct str subject, struct str literal)
{
    return literal.length == 0 ||
           memmem(subject.bytes, subject.length, literal.bytes, literal.length);
}

static void compare(const struct glob *glob, struct str pattern, struct str subject)
{
    struct question *q = memory_alloc(sizeof *q);
    *q = (struct question){.pattern = decode(pattern), .subject = decode(subject)};
    bool expected = matches(q, 0, 0);
    bool found = glob_matches(glob, subject);
    FUZZ_EXPECT(expected == found);
    size_t position = 0;
    for (struct str literal; found && glob_next_literal(glob, &position, &literal);)
        FUZZ_EXPECT(holds(subject, literal));
    free(q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct str pattern = fuzz_text(&input, fuzz_byte(&input) % MAX_CHARACTERS);
    struct str subject = fuzz_text(&input, MAX_CHARACTERS);
    struct error error = {""};
    struct glob *glob = glob_compile(pattern, &error);
    const struct characters characters = decode(pattern);
    FUZZ_EXPECT((glob != NULL) == (str_is_utf8(pattern) && is_valid(&characters)));
    FUZZ_EXPECT((glob != NULL) == (error.message[0] == '\0'));
    if (glob) {
        compare(glob, pattern, subject);
        compare(glob, pattern, pattern);
    }
    glob_destroy(glob);
    return 0;
}
