/* Substitution of environment variables, with a map back to the file's own positions. */
#include "document.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

static size_t source_text_count_characters(struct str s)
{
    size_t count = 0;
    for (size_t i = 0; i < s.length; i++)
        count += !is_continuation(s.bytes[i]);
    return count;
}

static void add_line_start(struct source_text *source, size_t start)
{
    source->line_starts =
        memory_grow_array(source->line_starts, source->line_count + 1, sizeof(size_t));
    source->line_starts[source->line_count++] = start;
}

static void find_lines(struct source_text *source, struct str original)
{
    size_t characters = 0;
    add_line_start(source, 0);
    for (size_t i = 0; i < original.length; i++) {
        char c = original.bytes[i];
        characters += !is_continuation(c);
        bool before_newline = i + 1 < original.length && original.bytes[i + 1] == '\n';
        if (c == '\n' || (c == '\r' && !before_newline))
            add_line_start(source, characters);
    }
}

/* Text appended from now on comes from character `original_at` of the file. */
static struct segment *begin_segment(struct source_text *source, enum segment_kind kind,
                                     size_t text_at, size_t original_at)
{
    source->segments =
        memory_grow_array(source->segments, source->segment_count + 1, sizeof *source->segments);
    struct segment *segment = &source->segments[source->segment_count++];
    *segment = (struct segment){.kind = kind, .text_start = text_at, .original_start = original_at};
    return segment;
}

/* One ${…} as it is in the file. */
struct reference {
    struct str whole;
    struct str name;
    bool has_default;
    struct str fallback;
};

static bool is_name_character(char c, bool is_first)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           (!is_first && c >= '0' && c <= '9');
}

/* Reads a reference at the start of `text`; anything else that begins with "${" is text. */
static bool parse_reference(struct str text, struct reference *reference)
{
    if (!str_starts_with(text, STR("${")))
        return false;
    size_t end = 2;
    while (end < text.length && is_name_character(text.bytes[end], end == 2))
        end++;
    reference->name = str_slice(text.bytes + 2, end - 2);
    reference->fallback = STR_EMPTY;
    reference->has_default = false;
    if (reference->name.length == 0 || end == text.length)
        return false;
    if (str_starts_with(str_slice(text.bytes + end, text.length - end), STR(":-"))) {
        size_t start = end + 2;
        end = start;
        while (end < text.length && text.bytes[end] != '}')
            end++;
        reference->has_default = true;
        reference->fallback = str_slice(text.bytes + start, end - start);
    }
    if (end == text.length || text.bytes[end] != '}')
        return false;
    reference->whole = str_slice(text.bytes, end + 1);
    return true;
}

/* The value for the reference; an empty variable counts as set. */
static struct str source_text_resolve(const struct reference *reference, config_getenv environment,
                                      struct segment *segment)
{
    char *name = memory_copy_str(reference->name);
    const char *value = environment(name);
    struct str result = value ? str_from(value) : reference->fallback;
    if (!value && !reference->has_default)
        segment->problem = memory_format("V-014 the environment variable %s is not set", name);
    else if (!str_is_utf8(result))
        segment->problem = memory_format("the environment variable %s is not UTF-8", name);
    free(name);
    if (!segment->problem)
        return result;
    segment->kind = SEGMENT_MISSING;
    return reference->name;
}

void source_text_init(struct source_text *source, struct str original, const char *name,
                      config_getenv environment)
{
    *source = (struct source_text){.name = name};
    buffer_init(&source->text);
    find_lines(source, original);
    size_t text_at = 0, original_at = 0;
    begin_segment(source, SEGMENT_PLAIN, text_at, original_at);
    for (size_t i = 0; i < original.length;) {
        struct reference reference;
        struct str rest = str_slice(original.bytes + i, original.length - i);
        if (!environment || !parse_reference(rest, &reference)) {
            bool starts_character = !is_continuation(original.bytes[i]);
            text_at += starts_character;
            original_at += starts_character;
            buffer_append_char(&source->text, original.bytes[i++]);
            continue;
        }
        struct segment *segment = begin_segment(source, SEGMENT_VALUE, text_at, original_at);
        struct str value = source_text_resolve(&reference, environment, segment);
        buffer_append(&source->text, value);
        text_at += source_text_count_characters(value);
        original_at += source_text_count_characters(reference.whole);
        i += reference.whole.length;
        begin_segment(source, SEGMENT_PLAIN, text_at, original_at);
    }
}

void source_text_finish(struct source_text *source)
{
    buffer_finish(&source->text);
    for (size_t i = 0; i < source->segment_count; i++)
        free(source->segments[i].problem);
    free(source->segments);
    free(source->line_starts);
}

/* The last segment that begins at or before `index`. */
static const struct segment *find_segment(const struct source_text *source, size_t index)
{
    size_t low = 0, high = source->segment_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (source->segments[middle].text_start <= index)
            low = middle;
        else
            high = middle;
    }
    return &source->segments[low];
}

struct place source_text_place(const struct source_text *source, size_t index)
{
    const struct segment *segment = find_segment(source, index);
    size_t original = segment->original_start;
    if (segment->kind == SEGMENT_PLAIN)
        original += index - segment->text_start;
    size_t low = 0, high = source->line_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (source->line_starts[middle] <= original)
            low = middle;
        else
            high = middle;
    }
    return (struct place){.file = source->name,
                          .line = (int)low + 1,
                          .column = (int)(original - source->line_starts[low]) + 1};
}

bool source_text_holds(const struct source_text *source, size_t start, size_t end,
                       enum segment_kind kind)
{
    const struct segment *last = source->segments + source->segment_count;
    for (const struct segment *segment = find_segment(source, start);
         segment < last && segment->text_start < end; segment++) {
        bool is_empty = segment + 1 < last && segment[1].text_start == segment->text_start;
        if (segment->kind == kind && !is_empty)
            return true;
    }
    return false;
}
