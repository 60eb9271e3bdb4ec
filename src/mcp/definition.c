/* The members that count, and their form for people. */
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/visible.h"
#include "taskgate/json/canonical.h"
#include "taskgate/json/fold.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/definition.h"

/* The flags of one definition by itself. */

#define LONG_BYTES ((size_t)8192)
/* Only the beginning of a longer definition is looked through for instructions. */
#define SEARCHED_BYTES ((size_t)64 * 1024)
#define MOST_GAP 80

/* ---- characters ---- */

static bool is_bidi(unsigned c)
{
    return (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0x200E ||
           c == 0x200F || c == 0x061C;
}

static bool is_joiner(unsigned c)
{
    return c == 0x200C || c == 0x200D;
}

/* Selects a form of the character before it, as emoji have it. */
static bool is_selector(unsigned c)
{
    return c >= 0xFE00 && c <= 0xFE0F;
}

/* Spaces, signs of number formats and private characters are hidden, too, but have a use in
 * texts. */
static bool has_no_width(unsigned c)
{
    static const struct {
        unsigned first, last;
    } ranges[] = {
        {0x00AD, 0x00AD}, {0x034F, 0x034F},   {0x115F, 0x1160},   {0x17B4, 0x17B5},
        {0x180B, 0x180F}, {0x200B, 0x200D},   {0x2060, 0x2065},   {0x206A, 0x206F},
        {0x2800, 0x2800}, {0x3164, 0x3164},   {0xFE00, 0xFE0F},   {0xFEFF, 0xFEFF},
        {0xFFA0, 0xFFA0}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0080, 0xE0FFF},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (c >= ranges[i].first && c <= ranges[i].last)
            return visible_is_hidden(c);
    }
    return false;
}

/* `next` begins the rest. Joiners stand between letters of scripts that need them, and in emoji. */
static unsigned flag_of(unsigned before, unsigned c, struct str rest)
{
    unsigned next = rest.length > 0 ? (unsigned char)rest.bytes[0] : 0;
    if (is_bidi(c))
        return FLAGGED(BIDI);
    if (c >= 0xE0000 && c <= 0xE007F)
        return FLAGGED(TAG);
    if ((is_joiner(c) && before >= 0x80 && next >= 0x80) ||
        (is_selector(c) && !is_selector(before)))
        return 0;
    if (has_no_width(c))
        return FLAGGED(ZERO_WIDTH);
    if (c == 0x9B)
        return FLAGGED(ANSI) | FLAGGED(CONTROL);
    return (c >= 0x7F && c <= 0x9F) ? FLAGGED(CONTROL) : 0;
}

static bool definition_is_one_of(const char *characters, char c)
{
    return c != '\0' && strchr(characters, c) != NULL;
}

/* Of the canonical form's escapes, which are as few as can be: controls have one. */
static unsigned flag_of_escape(struct str escape)
{
    static const char sequence[] = "\\u001b";
    if (escape.length > 6 && memcmp(escape.bytes, sequence, 6) == 0)
        return FLAGGED(CONTROL) |
               (definition_is_one_of("[]()P_^", escape.bytes[6]) ? FLAGGED(ANSI) : 0);
    return definition_is_one_of("ubf", escape.bytes[1]) ? FLAGGED(CONTROL) : 0;
}

static unsigned flags_of_characters(struct str text)
{
    unsigned flags = 0, before = 0;
    while (text.length > 0) {
        unsigned c;
        size_t length = str_code_point(text, &c);
        if (length == 0)
            length = 1;
        if (c == '\\' && text.length > 1) {
            flags |= flag_of_escape(text);
            length = 2;
        }
        struct str rest = str_slice(text.bytes + length, text.length - length);
        if (c >= 0x7F)
            flags |= flag_of(before, c, rest);
        before = c;
        text = rest;
    }
    return flags;
}

/* ---- as it looks ---- */

