/*
 * Turns the page's files into C, at build time, so that the binary needs nothing beside it:
 * embed OUT.c FILE… writes assets[] (assets.h), each under "/" and its file name.
 * embed OUT.c --text NAME FILE writes the file as the text NAME.
 * The same files make the same bytes: gzip's header, as zlib writes it, has no time and no name.
 */
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define MAX_FILE_BYTES ((size_t)1 << 20)
#define GZIP_WINDOW_BITS (15 + 16) /* the largest window, and gzip's header */
#define TAG_BYTES ((size_t)16)

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

static void embed_fail(const char *path, const char *why)
{
    fprintf(stderr, "embed: %s: %s\n", path, why);
    exit(EXIT_FAILURE);
}

/* Into memory of its own that the next file takes. */
static unsigned char *embed_read_file(const char *path, size_t *length)
{
    static unsigned char bytes[MAX_FILE_BYTES];
    FILE *in = fopen(path, "rb");
    if (!in) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    *length = fread(bytes, 1, sizeof bytes, in);
    if (ferror(in) || *length == sizeof bytes)
        embed_fail(path, "the file cannot be read, or is too large");
    fclose(in);
    return bytes;
}

static void write_bytes(FILE *out, const unsigned char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        /* A byte above 127 is no char where that is signed, and a negative one none where not. */
        fprintf(out, bytes[i] < 128 ? "%s%d," : "%s(char)%d,", i % 20 == 0 ? "\n" : "", bytes[i]);
}

static void embed_write_text(FILE *out, const char *name, const char *path)
{
    size_t length;
    const unsigned char *bytes = embed_read_file(path, &length);
    fprintf(out, "extern const char %s[];\nconst char %s[] = {", name, name);
    write_bytes(out, bytes, length);
    fprintf(out, "\n0};\n");
}

static void write_compressed(FILE *out, const char *path, unsigned char *bytes, size_t length)
{
    static unsigned char compressed[2 * MAX_FILE_BYTES];
    z_stream stream = {.next_in = bytes,
                       .avail_in = (uInt)length,
                       .next_out = compressed,
                       .avail_out = (uInt)sizeof compressed};
    if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, GZIP_WINDOW_BITS, MAX_MEM_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK ||
        deflate(&stream, Z_FINISH) != Z_STREAM_END)
        embed_fail(path, "the file cannot be compressed");
    write_bytes(out, compressed, stream.total_out);
    deflateEnd(&stream);
}

/* The two representations are different bytes, and have different tags (RFC 9110 §8.8.3.3). */
static void write_tags(FILE *out, int number, const char *path, const unsigned char *bytes,
                       size_t length)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    char tag[2 * TAG_BYTES + 1];
    if (EVP_Digest(bytes, length, digest, NULL, EVP_sha256(), NULL) != 1)
        embed_fail(path, "SHA-256 is missing");
    for (size_t i = 0; i < TAG_BYTES; i++)
        snprintf(tag + 2 * i, 3, "%02x", digest[i]);
    fprintf(out, "static const char tag_%d[] = \"\\\"%s\\\"\";\n", number, tag);
    fprintf(out, "static const char gzip_tag_%d[] = \"\\\"%s-gzip\\\"\";\n", number, tag);
}

static void write_asset(FILE *out, int number, const char *path)
{
    size_t length;
    unsigned char *bytes = embed_read_file(path, &length);
    fprintf(out, "static const char bytes_%d[] = {", number);
    write_bytes(out, bytes, length);
    fprintf(out, "\n};\nstatic const char gzip_%d[] = {", number);
    write_compressed(out, path, bytes, length);
    fprintf(out, "\n};\n");
    write_tags(out, number, path, bytes, length);
}

static void write_modules(FILE *out, char *const *paths, int count)
{
    const char *joint = "";
    fprintf(out, "static const char modules[] = \"");
    for (int i = 0; i < count; i++) {
        const char *name = base_name(paths[i]), *suffix = strrchr(name, '.');
        if (strcmp(suffix, ".js") != 0)
            continue;
        fprintf(out, "%s<./%s>; rel=modulepreload", joint, name);
        joint = ", ";
    }
    fprintf(out, "\";\nconst struct str asset_modules = {modules, sizeof modules - 1};\n");
}

static void write_assets(FILE *out, char *const *paths, int count)
{
    fprintf(out, "#include \"assets.h\"\n");
    for (int i = 0; i < count; i++)
        write_asset(out, i, paths[i]);
    fprintf(out, "const struct asset assets[] = {\n");
    for (int i = 0; i < count; i++) {
        const char *name = base_name(paths[i]);
        fprintf(out, "{\"/%s\", \"%s\", {bytes_%d, sizeof bytes_%d}, {gzip_%d, sizeof gzip_%d},\n",
                strcmp(name, "index.html") == 0 ? "" : name, content_type(name), i, i, i, i);
        fprintf(out, " {tag_%d, sizeof tag_%d - 1}, {gzip_tag_%d, sizeof gzip_tag_%d - 1}},\n", i,
                i, i, i);
    }
    fprintf(out, "};\nconst size_t asset_count = sizeof assets / sizeof *assets;\n");
    write_modules(out, paths, count);
}

int main(int argc, char **argv)
{
    FILE *out = argc > 2 ? fopen(argv[1], "w") : NULL;
    if (!out) {
        fprintf(stderr, "usage: embed OUT.c FILE... | --text NAME FILE\n");
        return EXIT_FAILURE;
    }
    if (argc == 5 && strcmp(argv[2], "--text") == 0)
        embed_write_text(out, argv[3], argv[4]);
    else
        write_assets(out, argv + 2, argc - 2);
    return fclose(out) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
