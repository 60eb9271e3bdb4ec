/*
 * A third protocol of servers, for tests: the table of both eras of servers is replaced by it when
 * the program is linked, so that whatever is sent by a link is answered from a script. The script
 * is the argument `script` of the call, an array of events; "told" waits for what the link is told,
 * and all of that is in the result. An event with `reply` comes with one of HTTP. Nothing is sent
 * to a server.
 */
#include <stdlib.h>

#include "server/protocol.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"

struct third {
    uint32_t magic; /* THIRD_MAGIC */
    struct server_link *link;
    struct loop_timer timer; /* the next step: no event comes from inside a function of the link */
    struct buffer script;
    size_t position;
    size_t waits, notes; /* that the script has waited for; that the link was told */
    struct buffer told;  /* a JSON array without its end */
};
#define THIRD_MAGIC 0x54484952

static struct third *third_from(void *context)
{
    return MAGIC_CAST(struct third, THIRD_MAGIC, context);
}

/* ---- events ---- */

static const char *const event_names[] = {
    [EVENT_PROGRESS] = "progress",   [EVENT_LOG] = "log",
    [EVENT_NOTICE] = "notice",       [EVENT_QUESTION] = "question",
    [EVENT_WITHDRAWN] = "withdrawn", [EVENT_ROUND] = "round",
    [EVENT_AGAIN] = "again",         [EVENT_FOLLOWED] = "followed",
    [EVENT_RESULT] = "result",       [EVENT_ERROR] = "error",
    [EVENT_REFUSED] = "refused",     [EVENT_CANCELLED] = "cancelled",
    [EVENT_LOST] = "lost",           [EVENT_MESSAGE] = "message",
    [EVENT_OPENED] = "opened",
};

static enum event_kind kind_of(struct str step)
{
    for (size_t kind = 0; kind < sizeof event_names / sizeof *event_names; kind++) {
        if (json_string_equals(json_member(step, "event"), str_from(event_names[kind])))
            return (enum event_kind)kind;
    }
    ASSERT(!"an event of the script has a name of protocol.h");
    return EVENT_LOST;
}

static void set_state(struct server_link *link, const struct event *event)
{
    bool is_round = event->kind == EVENT_ROUND && link->state != LINK_FOLLOWING;
    link->has_asked |= is_round;
    link->rounds += is_round && event->text.length > 0;
    if (is_round || event->kind == EVENT_AGAIN)
        link->state = LINK_ASKED;
    else if (event->kind == EVENT_FOLLOWED)
        link->state = LINK_FOLLOWING;
    else if (event->kind >= EVENT_RESULT)
        link->state = LINK_ENDED;
}

/* Of a result without a text: what the link was told. */
static void write_told(const struct third *third, struct buffer *out)
{
    buffer_append_text(out, "{\"content\":[{\"type\":\"text\",\"text\":\"told\"}],"
                            "\"structuredContent\":{\"told\":");
    buffer_append(out, buffer_str(&third->told));
    buffer_append_text(out, "]}}");
}

static void run_step(struct third *third, struct str step)
{
    struct server_link *link = third->link;
    uint64_t lost = 0;
    OWNED_BUFFER(text);
    struct event event = {.kind = kind_of(step), .is_complete = true};
    const struct exchange_reply reply = {.status = 200, .message = STR("{\"id\":1}")};
    struct str given = json_member(step, "text");
    if (json_type(given) == JSON_STRING)
        json_decode_string(given, &text);
    else if (event.kind == EVENT_RESULT && given.length == 0)
        write_told(third, &text);
    else
        buffer_append(&text, given);
    event.text = buffer_str(&text);
    event.asked.id = json_member(step, "id");
    event.asked.request = json_member(step, "request");
    event.asked.kind = mcp_question_of(event.asked.request);
    if (str_to_u64(json_member(step, "lost"), &lost))
        event.lost = (enum lost_reason)lost;
    if (json_type(json_member(step, "reply")) == JSON_TRUE)
        event.reply = &reply;
    set_state(link, &event);
    if (event.kind < EVENT_RESULT)
        loop_timer_start(&third->timer, 0); /* before the event: it may release the link */
    link->take(link->context, &event);
}

static void on_step(void *context)
{
    struct third *third = third_from(context);
    struct str step;
    OWNED_BUFFER(copy);
    while (third->waits <= third->notes &&
           json_next_element(buffer_str(&third->script), &third->position, &step)) {
        if (!json_string_equals(step, STR("told"))) {
            buffer_append(&copy, step);
            run_step(third, buffer_str(&copy));
            return;
        }
        third->waits++;
    }
}

/* ---- what the link is told ---- */

static void note_told(struct server_link *link, const char *what, struct str more)
{
    struct third *third = third_from(link->own);
    OWNED_BUFFER(text);
    buffer_append_format(&text, "%s %.*s", what, STR_ARGS(more));
    buffer_append_char(&third->told, third->told.length == 1 ? ' ' : ',');
    buffer_append_json_string(&third->told, buffer_str(&text));
    log_info("The third server is told", LOG_STR("what", buffer_str(&text)));
    third->notes++;
    loop_timer_start(&third->timer, 0);
}

