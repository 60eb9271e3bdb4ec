/* Questions of rounds, under a key of their task. */
#include "rounds.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect_modern.h"

_Static_assert(MODERN_MOST_REQUESTS == QUESTIONS_PER_ROUND,
               "what one answer requires can be asked");

static void write_round_key(struct str task, char key[])
{
    snprintf(key, QUESTION_KEY_BYTES, "round:%.*s", STR_ARGS(task));
}

/* ---- asking ---- */

/* `name` is JSON text, and taken. */
static struct question *make_question(const char *key, uint64_t round, char *name,
                                      struct str raw_key, struct str asked)
{
    struct question *question = memory_alloc(sizeof *question);
    random_uuid(question->id);
    snprintf(question->key, sizeof question->key, "%s", key);
    question->kind = QUESTION_IN_ROUND;
    question->source = question->task = "";
    question->upstream_id = memory_format("\"%.*s\"", STR_ARGS(raw_key));
    question->message = memory_copy_str(asked);
    question->call = round;
    question->name = name;
    return question;
}

struct comparing {
    const struct question *next; /* of those that are new; at `end` after the last */
    const struct question *end;
    bool is_same;
};

static const struct question *question_after(const struct question *question)
{
    return LIST_ENTRY(question->node.next, struct question, node);
}

/* In the server's order, which it has no reason to change. */
static void compare_in_round(void *context, struct question *question)
{
    struct comparing *comparing = context;
    const struct question *other = comparing->next;
    if (other == comparing->end) {
        comparing->is_same = false;
        return;
    }
    comparing->next = question_after(other);
    comparing->is_same = comparing->is_same && strcmp(question->name, other->name) == 0 &&
                         strcmp(question->message, other->message) == 0;
}

static bool is_there_already(struct question_table *table, struct str key, const struct list *fresh)
{
    struct comparing comparing = {.end = LIST_ENTRY(fresh, struct question, node),
                                  .next = LIST_ENTRY(fresh->next, struct question, node),
                                  .is_same = true};
    question_table_visit(table, key, NULL, compare_in_round, &comparing);
    return comparing.is_same && comparing.next == comparing.end;
}

static void free_questions(struct list *questions)
{
    LIST_FOR_EACH_SAFE (node, next, questions) {
        list_remove(node);
        question_free_in_round(LIST_ENTRY(node, struct question, node));
    }
}

bool rounds_put(struct question_table *table, struct str task, int64_t number, struct str requests,
                int64_t now_ms)
{
    char key[QUESTION_KEY_BYTES];
    struct str raw_key, asked;
    struct list fresh;
    list_init(&fresh);
    ASSERT_NUMBERS(number, >, 0);
    write_round_key(task, key);
    for (size_t position = 0; json_next_member(requests, &position, &raw_key, &asked);) {
        char *name = memory_format("\"r%" PRId64 ":%.*s\"", number, STR_ARGS(raw_key));
        struct question *question = make_question(key, (uint64_t)number, name, raw_key, asked);
        question->asked_ms = now_ms;
        list_append(&fresh, &question->node);
    }
    bool is_new = !is_there_already(table, str_from(key), &fresh);
    if (is_new && !question_table_replace(table, str_from(key), &fresh))
        log_warn("A server's question is not asked: too many are open", LOG_STR("task", task));
    free_questions(&fresh);
    return is_new;
}

bool rounds_add(struct question_table *table, struct str task, const struct round_request *added,
                int64_t now_ms)
{
    char key[QUESTION_KEY_BYTES];
    write_round_key(task, key);
    ASSERT(added->id.length > 0);
    struct question *question =
        make_question(key, added->round, memory_format("\"%s\"", added->name),
                      str_from(added->raw_key), added->request);
    question->asked_ms = now_ms;
    question->asked_id = memory_copy_str(added->id);
    if (question_table_add(table, question) == QUESTION_ADDED)
        return true;
    log_warn("A server's question is not asked: too many are open", LOG_STR("task", task));
    question_free_in_round(question);
    return false;
}

struct meant {
    struct str raw_key, id;
};

static bool is_meant_in_round(const void *context, const struct question *question)
{
    const struct meant *meant = context;
    struct str own = str_from(question->upstream_id);
    ASSERT_NUMBERS(own.length, >=, 2);
    if (meant->raw_key.length > 0)
        return str_equal(str_slice(own.bytes + 1, own.length - 2), meant->raw_key);
    if (meant->id.length > 0)
        return question->asked_id && str_equal(str_from(question->asked_id), meant->id);
    return !question->is_taken;
}

struct question *rounds_pull(struct question_table *table, struct str task, struct str raw_key,
                             struct str id, int64_t now_ms)
{
    char key[QUESTION_KEY_BYTES];
    const struct meant meant = {raw_key, id};
    write_round_key(task, key);
    return question_table_pull(table, str_from(key), is_meant_in_round, &meant, now_ms);
}

struct answered {
    uint64_t last;
    struct str answers;
};

static struct str answer_in_round(const struct question *question, struct str answers)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strlen(question->name) - 2, question->name + 1);
    return json_member(answers, name);
}

static bool is_answered_in_round(const void *context, const struct question *question)
{
    const struct answered *answered = context;
    return question->call <= answered->last &&
           json_type(answer_in_round(question, answered->answers)) == JSON_OBJECT;
}

