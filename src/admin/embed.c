/*
 * Turns the page's files into C, at build time, so that the binary needs nothing beside it:
 * embed OUT.c FILE… writes assets[] (assets.h), each under "/" and its file name.
 * embed OUT.c --text NAME FILE writes the file as the text NAME.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *suffix, *content_type;
} types[] = {
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".svg", "image/svg+xml"},
};

static const char *content_type(const char *name)
{
    const char *suffix = strrchr(name, '.');
    for (size_t i = 0; suffix && i < sizeof types / sizeof *types; i++) {
        if (strcmp(suffix, types[i].suffix) == 0)
            return types[i].content_type;
    }
    fprintf(stderr, "embed: no content type is known for %s\n", name);
    exit(EXIT_FAILURE);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void write_bytes(FILE *out, const char *path)
{
    FILE *in = fopen(path, "rb");
    if (!in) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    int c;
    for (long count = 0; (c = getc(in)) != EOF; count++)
        fprintf(out, "%s%d,", count % 20 == 0 ? "\n" : "", c < 128 ? c : c - 256);
    fclose(in);
}

static void write_text(FILE *out, const char *name, const char *path)
{
    fprintf(out, "extern const char %s[];\nconst char %s[] = {", name, name);
    write_bytes(out, path);
    fprintf(out, "\n0};\n");
}

static void write_assets(FILE *out, char *const *paths, int count)
{
    fprintf(out, "#include \"assets.h\"\n");
    for (int i = 0; i < count; i++) {
        fprintf(out, "static const char bytes_%d[] = {", i);
        write_bytes(out, paths[i]);
        fprintf(out, "\n};\n");
    }
    fprintf(out, "const struct asset assets[] = {\n");
    for (int i = 0; i < count; i++) {
        const char *name = base_name(paths[i]);
        fprintf(out, "{\"/%s\", \"%s\", {bytes_%d, sizeof bytes_%d}},\n",
                strcmp(name, "index.html") == 0 ? "" : name, content_type(name), i, i);
    }
    fprintf(out, "};\nconst size_t asset_count = sizeof assets / sizeof *assets;\n");
}

int main(int argc, char **argv)
{
    FILE *out = argc > 2 ? fopen(argv[1], "w") : NULL;
    if (!out) {
        fprintf(stderr, "usage: embed OUT.c FILE... | --text NAME FILE\n");
        return EXIT_FAILURE;
    }
    if (argc == 5 && strcmp(argv[2], "--text") == 0)
        write_text(out, argv[3], argv[4]);
    else
        write_assets(out, argv + 2, argc - 2);
    return fclose(out) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
