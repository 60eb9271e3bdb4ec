/* The canonical form: one walk over the text writes all but the order of members, and a second one
 * over what was written puts members in their places. However deep a byte lies, it is moved once.
 */
#include "taskgate/json/canonical.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "unescape.h"
#include "walk.h"

/* A member that has been written. */
struct member {
    struct str key;       /* decoded */
    uint64_t head;        /* its first bytes as a number: most keys differ there */
    size_t start, length; /* in `out`, without commas */
    size_t object;        /* the first object that stands in it or behind it */
};

/* An object that has been written. They are kept in the order in which they begin. */
struct object {
    size_t start, end;   /* in `out` */
    size_t first, count; /* of `moved`, in their order; none when all stand where they belong */
    size_t next;         /* the first object behind this one */
};

struct members {
    struct member *items;
    size_t count, capacity;
};

struct writer {
    const char *at, *end;
    struct buffer *out;
    struct buffer keys;   /* decoded keys; never grows, so that they stay where they are */
    struct members open;  /* a stack: an inner object's above those of the outer one */
    struct members moved; /* those of the objects that are out of order */
    struct object *objects;
    size_t object_count, object_capacity;
};

static const char *behind_non_ascii(const char *p, const char *end)
{
    while (p < end && (unsigned char)*p >= 0x80)
        p++;
    return p;
}

/* The fewest escapes RFC 8259 allows, in one spelling. */
void canonical_write_text(struct str text, struct buffer *out)
{
    static const char named[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    buffer_append_char(out, '"');
    const char *p = text.bytes, *end = p + text.length;
    while (p < end) {
        const char *run = p;
        while ((p = plain_end(p, end)) < end && (unsigned char)*p >= 0x80)
            p = behind_non_ascii(p, end);
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
        ASSERT_NUMBERS(text.length, <=, writer->keys.capacity - start); /* else all would move */
        unescape_append(&writer->keys, text);
        text = str_slice(writer->keys.bytes + start, writer->keys.length - start);
    }
    canonical_write_text(text, writer->out);
    return text;
}

static void skip(struct writer *writer)
{
    writer->at = skip_space(writer->at, writer->end);
}

static void canonical_add_member(struct members *members, const struct member *member)
{
    if (members->count == members->capacity) {
        members->capacity = members->capacity ? members->capacity * 2 : 16;
        members->items = memory_grow_array(members->items, members->capacity, sizeof *member);
    }
    members->items[members->count++] = *member;
}

/* The key's first eight bytes, the first one highest, so that numbers are ordered as keys are. */
static uint64_t head_of(struct str key)
{
    uint64_t word = 0;
    if (key.length > 0)
        memcpy(&word, key.bytes, key.length < sizeof word ? key.length : sizeof word);
    return be64toh(word);
}

static int canonical_compare_members(const void *a, const void *b)
{
    const struct member *left = a, *right = b;
    if (left->head != right->head)
        return left->head < right->head ? -1 : 1;
    return str_compare(left->key, right->key);
}

static bool in_order(const struct member *members, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (canonical_compare_members(&members[i - 1], &members[i]) > 0)
            return false;
    }
    return true;
}

/* ---- the first walk: in the order of the text ---- */

static void canonical_write_value(struct writer *writer);

static void canonical_write_member(struct writer *writer)
{
    struct member member = {.start = writer->out->length, .object = writer->object_count};
    member.key = write_string(writer);
    member.head = head_of(member.key);
    skip(writer);
    writer->at++; /* the colon */
    buffer_append_char(writer->out, ':');
    canonical_write_value(writer);
    member.length = writer->out->length - member.start;
    canonical_add_member(&writer->open, &member);
}

/* The elements or members, up to the closing byte. */
static void write_items(struct writer *writer, bool is_object)
{
    skip(writer);
    while (writer->at < writer->end && *writer->at != '}' && *writer->at != ']') {
        if (*writer->at == ',') {
            buffer_append_char(writer->out, *writer->at++);
            skip(writer);
        }
        if (is_object)
            canonical_write_member(writer);
        else
            canonical_write_value(writer);
        skip(writer);
    }
}

static void canonical_write_array(struct writer *writer)
{
    buffer_append_char(writer->out, *writer->at++);
    write_items(writer, false);
    buffer_append_char(writer->out, ']');
    writer->at++;
}

