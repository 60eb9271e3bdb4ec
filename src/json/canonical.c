/* The canonical form: one walk over the text; each object's members are put in order behind. */
#include "taskgate/json/canonical.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "taskgate/core/memory.h"
#include "unescape.h"
#include "walk.h"

/* A member that has been written. */
struct member {
    struct str key;       /* decoded */
    size_t start, length; /* in `out`, without commas */
};

struct writer {
    const char *at, *end;
    struct buffer *out;
    struct buffer keys;     /* decoded keys; never grows, so that they stay where they are */
    struct buffer scratch;  /* an object's members while they change places */
    struct member *members; /* a stack: an inner object's above those of the outer one */
    size_t count, capacity;
};

/* The fewest escapes RFC 8259 allows, in one spelling. */
static void write_text(struct buffer *out, struct str text)
{
    static const char named[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    buffer_append_char(out, '"');
    const char *p = text.bytes, *end = p + text.length;
    while (p < end) {
        const char *run = p;
        while (p < end && (unsigned char)*p >= 0x20 && *p != '"' && *p != '\\')
            p++;
        buffer_append(out, str_slice(run, (size_t)(p - run)));
        if (p == end)
            break;
        const char *name = *p ? strchr(named, *p) : NULL;
        if (name) {
            buffer_append_char(out, '\\');
            buffer_append_char(out, letters[name - named]);
        } else {
            buffer_append_format(out, "\\u%04x", (unsigned)*p);
        }
        p++;
    }
    buffer_append_char(out, '"');
}

/* Steps over the string at `at` and writes it; the result is its text, valid until the
 * writer ends. */
static struct str write_string(struct writer *writer)
{
    const char *behind = walk_string(writer->at, writer->end);
    struct str text = str_slice(writer->at + 1, (size_t)(behind - writer->at) - 2);
    writer->at = behind;
    if (text.length && memchr(text.bytes, '\\', text.length)) {
        /* Decoding only shrinks: the text's own length is enough for all of it. */
        size_t start = writer->keys.length;
        unescape_append(&writer->keys, text);
        text = str_slice(writer->keys.bytes + start, writer->keys.length - start);
    }
    write_text(writer->out, text);
    return text;
}

static void skip(struct writer *writer)
{
    writer->at = skip_space(writer->at, writer->end);
}

static int compare_members(const void *a, const void *b)
{
    return str_compare(((const struct member *)a)->key, ((const struct member *)b)->key);
}

static bool in_order(const struct member *members, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (compare_members(&members[i - 1], &members[i]) > 0)
            return false;
    }
    return true;
}

/* Members and the commas between them take the same room in any order. */
static void put_in_order(struct writer *writer, struct member *members, size_t count)
{
    if (in_order(members, count))
        return;
    size_t start = members[0].start;
    buffer_clear(&writer->scratch);
    buffer_append(&writer->scratch,
                  str_slice(writer->out->bytes + start, writer->out->length - start));
    qsort(members, count, sizeof *members, compare_members);
    writer->out->length = start;
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buffer_append_char(writer->out, ',');
        buffer_append(writer->out, str_slice(writer->scratch.bytes + (members[i].start - start),
                                             members[i].length));
    }
}

static void write_value(struct writer *writer);

static void write_member(struct writer *writer)
{
    struct member member = {.start = writer->out->length};
    member.key = write_string(writer);
    skip(writer);
    writer->at++; /* the colon */
    buffer_append_char(writer->out, ':');
    write_value(writer);
    member.length = writer->out->length - member.start;
    if (writer->count == writer->capacity) {
        writer->capacity = writer->capacity ? writer->capacity * 2 : 16;
        writer->members =
            memory_grow_array(writer->members, writer->capacity, sizeof *writer->members);
    }
    writer->members[writer->count++] = member;
}

/* An object or an array, from its opening to its closing byte. */
static void write_container(struct writer *writer, bool object)
{
    size_t first = writer->count;
    buffer_append_char(writer->out, *writer->at++);
    skip(writer);
    while (writer->at < writer->end && *writer->at != '}' && *writer->at != ']') {
        if (*writer->at == ',') {
            buffer_append_char(writer->out, *writer->at++);
            skip(writer);
        }
        if (object)
            write_member(writer);
        else
            write_value(writer);
        skip(writer);
    }
    if (writer->count > first)
        put_in_order(writer, writer->members + first, writer->count - first);
    writer->count = first;
    buffer_append_char(writer->out, object ? '}' : ']');
    writer->at++;
}

static void write_value(struct writer *writer)
{
    skip(writer);
    if (writer->at >= writer->end)
        return;
    if (*writer->at == '{' || *writer->at == '[') {
        write_container(writer, *writer->at == '{');
    } else if (*writer->at == '"') {
        write_string(writer);
    } else {
        const char *behind = walk_value(writer->at, writer->end);
        buffer_append(writer->out, str_slice(writer->at, (size_t)(behind - writer->at)));
        writer->at = behind;
    }
}

void canonical_write(struct str value, struct buffer *out)
{
    if (value.length == 0)
        value = STR("{}");
    struct writer writer = {.at = value.bytes, .end = value.bytes + value.length, .out = out};
    buffer_reserve(out, value.length);
    buffer_init(&writer.keys);
    buffer_init(&writer.scratch);
    if (memchr(value.bytes, '\\', value.length))
        buffer_reserve(&writer.keys, value.length);
    write_value(&writer);
    free(writer.members);
    buffer_finish(&writer.scratch);
    buffer_finish(&writer.keys);
}

void canonical_digest(struct str value, char hex[DIGEST_HEX_BYTES])
{
    struct buffer form;
    buffer_init(&form);
    canonical_write(value, &form);
    digest_sha256_hex(buffer_str(&form), hex);
    buffer_finish(&form);
}
