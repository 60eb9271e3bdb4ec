/* One walk over the text of a value, beside the paths that still fit where it is. Its time is that
 * of the text: nothing is looked at twice, however deep it lies and however many paths there are.
 */
#include "taskgate/notify/redact.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"

/* A step of the paths: what one segment leads to from one place. */
struct step {
    uint32_t place; /* the next place; 0 when no path goes on */
    bool is_hidden; /* a path ends here */
};

struct paths {
    struct map *steps; /* by the place and the segment; owns the steps */
    struct buffer key; /* of the step that is looked for */
    uint32_t places;   /* the last one; 0 is the top */
    size_t longest;    /* of the segments, in bytes */
};

struct walk {
    const char *at, *end;
    struct buffer *out; /* NULL while a value is hidden */
    struct str pending; /* not yet in `out` */
    struct paths *paths;
    struct buffer name; /* decoded key */
    bool has_hidden;
};

/* ---- the paths ---- */

static struct step *find_step(struct paths *paths, uint32_t place, struct str segment)
{
    if (segment.length > paths->longest)
        return NULL;
    buffer_clear(&paths->key);
    buffer_append(&paths->key, str_slice((const char *)&place, sizeof place));
    buffer_append(&paths->key, segment);
    return map_get(paths->steps, buffer_str(&paths->key));
}

static void add_path(struct paths *paths, struct str path)
{
    struct str segment;
    uint32_t place = 0;
    for (bool more = true; more;) {
        more = str_cut(path, '.', &segment, &path);
        if (segment.length > paths->longest)
            paths->longest = segment.length;
        struct step *step = find_step(paths, place, segment);
        if (!step) {
            step = memory_alloc(sizeof *step);
            *step = (struct step){0};
            map_put(paths->steps, buffer_str(&paths->key), step);
        }
        if (!more)
            step->is_hidden = true;
        else if (step->place == 0)
            step->place = ++paths->places;
        place = step->place;
    }
}

/* The client's answers to a server's questions (gateway/conversation/answer_gate.h) keep the same
 * secrets as the arguments. */
#define CONTENT_OF_ANSWERS "answers.answer.content."

static void add_paths(struct paths *paths, const struct config_workflow *workflow)
{
    OWNED_BUFFER(inside);
    for (size_t i = 0; i < workflow->redact_fields.count; i++) {
        add_path(paths, str_from(workflow->redact_fields.items[i]));
        buffer_clear(&inside);
        buffer_append_text(&inside, CONTENT_OF_ANSWERS);
        buffer_append_text(&inside, workflow->redact_fields.items[i]);
        add_path(paths, buffer_str(&inside));
    }
}

static void paths_init(struct paths *paths, const struct config *config, const char *name)
{
    const struct config_workflow *workflow = config_workflow_find(config, str_from(name));
    *paths = (struct paths){.steps = map_create()};
    if (workflow) {
        add_paths(paths, workflow);
    } else {
        for (size_t i = 0; i < config->workflow_count; i++)
            add_paths(paths, &config->workflows[i]);
    }
}

static void paths_finish(struct paths *paths)
{
    map_destroy(paths->steps, free);
    buffer_finish(&paths->key);
}

/* ---- the text ---- */

/* The next byte that is no white space; NUL at the end. */
static char peek(struct walk *walk)
{
    while (walk->at < walk->end &&
           (*walk->at == ' ' || *walk->at == '\t' || *walk->at == '\r' || *walk->at == '\n'))
        walk->at++;
    if (walk->at == walk->end)
        return '\0';
    return *walk->at;
}

static void flush(struct walk *walk)
{
    if (walk->out)
        buffer_append(walk->out, walk->pending);
    walk->pending = STR_EMPTY;
}

/* Neighbours in the text are copied together. */
static void write(struct walk *walk, struct str text)
{
    if (!walk->out)
        return;
    if (walk->pending.length > 0 && text.bytes == walk->pending.bytes + walk->pending.length) {
        walk->pending.length += text.length;
        return;
    }
    flush(walk);
    walk->pending = text;
}

/* Copies the next byte that is no white space. */
static void copy_mark(struct walk *walk)
{
    if (peek(walk))
        write(walk, str_slice(walk->at++, 1));
}

