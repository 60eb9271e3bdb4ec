/* YAML events, by libyaml, to a tree with places. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "document.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

/* The nodes of a document: their content, their paths, and findings about them. */

void node_destroy(struct node *node)
{
    if (!node)
        return;
    for (size_t i = 0; i < node->count; i++) {
        if (node->kind == NODE_MAPPING)
            node_destroy(node->keys[i]);
        node_destroy(node->values[i]);
    }
    free(node->keys);
    free(node->values);
    free(node->text);
    free(node);
}

const struct node *node_get(const struct node *mapping, const char *key)
{
    if (!mapping || mapping->kind != NODE_MAPPING)
        return NULL;
    for (size_t i = 0; i < mapping->count; i++) {
        if (strcmp(mapping->keys[i]->text, key) == 0)
            return mapping->values[i];
    }
    return NULL;
}

bool node_is_null(const struct node *node)
{
    if (!node)
        return true;
    if (node->kind != NODE_TEXT || !node->is_plain)
        return false;
    return node->text[0] == '\0' || strcmp(node->text, "~") == 0 ||
           strcmp(node->text, "null") == 0 || strcmp(node->text, "Null") == 0 ||
           strcmp(node->text, "NULL") == 0;
}

const char *node_text(const struct node *node)
{
    return node && node->kind == NODE_TEXT && !node_is_null(node) ? node->text : NULL;
}

char *document_join(const char *path, const char *name)
{
    OWNED char *quoted = NULL;
    for (const char *c = name; *c && !quoted; c++) {
        if (*c <= ' ' || *c == 0x7F || strchr("\"\\.[]:", *c))
            quoted = problems_quote(name);
    }
    return memory_format("%s%s%s", path, *path ? "." : "", quoted ? quoted : name);
}

static char *path_at(const struct node *node, size_t index, const char *path)
{
    if (node->kind == NODE_TEXT)
        return memory_copy_text(path);
    for (size_t i = 0; i < node->count; i++) {
        const struct node *value = node->values[i];
        if (index < value->start || index >= value->end)
            continue;
        OWNED char *inner = node->kind == NODE_LIST ? memory_format("%s[%zu]", path, i)
                                                    : document_join(path, node->keys[i]->text);
        return path_at(value, index, inner);
    }
    return NULL;
}

/* The key whose single value holds the character `index` of the replaced text, as in
 * "sources[0].url"; NULL when no value does. The caller frees. */
static char *document_path_at(const struct node *root, size_t index)
{
    return root ? path_at(root, index, "") : NULL;
}

static struct place document_place_of(const struct report *report, const struct node *node)
{
    return source_text_place(report->source, node->start);
}

/* A single value that is but the name of a variable without a value. */
static bool is_missing(const struct report *report, const struct node *node)
{
    return node->kind == NODE_TEXT &&
           source_text_holds(report->source, node->start, node->end, SEGMENT_MISSING);
}

void report_by(const struct report *report, bool is_warning, const struct node *node,
               const char *path, const char *hint, const char *format, va_list arguments)
{
    struct error message;
    if (is_missing(report, node))
        return;
    vsnprintf(message.message, sizeof message.message, format, arguments);
    (is_warning ? problems_warning : problems_error)(
        report->problems, document_place_of(report, node), path, hint, "%s", message.message);
}

void report_error(const struct report *report, const struct node *node, const char *path,
                  const char *hint, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    report_by(report, false, node, path, hint, format, arguments);
    va_end(arguments);
}

void report_warning(const struct report *report, const struct node *node, const char *path,
                    const char *hint, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    report_by(report, true, node, path, hint, format, arguments);
    va_end(arguments);
}

char *report_quote(const struct report *report, const struct node *node)
{
    if (source_text_holds(report->source, node->start, node->end, SEGMENT_VALUE))
        return memory_copy_text("the value of the variable");
    return problems_quote(node->text);
}

#define MAX_DEPTH 32

