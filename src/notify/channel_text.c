/* Words and lines. */
#include "channel_text.h"

#include <inttypes.h>
#include <string.h>

#include "taskgate/approval/ballot.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/json/visible.h"
#include "taskgate/notify/redact.h"
#include "taskgate/notify/shown.h"
#include "taskgate/notify/typed.h"

static const char *channel_text_word_of(enum task_state state)
{
    static const char *const words[TASK_STATE_COUNT] = {
        [TASK_PENDING] = "Approval needed", [TASK_APPROVED] = "Approved",
        [TASK_EXECUTING] = "Running",       [TASK_COMPLETED] = "Done",
        [TASK_FAILED] = "Failed",           [TASK_CANCELLED] = "Cancelled",
        [TASK_REJECTED] = "Rejected",       [TASK_EXPIRED] = "Expired",
    };
    ASSERT_NUMBERS(state, <, TASK_STATE_COUNT);
    return words[state];
}

bool channel_text_calls_again(const struct store_delivery *delivery)
{
    return delivery->event == NOTIFY_REMINDED || delivery->event == NOTIFY_ESCALATED;
}

const char *channel_text_word(const struct store_delivery *delivery)
{
    enum task_state state = delivery->task->state;
    if (delivery->event == NOTIFY_REMINDED)
        return "Reminder: approval still needed";
    if (delivery->event == NOTIFY_ESCALATED)
        return "Escalated: approval still needed";
    return state == TASK_APPROVED && delivery->is_emergency
               ? "Approved in an EMERGENCY, by one alone"
               : channel_text_word_of(state);
}

/* Cuts at the beginning of a character. Returns whether nothing is lost. */
static bool cut(struct buffer *out, size_t most)
{
    size_t length = most;
    if (out->length <= most)
        return true;
    while (length > 0 && ((unsigned char)out->bytes[length] & 0xC0) == 0x80)
        length--;
    out->length = length;
    buffer_append_text(out, "…");
    return false;
}

static void write_title(struct buffer *out, const char *word, const struct task *task, size_t most)
{
    buffer_append_format(out, "%s: ", word);
    visible_append(out, str_from(task->tool));
    cut(out, most);
}

void channel_text_title(struct buffer *out, const struct store_delivery *delivery, size_t most)
{
    write_title(out, channel_text_word(delivery), delivery->task, most);
}

void channel_text_subject(struct buffer *out, const struct task *task, size_t most)
{
    write_title(out, channel_text_word_of(TASK_PENDING), task, most);
}

static void begin_line(struct buffer *out, const char *name)
{
    if (out->length > 0 && out->bytes[out->length - 1] != '\n')
        buffer_append_char(out, '\n');
    buffer_append_format(out, "%s: ", name);
}

static void add_line(struct buffer *out, const char *name, struct str value)
{
    if (value.length == 0)
        return;
    begin_line(out, name);
    visible_append(out, value);
}

static void channel_text_add_asker(struct buffer *out, const struct task *task)
{
    begin_line(out, "Asked by");
    shown_append_asker(out, str_from(task->principal), str_from(shown_principal_by(task->owner)));
}

/* The sentence of the rule shows arguments, and so goes where they go. */
static void channel_text_add_summary(struct buffer *out, const struct task *task,
                                     const struct config *config)
{
    OWNED_BUFFER(arguments);
    OWNED_BUFFER(summary);
    redact_write(&arguments, str_from(task->arguments), config, task->workflow);
    if (shown_write_summary(&summary, task, buffer_str(&arguments)))
        add_line(out, "Summary", buffer_str(&summary));
}

static void channel_text_add_risk(struct buffer *out, const struct task *task)
{
    const struct typed_risk risk = typed_risk_of(task);
    if (typed_risk_is_shown(&risk))
        add_line(out, "Risk", risk.risk);
}

