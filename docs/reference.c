/*
 * Keeps the generated parts of the documents: reference --write FILE… or --check FILE…
 *
 * A generated part stands between <!-- generated: NAME --> and <!-- end of generated -->.
 * NAME is a row of the table below, and its text comes from the very table that the program
 * itself follows, so that the documents cannot say anything else.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/str.h"
#include "taskgate/mcp/jsonrpc.h"

static const struct {
    const char *name;
    void (*write)(struct buffer *out);
} parts[] = {
    {"configuration", config_write_reference},
    {"errors", jsonrpc_write_error_reference},
    {"metrics", metrics_write_reference},
};
#define PART_COUNT (sizeof parts / sizeof *parts)

#define BEGIN "<!-- generated: "
#define BEGIN_END " -->\n"
#define END "<!-- end of generated -->"

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
static bool make_anew(struct buffer *out, struct str text)
{
    struct str before, name, old;
    size_t count = 0;
    for (; cut_at(text, BEGIN, &before, &text); count++) {
        buffer_append(out, before);
        if (!cut_at(text, BEGIN_END, &name, &text))
            return false;
        buffer_append_format(out, BEGIN "%.*s" BEGIN_END "\n", STR_ARGS(name));
        if (!write_part(out, name) || !cut_at(text, END, &old, &text))
            return false;
        buffer_append_text(out, "\n" END);
    }
    buffer_append(out, before);
    return count > 0;
}

/* Whether the file is, or has been made, what it should be. */
static bool handle(const char *path, bool may_write)
{
    struct buffer old, new;
    bool good = false;
    buffer_init(&old);
    buffer_init(&new);
    if (!read_file(path, &old)) {
        perror(path);
    } else if (!make_anew(&new, buffer_str(&old))) {
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