struct builder {
    const struct report *report;
    yaml_parser_t parser;
    char *path; /* of the value that comes next, as in "sources[0].url"; "" is the whole */
};

/* Of the value at hand; of the text itself where `key` is NULL. */
static void complain_of(const struct builder *builder, const char *key, yaml_mark_t mark,
                        const char *hint, const char *what)
{
    problems_error(builder->report->problems,
                   source_text_place(builder->report->source, mark.index), key, hint, "%s", what);
}

static void document_complain(const struct builder *builder, yaml_mark_t mark, const char *hint,
                              const char *what)
{
    complain_of(builder, *builder->path ? builder->path : NULL, mark, hint, what);
}

/* The text from a character on, to the end of its line. */
static struct str line_from(const struct source_text *source, size_t index)
{
    struct str text = buffer_str(&source->text), line, rest;
    size_t character = 0, at = 0;
    for (; at < text.length; at++) {
        bool is_start = ((unsigned char)text.bytes[at] & 0xC0) != 0x80;
        if (is_start && character++ == index)
            break;
    }
    str_cut(str_slice(text.bytes + at, text.length - at), '\n', &line, &rest);
    return line;
}

/* `write "*delete*"`, where a value begins with a star and so is none to YAML; NULL anywhere else.
 * The value of a variable is not repeated. The caller frees. */
static char *hint_at_glob(const struct source_text *source, size_t index)
{
    struct str line = line_from(source, index);
    size_t length = 1;
    if (line.length == 0 || line.bytes[0] != '*')
        return NULL;
    while (length < line.length && !strchr(" \t\r,]}", line.bytes[length]))
        length++;
    if (source_text_holds(source, index, index + length, SEGMENT_VALUE))
        return memory_copy_text("put the reference to the variable in quotes");
    return memory_format("put a glob in quotes: \"%.*s\"", (int)length, line.bytes);
}

static bool next_event(struct builder *builder, yaml_event_t *event)
{
    yaml_parser_t *parser = &builder->parser;
    if (yaml_parser_parse(parser, event))
        return true;
    if (parser->error == YAML_MEMORY_ERROR)
        memory_exhausted();
    OWNED char *what =
        memory_format("this is not YAML: %s%s%s", parser->problem, parser->context ? ", " : "",
                      parser->context ? parser->context : "");
    yaml_mark_t mark = parser->problem_mark;
    if (parser->error == YAML_READER_ERROR) { /* which gives the place of a bad byte in bytes */
        struct str text = buffer_str(&builder->report->source->text);
        size_t bytes = parser->problem_offset;
        mark.index =
            str_utf8_count(str_slice(text.bytes, bytes < text.length ? bytes : text.length));
    }
    struct str line = line_from(builder->report->source, mark.index);
    /* An alias that is none is reported behind its star. */
    bool is_alias = parser->context && strstr(parser->context, "alias");
    OWNED char *glob =
        is_alias ? hint_at_glob(builder->report->source, parser->context_mark.index) : NULL;
    if (glob) {
        document_complain(builder, parser->context_mark, glob,
                          "a value must not begin with * in YAML");
    } else {
        /* The parser says only that a tab begins nothing, and an editor shows it as spaces. */
        bool is_tab = line.length > 0 && line.bytes[0] == '\t';
        complain_of(builder, NULL, mark, is_tab ? "indent with spaces: here is a tab" : NULL, what);
    }
    return false;
}

static struct node *node_create(enum node_kind kind, const yaml_event_t *event)
{
    struct node *node = memory_alloc(sizeof *node);
    node->kind = kind;
    node->start = event->start_mark.index;
    node->end = event->end_mark.index;
    return node;
}

/* A tag may name the type that a plain value has anyway. Any other tag is refused, and not read
 * as ordinary text. */
static bool check_tag(const struct builder *builder, const yaml_event_t *event, const char *tag)
{
    if (!tag || strcmp(tag, "!") == 0 || strncmp(tag, "tag:yaml.org,2002:", 18) == 0)
        return true;
    document_complain(builder, event->start_mark, "write the value without the tag",
                      "YAML tags of one's own are not supported");
    return false;
}

