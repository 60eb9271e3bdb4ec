/* Questions of rounds, under a key of their task. */
#include "rounds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/protocol.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
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

static struct question_walk walk_rounds(struct question_table *table, struct str task)
{
    char key[QUESTION_KEY_BYTES];
    write_round_key(task, key);
    return question_walk(table, str_from(key), NULL);
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

/* In the server's order, which it has no reason to change. */
static bool is_there_already(struct question_table *table, struct str task,
                             const struct list *fresh)
{
    struct question_walk walk = walk_rounds(table, task);
    struct question *old;
    const struct list *node = fresh->next;
    bool is_same = true;
    while ((old = question_walk_next(&walk))) {
        const struct question *other = LIST_ENTRY(node, struct question, node);
        is_same = is_same && node != fresh && strcmp(old->name, other->name) == 0 &&
                  strcmp(old->message, other->message) == 0;
        node = node->next;
    }
    return is_same && node == fresh;
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
    bool is_new = !is_there_already(table, task, &fresh);
    if (is_new && !question_table_replace(table, str_from(key), &fresh))
        log_warn("A server's question is not asked: too many are open", LOG_STR("task", task));
    free_questions(&fresh);
    return is_new;
}

bool rounds_add(struct question_table *table, struct str task, const struct round_request *added)
{
    char key[QUESTION_KEY_BYTES];
    write_round_key(task, key);
    ASSERT(added->id.length > 0);
    struct question *question =
        make_question(key, added->round, memory_format("\"%s\"", added->name),
                      str_from(added->raw_key), added->request);
    question->asked_ms = clock_now_ms();
    question->asked_id = memory_copy_str(added->id);
    if (question_table_add(table, question) == QUESTION_ADDED)
        return true;
    log_warn("A server's question is not asked: too many are open", LOG_STR("task", task));
    question_free_in_round(question);
    return false;
}

/* By the key of its answer, or its id at the server, or, when both are empty, as one whose answer
 * nobody has taken. */
static bool is_meant_in_round(const struct question *question, struct str raw_key, struct str id)
{
    struct str own = str_from(question->upstream_id);
    ASSERT_NUMBERS(own.length, >=, 2);
    if (raw_key.length > 0)
        return str_equal(str_slice(own.bytes + 1, own.length - 2), raw_key);
    if (id.length > 0)
        return question->asked_id && str_equal(str_from(question->asked_id), id);
    return !question->is_taken;
}

static struct question *pull_meant(struct question_table *table, struct str task,
                                   struct str raw_key, struct str id)
{
    struct question_walk walk = walk_rounds(table, task);
    struct question *question, *pulled = NULL;
    while ((question = question_walk_next(&walk))) {
        if (pulled || !is_meant_in_round(question, raw_key, id))
            continue;
        pulled = question;
        question_walk_remove(&walk);
    }
    if (!pulled)
        return NULL;
    walk = walk_rounds(table, task);
    while ((question = question_walk_next(&walk)))
        question->asked_ms = clock_now_ms();
    return pulled;
}

struct question *rounds_pull(struct question_table *table, struct str task, struct str raw_key)
{
    return pull_meant(table, task, raw_key, STR_EMPTY);
}

void rounds_respond(struct server_link *up, struct question *question, struct str result)
{
    const struct answer answer = {.kind = result.length > 0 ? ANSWER_RESULT : ANSWER_NONE,
                                  .question = mcp_question_of(str_from(question->message)),
                                  .result = result};
    ASSERT(question->asked_id && answer.question != MCP_QUESTION_NONE);
    up->protocol->answer(up, str_from(question->asked_id), &answer);
    question_free_in_round(question);
}

void rounds_refuse(struct server_link *up, struct str task)
{
    struct question_table *table = up->worker->gateway->questions;
    struct question *question;
    while ((question = pull_meant(table, task, STR_EMPTY, STR_EMPTY)))
        rounds_respond(up, question, STR_EMPTY);
}

bool rounds_withdraw(struct question_table *table, struct str task, struct str id)
{
    bool were_any = false;
    struct question *question;
    while (id.length > 0 && (question = pull_meant(table, task, STR_EMPTY, id))) {
        question_free_in_round(question);
        were_any = true;
    }
    return were_any;
}

static struct str answer_in_round(const struct question *question, struct str answers)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strlen(question->name) - 2, question->name + 1);
    return json_member(answers, name);
}

struct question *rounds_pull_answered(struct question_table *table, struct str task, uint64_t last,
                                      struct str answers, struct str *answer)
{
    struct question_walk walk = walk_rounds(table, task);
    struct question *question, *pulled = NULL;
    while ((question = question_walk_next(&walk))) {
        if (pulled || question->call > last)
            continue;
        *answer = answer_in_round(question, answers);
        if (json_type(*answer) != JSON_OBJECT)
            continue;
        pulled = question;
        question_walk_remove(&walk);
    }
    return pulled;
}

size_t rounds_count(struct question_table *table, struct str task, size_t *open)
{
    struct question_walk walk = walk_rounds(table, task);
    const struct question *question;
    size_t count = 0, untaken = 0;
    while ((question = question_walk_next(&walk))) {
        count++;
        untaken += !question->is_taken;
    }
    if (open)
        *open = untaken;
    return count;
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

bool rounds_show(struct question_table *table, struct str task, struct buffer *requests,
                 int64_t *changed_ms)
{
    struct question_walk walk = walk_rounds(table, task);
    const struct question *question;
    int64_t latest_ms = 0;
    bool is_asking = false;
    while ((question = question_walk_next(&walk))) {
        bool is_open = question->state == QUESTION_OPEN;
        ASSERT_NUMBERS(question->kind, ==, QUESTION_IN_ROUND);
        if (question->asked_ms > latest_ms)
            latest_ms = question->asked_ms;
        if (!is_open && question->closed_ms > latest_ms)
            latest_ms = question->closed_ms;
        if (!is_open)
            continue;
        buffer_append_format(requests, "%s%s:", is_asking ? "," : "{", question->name);
        buffer_append_text(requests, question->message);
        is_asking = true;
    }
    if (is_asking)
        buffer_append_char(requests, '}');
    if (latest_ms > 0)
        *changed_ms = latest_ms;
    return is_asking;
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

bool rounds_take_some(struct question_table *table, struct str task, struct rounds_taken *taken)
{
    struct question_walk walk = walk_rounds(table, task);
    struct question *question;
    while ((question = question_walk_next(&walk))) {
        if (question->state == QUESTION_OPEN || question->is_taken)
            continue;
        ASSERT(question->text);
        append_round_member(&taken->answers, question->upstream_id, question->text);
        append_round_member(&taken->questions, question->upstream_id, question->message);
        question->is_taken = true;
    }
    if (taken->answers.length == 0)
        return false;
    buffer_append_char(&taken->answers, '}');
    buffer_append_char(&taken->questions, '}');
    return true;
}

bool rounds_take(struct question_table *table, struct str task, struct rounds_taken *taken)
{
    struct question_walk walk = walk_rounds(table, task);
    const struct question *question;
    bool is_open = false;
    while ((question = question_walk_next(&walk)))
        is_open = is_open || question->state == QUESTION_OPEN;
    return !is_open && rounds_take_some(table, task, taken);
}

void rounds_taken_finish(struct rounds_taken *taken)
{
    buffer_finish(&taken->answers);
    buffer_finish(&taken->questions);
}