static size_t begin_object(struct writer *writer)
{
    if (writer->object_count == writer->object_capacity) {
        writer->object_capacity = writer->object_capacity ? writer->object_capacity * 2 : 16;
        writer->objects =
            memory_grow_array(writer->objects, writer->object_capacity, sizeof *writer->objects);
    }
    writer->objects[writer->object_count] = (struct object){.start = writer->out->length};
    return writer->object_count++;
}

static void canonical_write_object(struct writer *writer)
{
    size_t number = begin_object(writer), first = writer->open.count;
    buffer_append_char(writer->out, *writer->at++);
    write_items(writer, true);
    buffer_append_char(writer->out, '}');
    writer->at++;
    struct object *object = &writer->objects[number];
    size_t count = writer->open.count - first;
    object->end = writer->out->length;
    object->next = writer->object_count;
    /* Without members there may be no array yet. */
    struct member *members = count > 1 ? writer->open.items + first : NULL;
    if (members && !in_order(members, count)) {
        qsort(members, count, sizeof *members, canonical_compare_members);
        object->first = writer->moved.count;
        object->count = count;
        for (size_t i = 0; i < count; i++)
            canonical_add_member(&writer->moved, &members[i]);
    }
    writer->open.count = first;
}

static void canonical_write_value(struct writer *writer)
{
    skip(writer);
    if (writer->at >= writer->end)
        return;
    if (*writer->at == '{') {
        canonical_write_object(writer);
    } else if (*writer->at == '[') {
        canonical_write_array(writer);
    } else if (*writer->at == '"') {
        write_string(writer);
    } else {
        const char *behind = walk_value(writer->at, writer->end);
        buffer_append(writer->out, str_slice(writer->at, (size_t)(behind - writer->at)));
        writer->at = behind;
    }
}

/* ---- the second walk: members in their order ---- */

static void move_span(struct writer *writer, const char *written, size_t from, size_t to,
                      size_t next);

/* `written` is what the first walk has written, at the places that it has noted. */
static void move_object(struct writer *writer, const char *written, const struct object *object)
{
    const struct member *members = writer->moved.items + object->first;
    for (size_t i = 0; i < object->count; i++) {
        buffer_append_char(writer->out, i > 0 ? ',' : '{');
        move_span(writer, written, members[i].start, members[i].start + members[i].length,
                  members[i].object);
    }
    buffer_append_char(writer->out, '}');
}

/* Writes a span of it; `next` is the first object that begins in it or behind it. */
static void move_span(struct writer *writer, const char *written, size_t from, size_t to,
                      size_t next)
{
    while (next < writer->object_count && writer->objects[next].start < to) {
        const struct object *object = &writer->objects[next++];
        if (object->count == 0)
            continue;
        buffer_append(writer->out, str_slice(written + from, object->start - from));
        move_object(writer, written, object);
        from = object->end;
        next = object->next;
    }
    buffer_append(writer->out, str_slice(written + from, to - from));
}

static void put_in_order(struct writer *writer, size_t start)
{
    struct buffer written = *writer->out;
    size_t end = written.length;
    buffer_init(writer->out);
    buffer_reserve(writer->out, end);
    buffer_append(writer->out, str_slice(written.bytes, start));
    move_span(writer, written.bytes, start, end, 0);
    buffer_finish(&written);
}

void canonical_write(struct str value, struct buffer *out)
{
    if (value.length == 0)
        value = STR("{}");
    struct writer writer = {.at = value.bytes, .end = value.bytes + value.length, .out = out};
    size_t start = out->length;
    buffer_reserve(out, value.length);
    buffer_init(&writer.keys);
    if (memchr(value.bytes, '\\', value.length))
        buffer_reserve(&writer.keys, value.length);
    canonical_write_value(&writer);
    if (writer.moved.count > 0)
        put_in_order(&writer, start);
    free(writer.open.items);
    free(writer.moved.items);
    free(writer.objects);
    buffer_finish(&writer.keys);
}

void canonical_digest(struct str value, char hex[DIGEST_HEX_BYTES])
{
    OWNED_BUFFER(form);
    canonical_write(value, &form);
    digest_sha256_hex(buffer_str(&form), hex);
}
