/*
 * Keeps the generated parts of the documents: reference --write FILE… or --check FILE…
 *
 * A generated part is between <!-- generated: NAME --> and <!-- end of generated -->, in a manual
 * page between the same words as comments of roff. NAME is a row of the table below, and its text
 * comes from the very table that the program itself follows, so that the documents cannot say
 * anything else.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/str.h"
#include "taskgate/mcp/jsonrpc.h"

/* ---- the keys as a manual page ---- */

/* Words of Markdown as roff: code is bold, of a link the words stay, and a line that begins with a
 * request's character does not become a request. */
static void append_words(struct buffer *out, struct str text)
{
    bool is_code = false;
    for (size_t i = 0; i < text.length; i++) {
        char c = text.bytes[i];
        const char *link = c == ']' ? memmem(text.bytes + i, text.length - i, "](", 2) : NULL;
        const char *end = link == text.bytes + i ? memchr(link, ')', text.length - i) : NULL;
        if (c == '`') {
            is_code = !is_code;
            buffer_append_text(out, is_code ? "\\fB" : "\\fR");
        } else if (end && !is_code) {
            i = (size_t)(end - text.bytes);
        } else if (c == '[' && !is_code && memmem(text.bytes + i, text.length - i, "](", 2)) {
            continue;
        } else if (c == '\\') {
            buffer_append_text(out, "\\e");
        } else if (c == '-') {
            buffer_append_text(out, "\\-");
        } else {
            if (i == 0 && (c == '.' || c == '\''))
                buffer_append_text(out, "\\&");
            buffer_append_char(out, c);
        }
    }
    buffer_append_char(out, '\n');
}

/* "- `key` (type): help" is a paragraph with a tag; its further lines begin with blanks. */
static void append_line(struct buffer *out, struct str line)
{
    struct str tag, help;
    if (str_starts_with(line, STR("### ")) || str_starts_with(line, STR("## "))) {
        bool is_sub = line.bytes[2] == '#';
        buffer_append_text(out, is_sub ? ".SS " : ".SH ");
        append_words(out, str_slice(line.bytes + 3 + is_sub, line.length - 3 - is_sub));
    } else if (str_starts_with(line, STR("- ")) && str_cut(line, '(', &tag, &help)) {
        buffer_append_text(out, ".TP\n");
        append_words(out, str_trim(str_slice(tag.bytes + 2, tag.length - 2)));
        append_words(out, str_slice(help.bytes - 1, help.length + 1));
    } else if (str_starts_with(line, STR("- "))) {
        buffer_append_text(out, ".TP\n");
        if (!str_cut(line, ':', &tag, &help))
            tag = line;
        append_words(out, str_slice(tag.bytes + 2, tag.length - 2));
        append_words(out, str_trim(help));
    } else if (line.length > 0) {
        append_words(out, str_trim(line));
    }
}

static void write_manual(struct buffer *out)
{
    struct buffer reference;
    buffer_init(&reference);
    config_write_reference(&reference);
    struct str rest = buffer_str(&reference), line;
    while (rest.length > 0) {
        str_cut(rest, '\n', &line, &rest);
        append_line(out, line);
    }
    buffer_finish(&reference);
}

static const struct {
    const char *name;
    void (*write)(struct buffer *out);
} parts[] = {
    {"configuration", config_write_reference},
    {"manual", write_manual},
    {"errors", jsonrpc_write_error_reference},
    {"metrics", metrics_write_reference},
};
#define PART_COUNT (sizeof parts / sizeof *parts)

static const struct marks {
    const char *begin, *begin_end, *end;
} markdown_marks = {"<!-- generated: ", " -->\n\n", "\n<!-- end of generated -->"},
  roff_marks = {".\\\" generated: ", "\n", ".\\\" end of generated"};

static bool read_file(const char *path, struct buffer *text)
{
    char chunk[65536];
    size_t count;
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    while ((count = fread(chunk, 1, sizeof chunk, file)) > 0)
        buffer_append(text, str_slice(chunk, count));
    bool good = !ferror(file);
    fclose(file);
    return good;
}

static bool write_file(const char *path, struct str text)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        return false;
    bool good = fwrite(text.bytes, 1, text.length, file) == text.length;
    return fclose(file) == 0 && good;
}

/* Splits `text` around the first `mark`; without one all of it is before. */
static bool cut_at(struct str text, const char *mark, struct str *before, struct str *after)
{
    const char *found = text.length ? memmem(text.bytes, text.length, mark, strlen(mark)) : NULL;
    *before = found ? str_slice(text.bytes, (size_t)(found - text.bytes)) : text;
    *after = STR_EMPTY;
    if (found)
        *after = str_slice(found + strlen(mark), text.length - before->length - strlen(mark));
    return found != NULL;
}

static bool write_part(struct buffer *out, struct str name)
{
    for (size_t i = 0; i < PART_COUNT; i++) {
        if (str_equal(name, str_from(parts[i].name))) {
            parts[i].write(out);
            return true;
        }
    }
    return false;
}

/* `text` with every generated part made anew; false when a mark stands alone, names nothing,
 * or there is none at all. */
static bool make_anew(struct buffer *out, struct str text, const struct marks *marks)
{
    struct str before, name, old;
    size_t count = 0;
    for (; cut_at(text, marks->begin, &before, &text); count++) {
        buffer_append(out, before);
        if (!cut_at(text, marks->begin_end, &name, &text))
            return false;
        buffer_append_format(out, "%s%.*s%s", marks->begin, STR_ARGS(name), marks->begin_end);
        if (!write_part(out, name) || !cut_at(text, marks->end, &old, &text))
            return false;
        buffer_append_text(out, marks->end);
    }
    buffer_append(out, before);
    return count > 0;
}

/* Whether the file is, or has been made, what it should be. */
static bool handle(const char *path, bool may_write)
{
    struct buffer old, new;
    bool good = false, is_markdown = str_ends_with(str_from(path), STR(".md"));
    buffer_init(&old);
    buffer_init(&new);
    if (!read_file(path, &old)) {
        perror(path);
    } else if (!make_anew(&new, buffer_str(&old), is_markdown ? &markdown_marks : &roff_marks)) {
        fprintf(stderr, "%s: its marks of generated parts are incomplete\n", path);
    } else if (str_equal(buffer_str(&old), buffer_str(&new))) {
        good = true;
    } else if (!may_write) {
        fprintf(stderr, "%s: not what the tables say; run the target docs: ninja docs\n", path);
    } else {
        good = write_file(path, buffer_str(&new));
        if (!good)
            perror(path);
    }
    buffer_finish(&old);
    buffer_finish(&new);
    return good;
}

int main(int argc, char **argv)
{
    bool may_write = argc > 2 && strcmp(argv[1], "--write") == 0, good = true;
    if (argc < 3 || (!may_write && strcmp(argv[1], "--check") != 0)) {
        fprintf(stderr, "usage: reference --write|--check FILE...\n");
        return EXIT_FAILURE;
    }
    for (int i = 2; i < argc; i++)
        good = handle(argv[i], may_write) && good;
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
