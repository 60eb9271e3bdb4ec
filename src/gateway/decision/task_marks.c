/* One walk over each part of the request, with the path of where it is. */
#include "task_marks.h"

#include <assert.h>
#include <string.h>

#include "taskgate/core/marks.h"
#include "taskgate/core/visible.h"
#include "taskgate/json/envelope.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/reason_property.h"

#define MOST_MARKS 20
#define MOST_PATH_CHARACTERS 200

/* A place that has marks, of those that are written. */
struct place {
    unsigned marks; /* at this place, as marks_of() */
    size_t at, length;
};

struct marking {
    struct buffer *out;
    size_t count;
    struct place places[MOST_MARKS];
    size_t place_count;
    struct buffer found; /* the texts of the places */
    struct buffer path;  /* of the value here */
    struct buffer text;  /* decoded */
};

/* ---- one mark ---- */

/* The place, added where it is new. There are fewer places than marks. */
static struct place *find_place(struct marking *marking, struct str where)
{
    for (size_t i = 0; i < marking->place_count; i++) {
        struct place *place = &marking->places[i];
        if (str_equal(str_slice(marking->found.bytes + place->at, place->length), where))
            return place;
    }
    struct place *added = &marking->places[marking->place_count++];
    *added = (struct place){0, marking->found.length, where.length};
    buffer_append(&marking->found, where);
    return added;
}

static void write_pair(struct marking *marking, enum mark mark, struct str where)
{
    buffer_append_text(marking->out, marking->count++ > 0 ? ",{\"where\":" : "{\"where\":");
    buffer_append_json_string(marking->out, where);
    json_add_text(marking->out, "what", mark_name(mark));
    buffer_append_char(marking->out, '}');
}

static void look(struct marking *marking, struct str text, struct str where)
{
    unsigned marks = marks_of(text);
    if (!marks || marking->count >= MOST_MARKS)
        return;
    struct buffer shown = {0};
    struct str beginning = visible_beginning(where, MOST_PATH_CHARACTERS);
    buffer_append(&shown, beginning);
    if (beginning.length < where.length)
        buffer_append_text(&shown, "…");
    struct place *place = find_place(marking, buffer_str(&shown));
    for (enum mark mark = 0; mark < MARK_COUNT; mark++) {
        if (marks & ~place->marks & 1U << mark && marking->count < MOST_MARKS)
            write_pair(marking, mark, buffer_str(&shown));
    }
    place->marks |= marks;
    buffer_finish(&shown);
}

/* ---- the request ---- */

struct level {
    size_t path_length; /* of the container itself */
    bool is_object;
};

/* The string that begins at `at`; a key goes on the path first. Returns what is behind it. */
static const char *read_string(struct marking *marking, const char *at, const char *end,
                               bool is_key)
{
    const char *start = at++;
    while (at < end && *at != '"')
        at += *at == '\\' ? 2 : 1;
    at++;
    buffer_clear(&marking->text);
    json_decode_string(str_slice(start, (size_t)(at - start)), &marking->text);
    if (is_key && marking->path.length > 0)
        buffer_append_char(&marking->path, '.');
    if (is_key)
        buffer_append(&marking->path, buffer_str(&marking->text));
    look(marking, buffer_str(&marking->text), buffer_str(&marking->path));
    return at;
}

static void read_part(struct marking *marking, const char *name, const char *json)
{
    struct level levels[ENVELOPE_MAX_DEPTH + 1];
    size_t depth = 0;
    bool is_key = false;
    const char *end = json + strlen(json);
    buffer_clear(&marking->path);
    buffer_append_text(&marking->path, name);
    for (const char *at = json; at < end && marking->count < MOST_MARKS;) {
        char c = *at;
        if (c == '"') {
            at = read_string(marking, at, end, is_key);
            is_key = false;
            continue;
        }
        if (c == '{' || c == '[') {
            assert(depth < sizeof levels / sizeof *levels);
            levels[depth++] = (struct level){marking->path.length, c == '{'};
            is_key = c == '{';
        } else if ((c == '}' || c == ']') && depth > 0) {
            marking->path.length = levels[--depth].path_length;
        } else if (c == ',' && depth > 0) {
            marking->path.length = levels[depth - 1].path_length;
            is_key = levels[depth - 1].is_object;
        }
        at++;
    }
}

void task_marks_write(struct buffer *out, const struct task *task, const char *agent_reason)
{
    struct marking marking = {.out = out};
    buffer_append_char(out, '[');
    look(&marking, str_from(task->tool), STR("tool"));
    look(&marking, str_from(task->principal), STR("principal"));
    look(&marking, str_from(agent_reason), STR(REASON_PROPERTY));
    read_part(&marking, "", task->arguments);
    read_part(&marking, "_meta", task->meta);
    read_part(&marking, "params", task->other_params);
    buffer_append_char(out, ']');
    buffer_finish(&marking.found);
    buffer_finish(&marking.path);
    buffer_finish(&marking.text);
}