/* Letters of other scripts, by their small form, that look like a Latin one. */
static const struct {
    const char *letters;
    char latin;
} alike[] = {
    {"аα", 'a'},  {"вβ", 'b'}, {"сϲ", 'c'}, {"ԁ", 'd'},  {"еεҽ", 'e'}, {"һнη", 'h'},
    {"іιӏ", 'i'}, {"јϳ", 'j'}, {"кκ", 'k'}, {"мμ", 'm'}, {"ոν", 'n'},  {"оοօ", 'o'},
    {"рρ", 'p'},  {"ԛ", 'q'},  {"ѕ", 's'},  {"тτ", 't'}, {"υս", 'u'},  {"ѵ", 'v'},
    {"ԝω", 'w'},  {"хχ", 'x'}, {"уγ", 'y'}, {"ζ", 'z'},
};

static char latin_of(struct str letter)
{
    for (size_t i = 0; i < sizeof alike / sizeof *alike; i++) {
        for (const char *at = alike[i].letters; *at; at += letter.length) {
            if (strncmp(at, letter.bytes, letter.length) == 0)
                return alike[i].latin;
        }
    }
    return '\0';
}

static void append_folded(struct buffer *out, struct str text)
{
    while (text.length > 0) {
        struct str folded = fold_next(&text);
        char latin = '\0';
        if (folded.length == 2)
            latin = latin_of(folded);
        if (latin)
            buffer_append_char(out, latin);
        else
            buffer_append(out, folded);
    }
}

void mcp_definition_fold_name(struct buffer *out, struct str name)
{
    size_t start = out->length;
    append_folded(out, name);
    for (size_t i = start; i < out->length; i++) {
        if (out->bytes[i] == '0')
            out->bytes[i] = 'o';
        else if (out->bytes[i] == '1')
            out->bytes[i] = 'l';
    }
}

/* ---- words ---- */

/* One blank for the white space of the canonical text and its escapes. */
static void definition_write_words(struct buffer *out, struct str canonical)
{
    OWNED_BUFFER(folded);
    append_folded(&folded, canonical);
    for (size_t i = 0; i < folded.length; i++) {
        char c = folded.bytes[i];
        if (c == '\\' && i + 1 < folded.length) {
            char escaped = folded.bytes[++i];
            c = escaped;
            if (definition_is_one_of("nrt", escaped))
                c = ' ';
        }
        if (c != ' ' || out->length == 0 || out->bytes[out->length - 1] != ' ')
            buffer_append_char(out, c);
    }
}

/* The rest behind the part; without bytes when it is not there. */
static struct str behind(struct str text, struct str part)
{
    const char *at = text.length >= part.length
                         ? memmem(text.bytes, text.length, part.bytes, part.length)
                         : NULL;
    if (!at)
        return (struct str){NULL, 0};
    at += part.length;
    return str_slice(at, text.length - (size_t)(at - text.bytes));
}

static struct str next_part(const char **pattern)
{
    const char *dots = strstr(*pattern, "...");
    struct str part = dots ? str_slice(*pattern, (size_t)(dots - *pattern)) : str_from(*pattern);
    *pattern = dots ? dots + 3 : NULL;
    return part;
}

static bool follows(struct str text, const char *pattern)
{
    while (pattern && text.bytes) {
        struct str part = next_part(&pattern);
        size_t most = part.length + MOST_GAP;
        struct str near = str_slice(text.bytes, text.length < most ? text.length : most);
        struct str rest = behind(near, part);
        if (!rest.bytes)
            return false;
        text = str_slice(rest.bytes, text.length - (size_t)(rest.bytes - text.bytes));
    }
    return text.bytes != NULL;
}

static bool has_pattern(struct str text, const char *pattern)
{
    const char *rest = pattern;
    struct str first = next_part(&rest);
    while ((text = behind(text, first)).bytes) {
        if (!rest || follows(text, rest))
            return true;
    }
    return false;
}

static bool has_instructions(struct str canonical)
{
    static const char *const patterns[] = {
#define INSTRUCTION(pattern, source) pattern,
#include "instruction_patterns.h"
#undef INSTRUCTION
    };
    OWNED_BUFFER(words);
    bool is_found = false;
    definition_write_words(&words, str_utf8_cut(canonical, SEARCHED_BYTES));
    for (size_t i = 0; !is_found && i < sizeof patterns / sizeof *patterns; i++)
        is_found = has_pattern(buffer_str(&words), patterns[i]);
    return is_found;
}