static struct node *document_build(struct builder *builder, const yaml_event_t *event, int depth);

static struct node *build_text(struct builder *builder, const yaml_event_t *event)
{
    if (!check_tag(builder, event, (const char *)event->data.scalar.tag))
        return NULL;
    const char *bytes = (const char *)event->data.scalar.value;
    if (memchr(bytes, '\0', event->data.scalar.length)) {
        document_complain(builder, event->start_mark, NULL, "the value holds a NUL character");
        return NULL;
    }
    struct node *node = node_create(NODE_TEXT, event);
    node->text = memory_copy_text(bytes);
    node->is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    return node;
}

/* Reads one node, or NULL at `end` (with *is_end set) and on an error. */
static struct node *build_next(struct builder *builder, yaml_event_type_t end, int depth,
                               bool *is_end, size_t *end_index)
{
    yaml_event_t event;
    *is_end = false;
    if (!next_event(builder, &event))
        return NULL;
    struct node *node = NULL;
    *is_end = event.type == end;
    if (*is_end)
        *end_index = event.end_mark.index;
    else
        node = document_build(builder, &event, depth);
    yaml_event_delete(&event);
    return node;
}

/* The value at `path`, which is taken over. */
static struct node *build_at(struct builder *builder, char *path, yaml_event_type_t end, int depth,
                             bool *is_end, size_t *end_index)
{
    char *outer = builder->path;
    builder->path = path;
    struct node *node = build_next(builder, end, depth, is_end, end_index);
    builder->path = outer;
    free(path);
    return node;
}

static struct node **document_grow(struct node **nodes, size_t count)
{
    return memory_grow_array(nodes, count, sizeof(struct node *));
}

static struct node *build_list(struct builder *builder, const yaml_event_t *event, int depth)
{
    if (!check_tag(builder, event, (const char *)event->data.sequence_start.tag))
        return NULL;
    struct node *list = node_create(NODE_LIST, event);
    for (;;) {
        bool is_end;
        struct node *item = build_at(builder, memory_format("%s[%zu]", builder->path, list->count),
                                     YAML_SEQUENCE_END_EVENT, depth, &is_end, &list->end);
        if (is_end)
            return list;
        if (!item) {
            node_destroy(list);
            return NULL;
        }
        list->values = document_grow(list->values, list->count + 1);
        list->values[list->count++] = item;
    }
}

/* Takes key and value over. A key that was there before is reported and dropped. */
static void document_add_pair(struct builder *builder, struct node *mapping, struct map *seen,
                              struct node *key, struct node *value)
{
    struct node *first = map_put(seen, str_from(key->text), key);
    if (first) {
        OWNED char *path = document_join(builder->path, key->text);
        struct place place = source_text_place(builder->report->source, first->start);
        report_error(builder->report, key, path, "keep one of them",
                     "the key stands here twice, first in line %d", place.line);
        map_put(seen, str_from(key->text), first);
        node_destroy(key);
        node_destroy(value);
        return;
    }
    mapping->keys = document_grow(mapping->keys, mapping->count + 1);
    mapping->values = document_grow(mapping->values, mapping->count + 1);
    mapping->keys[mapping->count] = key;
    mapping->values[mapping->count++] = value;
}

static struct node *build_mapping(struct builder *builder, const yaml_event_t *event, int depth)
{
    if (!check_tag(builder, event, (const char *)event->data.mapping_start.tag))
        return NULL;
    struct node *mapping = node_create(NODE_MAPPING, event);
    struct map *seen = map_create();
    bool is_end;
    struct node *key;
    while ((key = build_next(builder, YAML_MAPPING_END_EVENT, depth, &is_end, &mapping->end))) {
        bool ignored;
        struct node *value = NULL;
        if (key->kind == NODE_TEXT)
            value = build_at(builder, document_join(builder->path, key->text), YAML_NO_EVENT, depth,
                             &ignored, &mapping->end);
        else
            report_error(builder->report, key, NULL, NULL, "a key must be text");
        if (!value) {
            node_destroy(key);
            break;
        }
        document_add_pair(builder, mapping, seen, key, value);
    }
    map_destroy(seen, NULL);
    if (is_end)
        return mapping;
    node_destroy(mapping);
    return NULL;
}

