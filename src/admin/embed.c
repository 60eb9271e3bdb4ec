/*
 * Turns the page's files into C, at build time, so that the binary needs nothing beside it:
 * embed OUT.c FILE… writes assets[] (assets.h), each under "/" and its file name.
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

static void write_bytes(FILE *out, const char *path, int number)
{
    FILE *in = fopen(path, "rb");
    if (!in) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    fprintf(out, "static const char bytes_%d[] = {", number);
    int c;
    for (long count = 0; (c = getc(in)) != EOF; count++)
        fprintf(out, "%s%d,", count % 20 == 0 ? "\n" : "", c < 128 ? c : c - 256);
    fprintf(out, "\n};\n");
    fclose(in);
}

int main(int argc, char **argv)
{
    FILE *out = argc > 2 ? fopen(argv[1], "w") : NULL;
    if (!out) {
        fprintf(stderr, "usage: embed OUT.c FILE...\n");
        return EXIT_FAILURE;
    }
    fprintf(out, "#include \"assets.h\"\n");
    for (int i = 2; i < argc; i++)
        write_bytes(out, argv[i], i);
    fprintf(out, "const struct asset assets[] = {\n");
    for (int i = 2; i < argc; i++) {
        const char *name = base_name(argv[i]);
        fprintf(out, "{\"/%s\", \"%s\", {bytes_%d, sizeof bytes_%d}},\n",
                strcmp(name, "index.html") == 0 ? "" : name, content_type(name), i, i);
    }
    fprintf(out, "};\nconst size_t asset_count = sizeof assets / sizeof *assets;\n");
    return fclose(out) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
