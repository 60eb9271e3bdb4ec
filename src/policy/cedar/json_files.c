/* Whole files in Cedar's JSON form: everything that is wrong with them, with its place. */
#include <stdio.h>
#include <stdlib.h>

#include "ast.h"
#include "entities.h"
#include "json_reader.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

#define PROBLEMS_MAX 100

struct cedar_requests {
    struct cedar_heap heap;
    struct cedar_request *items;
    size_t count;
};

/* A file while it is read, item by item. */
struct file {
    struct source source;
    struct json_reader reader;
    struct error error;
    struct buffer *problems;
    size_t problem_count;
};

static void file_init(struct file *file, const struct cedar_source *source, struct cedar_heap *heap,
                      struct buffer *problems)
{
    *file = (struct file){.source = {source->name, source->text}, .problems = problems};
    json_reader_init(&file->reader, heap, &file->error);
}

/* On one line, for names with any characters. */
static void append_message(struct buffer *out, const char *message)
{
    for (const char *c = message; *c; c++) {
        if ((unsigned char)*c < ' ')
            buffer_append_format(out, "\\u%04x", (unsigned)*c);
        else
            buffer_append_char(out, *c);
    }
    buffer_append_char(out, '\n');
}

/* Notes `file->error`; `place` is a byte of the file. */
static void note(struct file *file, size_t place)
{
    struct cedar_position position = source_position(&file->source, place);
    if (++file->problem_count > PROBLEMS_MAX)
        return;
    buffer_append_format(file->problems, "%s:%u:%u: ", position.source, position.line,
                         position.column);
    append_message(file->problems, file->error.message);
}

static void note_at(struct file *file, const char *at)
{
    note(file, at ? (size_t)(at - file->source.text.bytes) : 0);
}

/* Whether nothing was wrong. */
static bool file_finish(struct file *file)
{
    if (file->problem_count > PROBLEMS_MAX)
        buffer_append_format(file->problems, "%zu more problems\n",
                             file->problem_count - PROBLEMS_MAX);
    json_reader_finish(&file->reader);
    return file->problem_count == 0;
}

/* The file's text without the space around it; empty when it is no JSON. */
static struct str check(struct file *file)
{
    size_t place = 0;
    if (json_check_at(file->source.text, &place, &file->error))
        return str_trim(file->source.text);
    note(file, place);
    return STR_EMPTY;
}

static bool require_array(struct file *file, struct str json, struct str at, const char *wanted)
{
    if (json_type(json) == JSON_ARRAY)
        return true;
    error_set(&file->error, "expected %s", wanted);
    note_at(file, at.bytes);
    return false;
}

/* Notes the error of an item in `file->error`; items count from 1. */
static void judge(struct file *file, bool good, const char *what, size_t number)
{
    char item[48];
    if (good)
        return;
    snprintf(item, sizeof item, "%s %zu", what, number);
    error_prefix(&file->error, item);
    note_at(file, file->reader.at);
}

/* ---- entities ---- */

/* The place of the entity because of which the store could not be closed. */
static const char *find_culprit(struct file *file, struct str array, const struct cedar_uid *uid)
{
    size_t position = 0;
    struct cedar_uid other;
    for (struct str json; uid && json_next_element(array, &position, &json);)
        if (read_uid(&file->reader, json_member(json, "uid"), &other) &&
            cedar_uid_equal(uid, &other))
            return json.bytes;
    return array.bytes;
}

struct cedar_entities *cedar_entities_parse(const struct cedar_source *source,
                                            struct buffer *problems)
{
    struct cedar_entities *entities = cedar_entities_create();
    struct file file;
    file_init(&file, source, &entities->heap, problems);
    struct str array = check(&file);
    if (array.length && require_array(&file, array, array, "an array of entities")) {
        size_t position = 0, number = 0;
        for (struct str json; json_next_element(array, &position, &json);)
            judge(&file, read_entity(&file.reader, entities, json), "entity", ++number);
        if (file.problem_count == 0 && !cedar_entities_seal(entities, &file.error))
            note_at(&file, find_culprit(&file, array, entities->culprit));
    }
    if (file_finish(&file))
        return entities;
    cedar_entities_destroy(entities);
    return NULL;
}

/* ---- requests ---- */

struct cedar_requests *cedar_requests_parse(const struct cedar_source *source,
                                            struct buffer *problems)
{
    struct cedar_requests *requests = memory_alloc(sizeof *requests);
    struct file file;
    arena_init(&requests->heap.arena);
    file_init(&file, source, &requests->heap, problems);
    struct str json = check(&file), member = json_member(json, "requests");
    struct str array = json_type(json) == JSON_OBJECT ? member : json;
    if (json.length && require_array(&file, array, member.length ? member : json,
                                     "an array of requests, or an object with \"requests\"")) {
        size_t position = 0;
        requests->items = memory_alloc_array(json_count(array), sizeof *requests->items);
        for (struct str one; json_next_element(array, &position, &one); requests->count++)
            judge(&file, read_request(&file.reader, one, &requests->items[requests->count]),
                  "request", requests->count + 1);
    }
    if (file_finish(&file))
        return requests;
    cedar_requests_destroy(requests);
    return NULL;
}

void cedar_requests_destroy(struct cedar_requests *requests)
{
    if (!requests)
        return;
    arena_finish(&requests->heap.arena);
    free(requests->items);
    free(requests);
}

size_t cedar_requests_count(const struct cedar_requests *requests)
{
    return requests->count;
}

const struct cedar_request *cedar_requests_at(const struct cedar_requests *requests, size_t index)
{
    return &requests->items[index];
}