/* Hardly anybody means an alias by `*name`. */
static struct node *refuse_alias(const struct builder *builder, const yaml_event_t *event)
{
    OWNED char *glob = hint_at_glob(builder->report->source, event->start_mark.index);
    OWNED char *hint = glob ? memory_format("%s; or write the value out", glob) : NULL;
    document_complain(builder, event->start_mark, hint, "YAML aliases (*name) are not supported");
    return NULL;
}

static struct node *document_build(struct builder *builder, const yaml_event_t *event, int depth)
{
    if (depth >= MAX_DEPTH) {
        document_complain(builder, event->start_mark, NULL, "this is nested too deeply");
        return NULL;
    }
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return build_text(builder, event);
    case YAML_SEQUENCE_START_EVENT:
        return build_list(builder, event, depth + 1);
    case YAML_MAPPING_START_EVENT:
        return build_mapping(builder, event, depth + 1);
    default: /* YAML_ALIAS_EVENT: nothing else can stand here */
        return refuse_alias(builder, event);
    }
}

/* After the first document nothing may come. */
static bool expect_end(struct builder *builder)
{
    yaml_event_t event;
    for (;;) {
        if (!next_event(builder, &event))
            return false;
        yaml_event_type_t type = event.type;
        yaml_mark_t mark = event.start_mark;
        yaml_event_delete(&event);
        if (type == YAML_STREAM_END_EVENT)
            return true;
        if (type == YAML_DOCUMENT_START_EVENT) {
            complain_of(builder, NULL, mark, "remove the \"---\"",
                        "a second YAML document begins here");
            return false;
        }
    }
}

static struct node *build_stream(struct builder *builder)
{
    yaml_event_t event;
    while (next_event(builder, &event)) {
        yaml_event_type_t type = event.type;
        yaml_mark_t mark = event.start_mark;
        struct node *root = NULL;
        bool is_content = type != YAML_STREAM_START_EVENT && type != YAML_DOCUMENT_START_EVENT &&
                          type != YAML_STREAM_END_EVENT;
        if (is_content)
            root = document_build(builder, &event, 0);
        yaml_event_delete(&event);
        if (type == YAML_STREAM_END_EVENT) {
            complain_of(builder, NULL, mark, builder->report->beginning, "the file is empty");
            return NULL;
        }
        if (!is_content)
            continue;
        if (root && expect_end(builder))
            return root;
        node_destroy(root);
        return NULL;
    }
    return NULL;
}

static void report_missing(const struct report *report, const struct node *root)
{
    const struct source_text *source = report->source;
    for (size_t i = 0; i < source->segment_count; i++) {
        const struct segment *segment = &source->segments[i];
        if (segment->kind != SEGMENT_MISSING)
            continue;
        OWNED char *path = document_path_at(root, segment->text_start);
        problems_error(report->problems, source_text_place(source, segment->text_start), path,
                       "set it, or write a default as ${NAME:-default}", "%s", segment->problem);
    }
}

struct node *document_parse(const struct report *report)
{
    char whole[] = "";
    struct builder builder = {.report = report, .path = whole};
    if (!yaml_parser_initialize(&builder.parser))
        memory_exhausted();
    struct str text = buffer_str(&report->source->text);
    yaml_parser_set_encoding(&builder.parser, YAML_UTF8_ENCODING);
    const char *bytes = text.length ? text.bytes : "";
    yaml_parser_set_input_string(&builder.parser, (const unsigned char *)bytes, text.length);
    struct node *root = build_stream(&builder);
    yaml_parser_delete(&builder.parser);
    report_missing(report, root);
    return root;
}