struct question *rounds_pull_answered(struct question_table *table, struct str task, uint64_t last,
                                      struct str answers, struct str *answer)
{
    char key[QUESTION_KEY_BYTES];
    const struct answered answered = {last, answers};
    write_round_key(task, key);
    struct question *question =
        question_table_pull(table, str_from(key), is_answered_in_round, &answered, 0);
    *answer = question ? answer_in_round(question, answers) : STR_EMPTY;
    return question;
}

struct round_counts {
    size_t all, open;
};

static void count_in_round(void *context, struct question *question)
{
    struct round_counts *counts = context;
    counts->all++;
    counts->open += !question->is_taken;
}

size_t rounds_count(struct question_table *table, struct str task, size_t *open)
{
    char key[QUESTION_KEY_BYTES];
    struct round_counts counts = {0};
    write_round_key(task, key);
    question_table_visit(table, str_from(key), NULL, count_in_round, &counts);
    if (open)
        *open = counts.open;
    return counts.all;
}

bool rounds_forget(struct question_table *table, struct str task)
{
    char key[QUESTION_KEY_BYTES];
    struct list none;
    list_init(&none);
    write_round_key(task, key);
    question_table_replace(table, str_from(key), &none);
    bool were_any = !list_is_empty(&none);
    free_questions(&none);
    return were_any;
}

/* ---- showing ---- */

struct showing {
    struct buffer *requests;
    bool is_asking;
    int64_t *changed_ms;
};

static void show_in_round(void *context, struct question *question)
{
    struct showing *showing = context;
    bool is_open = question->state == QUESTION_OPEN;
    ASSERT_NUMBERS(question->kind, ==, QUESTION_IN_ROUND);
    if (question->asked_ms > *showing->changed_ms)
        *showing->changed_ms = question->asked_ms;
    if (!is_open && question->closed_ms > *showing->changed_ms)
        *showing->changed_ms = question->closed_ms;
    if (!is_open)
        return;
    buffer_append_format(showing->requests, "%s%s:", showing->is_asking ? "," : "{",
                         question->name);
    buffer_append_text(showing->requests, question->message);
    showing->is_asking = true;
}

bool rounds_show(struct question_table *table, struct str task, struct buffer *requests,
                 int64_t *changed_ms)
{
    char key[QUESTION_KEY_BYTES];
    int64_t latest_ms = 0;
    struct showing showing = {.requests = requests, .changed_ms = &latest_ms};
    write_round_key(task, key);
    question_table_visit(table, str_from(key), NULL, show_in_round, &showing);
    if (showing.is_asking)
        buffer_append_char(requests, '}');
    if (latest_ms > 0)
        *changed_ms = latest_ms;
    return showing.is_asking;
}

/* ---- answering ---- */

bool rounds_answer(struct question_table *table, struct str task, struct str answers,
                   int64_t now_ms)
{
    char key[QUESTION_KEY_BYTES];
    struct str raw_key, answer;
    bool taken = false;
    write_round_key(task, key);
    for (size_t position = 0; json_next_member(answers, &position, &raw_key, &answer);) {
        struct question_closing closing = {
            .state = QUESTION_ANSWERED_IN_TASK, .text = answer, .now_ms = now_ms};
        OWNED_BUFFER(name);
        json_decode_string(str_slice(raw_key.bytes - 1, raw_key.length + 2), &name);
        const struct question_match match = {.name = buffer_str(&name)};
        taken |= name.length > 0 && question_table_close(table, str_from(key), &match, &closing);
    }
    return taken;
}

static void append_round_member(struct buffer *object, const char *key, const char *value)
{
    buffer_append_format(object, "%c%s:", object->length > 0 ? ',' : '{', key);
    buffer_append_text(object, value);
}

struct taking {
    struct rounds_taken *taken;
};

/* One with an answer that nobody has taken. */
static void take_answer_in_round(void *context, struct question *question)
{
    struct rounds_taken *taken = ((const struct taking *)context)->taken;
    if (question->state == QUESTION_OPEN || question->is_taken)
        return;
    ASSERT(question->text);
    append_round_member(&taken->answers, question->upstream_id, question->text);
    append_round_member(&taken->questions, question->upstream_id, question->message);
    question->is_taken = true;
}

bool rounds_take_some(struct question_table *table, struct str task, struct rounds_taken *taken)
{
    char key[QUESTION_KEY_BYTES];
    write_round_key(task, key);
    struct taking taking = {taken};
    question_table_visit(table, str_from(key), NULL, take_answer_in_round, &taking);
    if (taken->answers.length == 0)
        return false;
    buffer_append_char(&taken->answers, '}');
    buffer_append_char(&taken->questions, '}');
    return true;
}

static void note_open_in_round(void *context, struct question *question)
{
    bool *is_open = context;
    *is_open = *is_open || question->state == QUESTION_OPEN;
}

bool rounds_take(struct question_table *table, struct str task, struct rounds_taken *taken)
{
    char key[QUESTION_KEY_BYTES];
    bool is_open = false;
    write_round_key(task, key);
    question_table_visit(table, str_from(key), NULL, note_open_in_round, &is_open);
    return !is_open && rounds_take_some(table, task, taken);
}

void rounds_taken_finish(struct rounds_taken *taken)
{
    buffer_finish(&taken->answers);
    buffer_finish(&taken->questions);
}