/* The flags of a canonical text, without those of lists. `description` is JSON text, or empty. */
static unsigned mcp_definition_flags(struct str canonical, struct str description)
{
    unsigned flags = flags_of_characters(canonical);
    if (has_instructions(canonical))
        flags |= FLAGGED(INSTRUCTIONS);
    if (description.length > LONG_BYTES) { /* decoding makes it no longer */
        OWNED_BUFFER(text);
        if (json_decode_string(description, &text) && text.length > LONG_BYTES)
            flags |= FLAGGED(LONG);
    }
    return flags;
}

#define MOST_MEMBERS 6

static const char *const members[DEFINITION_KINDS][MOST_MEMBERS + 1] = {
    [DEFINITION_TOOL] = {"name", "title", "description", "inputSchema", "outputSchema",
                         "annotations"},
    [DEFINITION_PROMPT] = {"name", "title", "description", "arguments"},
    [DEFINITION_SKILL] = {"frontmatter"},
};

/* ---- the files of a skill: a set ---- */

static int definition_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *file_of(struct str entry)
{
    static const char *const keys[] = {"uri", "digest", "size"};
    struct str values[3] = {STR_EMPTY, STR_EMPTY, STR_EMPTY};
    struct buffer object, text;
    buffer_init(&object);
    buffer_init(&text);
    json_members(entry, keys, 3, values);
    buffer_append_char(&object, '{');
    for (size_t i = 0; i < 3; i++) {
        if (values[i].length == 0)
            continue;
        json_add_value(&object, keys[i], values[i]);
    }
    buffer_append_char(&object, '}');
    canonical_write(buffer_str(&object), &text);
    buffer_finish(&object);
    return buffer_take(&text, NULL);
}

static void write_files(struct buffer *out, struct str resources)
{
    size_t count = 0, position = 0;
    struct str entry;
    json_add_key(out, "resources");
    if (json_type(resources) != JSON_ARRAY) {
        buffer_append(out, resources);
        return;
    }
    char **files = memory_alloc_array(json_count(resources) + 1, sizeof *files);
    while (json_next_element(resources, &position, &entry))
        files[count++] = file_of(entry);
    qsort(files, count, sizeof *files, definition_compare);
    buffer_append_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        buffer_append_text(out, files[i]);
        free(files[i]);
    }
    buffer_append_char(out, ']');
    free(files);
}

/* ---- the text ---- */

/* A line for each member and element. */
static void break_lines(struct buffer *out, struct str canonical)
{
    bool is_quoted = false;
    for (size_t i = 0; i < canonical.length; i++) {
        char c = canonical.bytes[i];
        buffer_append_char(out, c);
        if (is_quoted && c == '\\')
            buffer_append_char(out, canonical.bytes[++i]);
        else if (c == '"')
            is_quoted = !is_quoted;
        else if (!is_quoted && (c == ',' || c == '{' || c == '['))
            buffer_append_char(out, '\n');
    }
}

void mcp_definition_read(struct mcp_definition *definition, enum definition_kind kind,
                         struct str raw)
{
    struct str values[MOST_MEMBERS];
    OWNED_BUFFER(object);
    OWNED_BUFFER(canonical);
    const char *const *keys = members[kind];
    size_t count = 0;
    while (keys[count])
        values[count++] = STR_EMPTY;
    json_members(raw, keys, count, values);
    buffer_init(&definition->text);
    buffer_append_char(&object, '{');
    for (size_t i = 0; i < count; i++) {
        if (values[i].length == 0)
            continue;
        json_add_value(&object, keys[i], values[i]);
    }
    if (kind == DEFINITION_SKILL && json_member(raw, "resources").length > 0)
        write_files(&object, json_member(raw, "resources"));
    buffer_append_char(&object, '}');
    canonical_write(buffer_str(&object), &canonical);
    digest_sha256_hex(buffer_str(&canonical), definition->digest);
    struct str description = kind == DEFINITION_SKILL ? json_path(raw, "frontmatter", "description")
                                                      : json_member(raw, "description");
    definition->flags = mcp_definition_flags(buffer_str(&canonical), description);
    break_lines(&definition->text, buffer_str(&canonical));
}

void mcp_definition_finish(struct mcp_definition *definition)
{
    buffer_finish(&definition->text);
}