static void third_answer(struct server_link *link, struct str asked_id, const struct answer *answer)
{
    static const char *const kinds[] = {[ANSWER_RESULT] = "answered",
                                        [ANSWER_NONE] = "not answered",
                                        [ANSWER_UNABLE] = "cannot be asked",
                                        [ANSWER_TOO_MANY] = "too many"};
    OWNED_BUFFER(text);
    buffer_append_format(&text, "%.*s %.*s", STR_ARGS(asked_id), STR_ARGS(answer->result));
    note_told(link, kinds[answer->kind], buffer_str(&text));
}

static void third_answer_round(struct server_link *link, struct str answers)
{
    if (link->state != LINK_FOLLOWING)
        link->state = LINK_SENT;
    note_told(link, "round", answers);
}

static void third_cancel(struct server_link *link, const char *reason)
{
    if (link->own && link->state != LINK_ENDED)
        note_told(link, "cancel", str_from(reason));
}

/* The script says when it is over. */
static void third_pause(struct server_link *link, int64_t limit_ms)
{
    (void)limit_ms;
    link->state = LINK_PAUSING;
    note_told(link, "pause", STR_EMPTY);
}

static void third_expect_answer(struct server_link *link, int64_t limit_ms)
{
    (void)link, (void)limit_ms;
}

static void third_set_silence(struct server_link *link, int64_t silence_ms)
{
    (void)link, (void)silence_ms;
}

/* ---- its life ---- */

static void third_obtain(struct call *call, call_step next)
{
    next(call);
}

static void third_describe(struct call *call, struct buffer *out)
{
    (void)call;
    buffer_append_text(out,
                       "{\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{\"tools\":{}},"
                       "\"serverInfo\":{\"name\":\"third\",\"version\":\"3\"}}");
}

static struct third *third_create(struct server_link *link)
{
    struct third *third = memory_alloc(sizeof *third);
    ASSERT(!link->own);
    MAGIC_SET(third, THIRD_MAGIC);
    third->link = link;
    link->own = third;
    buffer_append_char(&third->told, '[');
    loop_timer_init(&third->timer, link->worker->loop, on_step, third);
    return third;
}

static void third_attach(struct server_link *link, struct call *call)
{
    struct third *third = third_create(link);
    buffer_append(&third->script, json_member(call->envelope.arguments.raw, "script"));
}

static void on_opened(void *context)
{
    struct server_link *link = third_from(context)->link;
    link->take(link->context, &(struct event){.kind = EVENT_OPENED});
}

static void third_open(struct server_link *link, bool for_client)
{
    struct third *third = third_create(link);
    (void)for_client;
    loop_timer_start_with(&third->timer, on_opened, third, 0);
}

static void third_translate(struct buffer *out, const struct envelope *envelope, struct str id)
{
    buffer_append_format(out, "{\"id\":%.*s,\"params\":%.*s}", STR_ARGS(id),
                         STR_ARGS(envelope->params));
}

static void third_begin(struct server_link *link)
{
    struct headers headers;
    OWNED_BUFFER(body);
    OWNED_BUFFER(id);
    headers_init(&headers, true);
    if (link->maker) {
        struct third *third = link->own ? third_from(link->own) : third_create(link);
        link->maker->write(link, &headers, &body, &id);
        buffer_append(&third->script,
                      json_path(buffer_str(&body), "params", "arguments", "script"));
    }
    headers_finish(&headers);
    link->state = LINK_SENT;
    loop_timer_start_with(&third_from(link->own)->timer, on_step, link->own, 0);
}

static void third_release(struct server_link *link)
{
    struct third *third = link->own;
    if (third) {
        loop_timer_stop(&third_from(third)->timer);
        buffer_finish(&third->script);
        buffer_finish(&third->told);
        MAGIC_CLEAR(third);
        free(third);
    }
    link->own = NULL;
    link->state = LINK_NEW;
    link->has_asked = false;
    link->rounds = 0;
}

static void third_move(struct server_link *from, struct server_link *to)
{
    struct third *third = third_from(from->own);
    ASSERT(to->state == LINK_NEW && !to->own);
    to->own = third;
    to->state = from->state;
    to->has_asked = from->has_asked;
    to->rounds = from->rounds;
    third->link = to;
    from->own = NULL;
    third_release(from);
    note_told(to, "moved", STR_EMPTY);
}

/* Only one of the two eras has sessions. */
#define THIRD(sessions)                                                                            \
    {                                                                                              \
        .name = "third", .has_sessions = (sessions), .obtain = third_obtain,                       \
        .describe = third_describe, .attach = third_attach, .open = third_open,                    \
        .translate = third_translate, .begin = third_begin, .answer = third_answer,                \
        .answer_round = third_answer_round, .pause = third_pause,                                  \
        .expect_answer = third_expect_answer, .set_silence = third_set_silence,                    \
        .cancel = third_cancel, .release = third_release, .move = third_move                       \
    }
const struct server_protocol server_legacy = THIRD(true);
const struct server_protocol server_modern = THIRD(false);
