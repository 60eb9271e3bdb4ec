/* The first value that can be typed. */
#include "taskgate/notify/typed.h"

#include "taskgate/approval/terms.h"
#include "taskgate/core/marks.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/visible.h"
#include "taskgate/json/text.h"

#define DIGEST_DIGITS 8

/* ---- risk ---- */

/* A word of the gateway's own, without its quotes. */
static struct str typed_word_of(const struct task *task, const char *name)
{
    struct str raw = *task->shown ? json_member(str_from(task->shown), name) : STR_EMPTY;
    return raw.length > 2 ? str_slice(raw.bytes + 1, raw.length - 2) : STR_EMPTY;
}

struct typed_risk typed_risk_of(const struct task *task)
{
    struct typed_risk risk = {typed_word_of(task, "risk"), typed_word_of(task, "riskBy")};
    /* A task of an older version has the risk of its rule alone. */
    if (risk.risk.length == 0)
        return (struct typed_risk){STR("medium"), STR("default")};
    if (risk.by.length == 0)
        risk.by = STR("rule");
    return risk;
}

bool typed_risk_is_shown(const struct typed_risk *risk)
{
    return str_equal(risk->risk, STR("high")) || str_equal(risk->by, STR("rule"));
}

bool typed_is_asked(const struct task *task)
{
    struct ballot_terms terms;
    struct typed_risk risk = typed_risk_of(task);
    ballot_terms_read(&terms, str_from(task->terms));
    bool asks = terms.typing == BALLOT_TYPING_HIGH ||
                (terms.typing == BALLOT_TYPING_RULE && str_equal(risk.by, STR("rule")));
    ballot_terms_finish(&terms);
    return asks && str_equal(risk.risk, STR("high"));
}

/* ---- values ---- */

/* 1 to 64 characters, each of which can be seen, and none that passes for another. */
static bool can_be_typed(struct str text)
{
    struct str rest = text;
    size_t count = 0;
    for (; rest.length > 0; count++) {
        unsigned c;
        size_t length = str_code_point(rest, &c);
        if (length == 0 || visible_is_hidden(c) || count == TYPED_MOST_CHARACTERS)
            return false;
        rest = str_slice(rest.bytes + length, rest.length - length);
    }
    return count > 0 && marks_of(text) == 0;
}

struct search {
    struct str value; /* the last one that was found */
    size_t count;
};

/* The values at a path, through the elements of arrays. */
static void search(struct search *found, struct str value, struct str path)
{
    size_t position = 0;
    struct str element, segment, rest;
    if (json_type(value) == JSON_ARRAY) {
        while (json_next_element(value, &position, &element))
            search(found, element, path);
    } else if (path.length == 0) {
        found->value = value;
        found->count++;
    } else if (json_type(value) == JSON_OBJECT) {
        str_cut(path, '.', &segment, &rest);
        OWNED char *name = memory_copy_str(segment);
        struct str member = json_member(value, name);
        if (json_type(member) != JSON_NONE)
            search(found, member, rest);
    }
}

static bool take_at(struct typed_value *typed, struct str arguments, struct str path)
{
    struct search found = {STR_EMPTY, 0};
    search(&found, arguments, path);
    buffer_clear(&typed->value);
    if (found.count != 1)
        return false;
    if (json_type(found.value) == JSON_NUMBER)
        buffer_append(&typed->value, found.value);
    else if (json_type(found.value) != JSON_STRING ||
             !json_decode_string(found.value, &typed->value))
        return false;
    struct str text = str_trim(buffer_str(&typed->value));
    /* An agent's own text of this kind is not asked for, either. */
    if (str_equal(text, STR("[REDACTED]")) || !can_be_typed(buffer_str(&typed->value)) ||
        text.length == 0)
        return false;
    buffer_append(&typed->path, path);
    return true;
}

static bool take_at_raw(struct typed_value *typed, struct str arguments, struct str raw)
{
    OWNED_BUFFER(path);
    return json_type(raw) == JSON_STRING && json_decode_string(raw, &path) && path.length > 0 &&
           take_at(typed, arguments, buffer_str(&path));
}

static bool take_of_rule(struct typed_value *typed, const struct task *task, struct str arguments)
{
    size_t position = 0;
    struct str path, shown = str_from(*task->shown ? task->shown : "{}");
    struct str paths = json_member(shown, "highlight");
    bool is_found = take_at_raw(typed, arguments, json_member(shown, "confirm"));
    while (!is_found && json_type(paths) == JSON_ARRAY &&
           json_next_element(paths, &position, &path))
        is_found = take_at_raw(typed, arguments, path);
    return is_found;
}

void typed_find(struct typed_value *found, const struct task *task, struct str arguments)
{
    buffer_init(&found->path);
    buffer_init(&found->value);
    if (take_of_rule(found, task, arguments))
        return;
    bool is_name = can_be_typed(str_from(task->tool)) || !*task->request_digest;
    buffer_clear(&found->value);
    buffer_append_text(&found->path, is_name ? "$tool" : "$digest");
    if (is_name) {
        buffer_append_text(&found->value, task->tool);
    } else {
        char keyed[DIGEST_HEX_BYTES];
        digest_keyed_hex(task->request_digest, keyed);
        buffer_append(&found->value, str_slice(keyed, DIGEST_DIGITS));
    }
}

void typed_finish(struct typed_value *found)
{
    buffer_finish(&found->path);
    buffer_finish(&found->value);
}

/* The digest is shown as it is where nothing of the request is hidden, else keyed. */
static bool is_beginning_of_digest(const struct typed_value *asked, const struct task *task,
                                   struct str typed)
{
    return str_equal(buffer_str(&asked->path), STR("$digest")) &&
           str_equal(typed, str_slice(task->request_digest, DIGEST_DIGITS));
}

enum ballot_typed typed_judge(const struct task *task, struct str arguments, const char *typed)
{
    struct typed_value asked;
    if (!typed_is_asked(task))
        return BALLOT_TYPED_NOT_ASKED;
    if (!typed || str_trim(str_from(typed)).length == 0)
        return BALLOT_TYPED_MISSING;
    typed_find(&asked, task, arguments);
    struct str text = str_trim(str_from(typed));
    bool fits = str_equal(text, str_trim(buffer_str(&asked.value))) ||
                is_beginning_of_digest(&asked, task, text);
    typed_finish(&asked);
    return fits ? BALLOT_TYPED_FITS : BALLOT_TYPED_OTHER;
}