/* The string with its quotes. */
static struct str redact_read_string(struct walk *walk)
{
    const char *quote = walk->at++;
    while (walk->at < walk->end && *walk->at != '"')
        walk->at += *walk->at == '\\' ? 2 : 1;
    walk->at = walk->end - walk->at > 0 ? walk->at + 1 : walk->end;
    return str_slice(quote, (size_t)(walk->at - quote));
}

/* A value below which no path goes on, token by token to its end. */
static void copy_value(struct walk *walk)
{
    size_t depth = 0;
    do {
        char c = peek(walk);
        if (c == '"') {
            write(walk, redact_read_string(walk));
        } else if (c && strchr("{}[],:", c)) {
            depth += c == '{' || c == '[';
            depth -= depth > 0 && (c == '}' || c == ']');
            copy_mark(walk);
        } else {
            const char *start = walk->at;
            while (walk->at < walk->end && !strchr(",]} \t\r\n", *walk->at))
                walk->at++;
            write(walk, str_slice(start, (size_t)(walk->at - start)));
        }
    } while (depth > 0 && walk->at < walk->end);
}

/* The place that the paths reach from `place` by a key, which has its quotes. */
static const struct step *step_by(struct walk *walk, uint32_t place, struct str key)
{
    struct str name = str_slice(key.bytes + 1, key.length - 2);
    /* No escape is longer than six bytes for each that it stands for. */
    if (name.length > walk->paths->longest * 6)
        return NULL;
    if (name.length > 0 && memchr(name.bytes, '\\', name.length)) {
        buffer_clear(&walk->name);
        json_decode_string(key, &walk->name);
        name = buffer_str(&walk->name);
    }
    return find_step(walk->paths, place, name);
}

static void redact_write_value(struct walk *walk, uint32_t place);

static void write_member(struct walk *walk, uint32_t place)
{
    struct str key = redact_read_string(walk);
    write(walk, key);
    copy_mark(walk); /* the colon */
    const struct step *step = step_by(walk, place, key);
    if (step && step->is_hidden) {
        struct buffer *out = walk->out;
        write(walk, STR("\"[REDACTED]\""));
        walk->has_hidden = true;
        walk->out = NULL;
        copy_value(walk);
        walk->out = out;
    } else if (step) {
        redact_write_value(walk, step->place);
    } else {
        copy_value(walk);
    }
}

static void write_container(struct walk *walk, uint32_t place, bool is_object)
{
    copy_mark(walk);
    for (char c = peek(walk); c && c != '}' && c != ']'; c = peek(walk)) {
        if (c == ',')
            copy_mark(walk);
        else if (is_object)
            write_member(walk, place);
        else
            redact_write_value(walk, place);
    }
    copy_mark(walk);
}

static void redact_write_value(struct walk *walk, uint32_t place)
{
    char c = peek(walk);
    if (c == '{' || c == '[')
        write_container(walk, place, c == '{');
    else
        copy_value(walk);
}

bool redact_hides(const struct config *config, const char *workflow, struct str path)
{
    struct paths paths;
    struct str segment;
    const struct step *step = NULL;
    bool is_hidden = false;
    paths_init(&paths, config, workflow);
    for (bool more = true; more && !is_hidden;) {
        more = str_cut(path, '.', &segment, &path);
        step = step && step->place == 0 ? NULL : find_step(&paths, step ? step->place : 0, segment);
        is_hidden = step && step->is_hidden;
        more = more && step;
    }
    paths_finish(&paths);
    return is_hidden;
}

bool redact_may_hide(const struct config *config, const char *workflow)
{
    struct paths paths;
    paths_init(&paths, config, workflow);
    bool may_hide = map_count(paths.steps) > 0;
    paths_finish(&paths);
    return may_hide;
}

bool redact_write(struct buffer *out, struct str value, const struct config *config,
                  const char *workflow)
{
    struct paths paths;
    paths_init(&paths, config, workflow);
    struct walk walk = {
        .at = value.bytes, .end = value.bytes + value.length, .out = out, .paths = &paths};
    if (map_count(paths.steps) > 0)
        redact_write_value(&walk, 0);
    else
        copy_value(&walk);
    flush(&walk);
    buffer_finish(&walk.name);
    paths_finish(&paths);
    return walk.has_hidden;
}