/* "1 of 2: alice", where one person alone does not decide. */
static void channel_text_add_votes(struct buffer *out, const struct task *task)
{
    struct ballot ballot;
    OWNED_BUFFER(text);
    ballot_read(&ballot, str_from(task->terms), str_from(task->votes));
    int64_t persons = ballot_terms_persons(&ballot.terms);
    buffer_append_format(&text, "%zu of %" PRId64, ballot.votes.count, persons);
    for (size_t i = 0; i < ballot.votes.count; i++)
        buffer_append_format(&text, "%s%s", i == 0 ? ": " : ", ",
                             ballot.votes.items[i].person.name);
    if (persons > 1)
        add_line(out, "Votes", buffer_str(&text));
    ballot_finish(&ballot);
}

static void add_request_part(struct buffer *out, const char *name, struct str json,
                             const struct task *task, const struct config *config)
{
    OWNED_BUFFER(shown);
    redact_write(&shown, json, config, task->workflow);
    buffer_append_format(out, "\n%s: ", name);
    visible_append_json_for_people(out, buffer_str(&shown));
}

/* Names and texts that may be read as something else: `table: characters that cannot be seen`. */
static void channel_text_add_marks(struct buffer *out, const struct task *task,
                                   const struct config *config, bool with_arguments)
{
    OWNED_BUFFER(where);
    OWNED_BUFFER(line);
    enum mark mark;
    for (size_t position = 0; shown_next_mark(task, config, &position, &where, &mark);) {
        bool is_argument = !str_equal(buffer_str(&where), STR("tool")) &&
                           !str_equal(buffer_str(&where), STR("principal"));
        if (with_arguments || !is_argument)
            buffer_append_format(&line, "%s%.*s: %s", line.length > 0 ? "; " : "",
                                 STR_ARGS(buffer_str(&where)), mark_words(mark));
        buffer_clear(&where);
    }
    add_line(out, "Look out", buffer_str(&line));
}

/* Why the agent calls, in its own words, which nobody has verified. */
static void channel_text_add_agent_reason(struct buffer *out, const struct task *task,
                                          const struct config *config)
{
    OWNED_BUFFER(reason);
    if (shown_write_agent_reason(&reason, task, config))
        add_line(out, "The agent says", buffer_str(&reason));
}

/* All that an approval covers, beside the name of the tool. */
static void add_request(struct buffer *out, const struct task *task, const struct config *config)
{
    struct str headers = json_member(str_from(task->shown), "headers");
    channel_text_add_agent_reason(out, task, config);
    add_request_part(out, "Arguments", str_from(task->arguments), task, config);
    if (*task->meta && strcmp(task->meta, "{}") != 0)
        add_request_part(out, "_meta", str_from(task->meta), task, config);
    if (*task->other_params && strcmp(task->other_params, "{}") != 0)
        add_request_part(out, "Further parameters", str_from(task->other_params), task, config);
    if (json_count(headers) > 0)
        add_request_part(out, "Headers", headers, task, config);
}

bool channel_text_facts(struct buffer *out, const struct task *task, const struct config *config,
                        bool with_arguments, size_t most)
{
    char time[CLOCK_TEXT_BYTES];
    bool is_pending = task->state == TASK_PENDING;
    bool has_request = with_arguments && *task->arguments;
    if (has_request)
        channel_text_add_summary(out, task, config);
    add_line(out, "Tool", str_from(task->tool));
    add_line(out, "Server", str_from(task->source));
    channel_text_add_asker(out, task);
    add_line(out, "Workflow", str_from(task->workflow));
    if (is_pending)
        channel_text_add_risk(out, task);
    if (is_pending && *task->terms)
        channel_text_add_votes(out, task);
    if (is_pending && task->decide_by_ms > 0)
        add_line(out, "Decide by", str_from(clock_format(task->decide_by_ms, time)));
    add_line(out, "Decided by", str_from(task->decided_by));
    add_line(out, "Reason", str_from(task->reason));
    if (!is_pending)
        add_line(out, "Status", str_from(task->status_message));
    add_line(out, "Task", str_from(task->id));
    channel_text_add_marks(out, task, config, has_request);
    if (has_request)
        add_request(out, task, config);
    return cut(out, most) && has_request;
}
