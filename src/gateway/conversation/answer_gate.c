/* Answers on their way to the server: stored, perhaps decided, and stored as sent before they go.
 */
#include "answer_gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call/request_parts.h"
#include "taskgate/config/config.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/canonical.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/store/store.h"

#define POLL_INTERVAL_MS 1000 /* of an answer's task */
#define TRY_AGAIN_MS 1000
#define MOST_TRIES 60 /* to store an answer, before it is refused */
#define SENT "{\"content\":[{\"type\":\"text\",\"text\":\"The answer was sent to the server\"}]}"

/* ---- an answer as a task ---- */

/* Its arguments are what was asked and what was said, and its caller, terms and risk are those of
 * the call. */

/* As arguments: what was asked and what was said, one after the other. */
static void write_arguments(struct buffer *out, const struct answer_gate_answers *given)
{
    struct str key, answer, asked_key, question = STR_EMPTY;
    size_t at = 0;
    buffer_append_text(out, "{\"answers\":[");
    for (size_t position = 0; json_next_member(given->answers, &position, &key, &answer);) {
        /* Both are in the order of the questions. */
        bool is_known = json_next_member(given->questions, &at, &asked_key, &question);
        if (out->bytes[out->length - 1] == '}')
            buffer_append_char(out, ',');
        buffer_append_format(out, "{\"key\":\"%.*s\",\"question\":", STR_ARGS(key));
        buffer_append(out, is_known ? question : STR("null"));
        buffer_append_text(out, ",\"answer\":");
        buffer_append(out, answer);
        buffer_append_char(out, '}');
    }
    buffer_append_text(out, "]}");
}

static void write_answer_request(struct buffer *out, const struct task *call, struct str arguments)
{
    buffer_append_text(out, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":"
                            "{\"name\":");
    buffer_append_json_string(out, str_from(call->tool));
    buffer_append_text(out, ",\"arguments\":");
    buffer_append(out, arguments);
    json_add_text(out, TASK_ANSWER_OF, call->id);
    buffer_append_text(out, "}}");
}

/* The words for people: what it is, and how much is at stake by the call's rule. */
static void write_shown(struct buffer *out, const struct task *call)
{
    static const char *const copied[] = {"risk", "riskBy", "listed"};
    struct str shown = str_from(call->shown);
    OWNED char *summary = memory_format("The client's answer inside the call %s", call->id);
    buffer_append_char(out, '{');
    json_add_text(out, "summary", summary);
    for (size_t i = 0; i < sizeof copied / sizeof *copied; i++) {
        struct str value = json_member(shown, copied[i]);
        if (value.length == 0)
            continue;
        json_add_value(out, copied[i], value);
    }
    buffer_append_char(out, '}');
}

/* False when it is no request that the gateway would take: nested too deep. */
static bool bind_answer_request(struct task *task, const struct task *call, struct str arguments)
{
    OWNED_BUFFER(request);
    OWNED_BUFFER(shown);
    OWNED_ENVELOPE(envelope);
    write_answer_request(&request, call, arguments);
    write_shown(&shown, call);
    bool is_good = envelope_read(&envelope, buffer_str(&request), NULL) == ENVELOPE_OK;
    request_parts_bind(task, &envelope);
    task_set_text(&task->arguments, arguments);
    canonical_digest(arguments, task->arguments_digest);
    task_set_request(task, buffer_str(&request));
    task_set_text(&task->shown, buffer_str(&shown));
    return is_good;
}

/* It belongs to the same caller, so that nobody decides on an answer of theirs. */
static void bind_answer_to_call(struct task *task, const struct task *call)
{
    task_set_text(&task->source, str_from(call->source));
    task_set_text(&task->owner, str_from(call->owner));
    memcpy(task->owner_email, call->owner_email, sizeof task->owner_email);
    task_set_text(&task->session, str_from(call->session));
    task_set_text(&task->principal, str_from(call->principal));
    task_set_text(&task->client_name, str_from(call->client_name));
    task_set_text(&task->client_version, str_from(call->client_version));
    task_set_text(&task->tool, str_from(call->tool));
    task_set_text(&task->workflow, str_from(call->workflow));
    task_set_text(&task->terms, str_from(call->terms));
    task_set_text(&task->rule, str_from(call->rule));
    memcpy(task->policy_digest, call->policy_digest, sizeof task->policy_digest);
    memcpy(task->definition_digest, call->definition_digest, sizeof task->definition_digest);
    task_set_text(&task->action, STR(TASK_ACTION_ANSWER));
}

static void set_answer_clocks(struct task *task, const struct task *call,
                              const struct config *config)
{
    const struct config_workflow *workflow = config_workflow_find(config, str_from(call->workflow));
    int64_t within_ms = call->decide_by_ms - call->created_ms;
    task->created_ms = task->updated_ms = clock_now_ms();
    task->ttl_ms = call->ttl_ms;
    task->poll_interval_ms = POLL_INTERVAL_MS;
    if (task->state == TASK_PENDING) {
        task->decide_by_ms = task->created_ms + (within_ms > 0 ? within_ms : call->ttl_ms);
        task->remind_after_ms = workflow ? workflow->remind_after_ms : 0;
        task->escalate_after_ms = workflow ? workflow->escalate_after_ms : 0;
    } else {
        task->execute_by_ms = task->created_ms + call->ttl_ms;
    }
}

/* It is not stored yet. Pending if it waits for people, else executing. NULL: it cannot be kept. */
static struct task *answer_task_create(const struct answer_gate_answers *given, bool waits,
                                       const struct config *config)
{
    OWNED_BUFFER(arguments);
    struct task *task = task_create(waits ? TASK_PENDING : TASK_EXECUTING);
    task->accelerated = !waits;
    write_arguments(&arguments, given);
    bind_answer_to_call(task, given->task);
    bool is_good = bind_answer_request(task, given->task, buffer_str(&arguments));
    set_answer_clocks(task, given->task, config);
    if (is_good)
        return task;
    task_unref(task);
    return NULL;
}

/* ---- a gate ---- */

enum gate_state {
    GATE_CREATING, /* on its way to the store */
    GATE_LOOKING,  /* the store has failed: whether it has the answer all the same */
    GATE_WAITING,  /* for people */
    GATE_CLAIMING, /* approved; to be sent once that is on disk */
    GATE_SENT,     /* the end is to be stored */
    GATE_OVER,     /* nothing is to be done but to free it */
};

struct gate {
    uint32_t magic;   /* GATE_MAGIC */
    struct list node; /* in its family */
    struct gateway_worker *worker;
    struct task *task;
    char call[TASK_ID_BYTES];
    enum gate_state state;
    answer_gate_callback callback; /* NULL once it was called */
    void (*dropped)(void *context);
    void *context;
    struct loop_timer timer; /* the next try to store */
    int under_way;           /* messages to the store */
    int tries;
    bool is_listed;
};
#define GATE_MAGIC 0x47574107

/* The answers inside one call. */
struct family {
    struct list gates;
};

static struct gate *gate_from(void *context)
{
    return MAGIC_CAST(struct gate, GATE_MAGIC, context);
}

/* ---- what the configuration says ---- */

bool answer_gate_applies(const struct task *task)
{
    return task && !task->promoted && !task->accelerated;
}

/* `riskBy` tells whose word the risk is. Without it the rule alone has one. */
static bool is_high_by_rule(const struct task *task)
{
    struct str shown = str_from(task->shown), by = json_member(shown, "riskBy");
    return json_string_equals(json_member(shown, "risk"), STR("high")) &&
           (by.length == 0 || json_string_equals(by, STR("rule")));
}

static enum config_rounds rounds_of(const struct task *task, const struct config *config)
{
    const struct config_workflow *workflow = config_workflow_find(config, str_from(task->workflow));
    /* The workflow was taken out: what it said of answers is not known any more. */
    if (!workflow)
        return ROUNDS_REAPPROVE;
    if (workflow->rounds != ROUNDS_BY_RISK)
        return workflow->rounds;
    return is_high_by_rule(task) ? ROUNDS_REAPPROVE : ROUNDS_ALLOW;
}

bool answer_gate_denies(const struct task *task)
{
    if (task && str_starts_with(str_from(task->owner), STR(PERSON_OWNER)))
        return true; /* a call of the control plane has no client */
    if (!answer_gate_applies(task))
        return false;
    struct snapshot *snapshot = snapshot_current();
    bool denies = rounds_of(task, snapshot->config) == ROUNDS_DENY;
    snapshot_unref(snapshot);
    return denies;
}

/* {"action":"decline"} or cancel, and nothing else: a client may say no by itself. */
static bool says_no(struct str answer)
{
    struct str action = json_member(answer, "action");
    return json_count(answer) == 1 && (json_string_equals(action, STR("decline")) ||
                                       json_string_equals(action, STR("cancel")));
}

static bool all_say_no(struct str answers)
{
    struct str key, answer;
    for (size_t position = 0; json_next_member(answers, &position, &key, &answer);) {
        if (!says_no(answer))
            return false;
    }
    return true;
}

/* ---- the gates of a worker ---- */

static void list_gate(struct gate *gate)
{
    struct map *answers = gate->worker->answers;
    ASSERT(!gate->is_listed);
    struct family *family = map_get(answers, str_from(gate->call));
    if (!family) {
        family = memory_alloc(sizeof *family);
        list_init(&family->gates);
        map_put(answers, str_from(gate->call), family);
    }
    list_append(&family->gates, &gate->node);
    gate->is_listed = true;
}

static void unlist(struct gate *gate)
{
    struct family *family = map_get(gate->worker->answers, str_from(gate->call));
    list_remove(&gate->node);
    gate->is_listed = false;
    if (family && list_is_empty(&family->gates)) {
        map_remove(gate->worker->answers, str_from(gate->call));
        free(family);
    }
}

static void destroy(struct gate *gate)
{
    ASSERT(!gate->callback && gate->state == GATE_OVER);
    ASSERT_NUMBERS(gate->under_way, ==, 0);
    loop_timer_stop(&gate->timer);
    if (gate->is_listed)
        unlist(gate);
    task_unref(gate->task);
    MAGIC_CLEAR(gate);
    free(gate);
}

static void destroy_if_over(struct gate *gate)
{
    if (gate->state == GATE_OVER && gate->under_way == 0)
        destroy(gate);
}

static void decide(struct gate *gate, enum answer_verdict verdict)
{
    answer_gate_callback callback = gate->callback;
    gate->callback = NULL;
    if (callback)
        callback(gate->context, verdict);
}

static void refuse(struct gate *gate, enum answer_verdict verdict)
{
    gate->state = GATE_OVER;
    loop_timer_stop(&gate->timer);
    decide(gate, verdict);
}

/* ---- the store ---- */

static void on_reply(void *context, const struct store_reply *reply);

static struct store_call to_store(struct gate *gate)
{
    gate->under_way++;
    return (struct store_call){gate->worker->loop, on_reply, gate};
}

static void change(struct gate *gate, const struct task_change *change)
{
    const struct store_actor actor = {"gateway", "taskgate"};
    store_task_change(gate->worker->gateway->store, str_from(gate->task->id), change, &actor,
                      to_store(gate));
}

static void refuse_unkept(struct gate *gate)
{
    log_error("An answer inside an approved call is refused: it cannot be stored",
              LOG_TEXT("call", gate->call));
    refuse(gate, ANSWER_REFUSED);
}

/* A copy goes to the store, which writes to it, so that it can be made once more. */
static void create(struct gate *gate)
{
    struct snapshot *snapshot = snapshot_current();
    const struct config_limits *most = &snapshot->config->limits;
    struct store_limits limits = {INT64_MAX, INT64_MAX, most->store_bytes, INT64_MAX};
    /* One that is only recorded ends at once. */
    if (gate->task->state == TASK_PENDING)
        limits = (struct store_limits){most->pending_per_principal, most->pending_total,
                                       most->store_bytes, most->pending_bytes_per_principal};
    gate->state = GATE_CREATING;
    gate->tries++;
    store_task_create(gate->worker->gateway->store, task_copy(gate->task), &limits, to_store(gate));
    snapshot_unref(snapshot);
}

/* The answer is no task that can be stored. */
static void refuse_at_once(void *context)
{
    struct gate *gate = gate_from(context);
    refuse_unkept(gate);
    destroy(gate);
}

/* Asks the store for the next step. */
static void store_next(void *context)
{
    struct gate *gate = gate_from(context);
    if (gate->state == GATE_LOOKING)
        store_task_get(gate->worker->gateway->store, str_from(gate->task->id), to_store(gate));
    else if (gate->state == GATE_CLAIMING)
        change(gate, &(struct task_change){.to = TASK_EXECUTING,
                                           .request_digest = gate->task->request_digest});
    else if (gate->state == GATE_SENT)
        change(gate, &(struct task_change){.to = TASK_COMPLETED,
                                           .outcome = TASK_OUTCOME_RESULT,
                                           .outcome_text = STR(SENT)});
}

static void try_again(struct gate *gate)
{
    loop_timer_start(&gate->timer, TRY_AGAIN_MS);
}

/* That it is to be sent is on disk. */
static void send(struct gate *gate)
{
    ASSERT_NUMBERS(gate->state, <=, GATE_CLAIMING);
    ASSERT(gate->callback);
    gate->state = GATE_SENT;
    decide(gate, ANSWER_PASSES);
    store_next(gate);
}

static void cancel(struct gate *gate)
{
    change(gate, &(struct task_change){.to = TASK_CANCELLED,
                                       .by = "gateway",
                                       .status_message = "Cancelled: the call has ended"});
    refuse(gate, ANSWER_TOO_LATE);
}

/* The call may have ended before the answer could wait. */
static void on_call(void *context, const struct store_reply *reply)
{
    struct gate *gate = gate_from(context);
    ASSERT_NUMBERS(gate->under_way, >, 0);
    gate->under_way--;
    bool has_ended =
        reply->status == STORE_NOT_FOUND || (reply->task && reply->task->state != TASK_EXECUTING);
    if (gate->state == GATE_WAITING && has_ended)
        cancel(gate);
    destroy_if_over(gate);
}

/* A database that comes back takes the answer then. */
static void look_later(struct gate *gate)
{
    gate->state = GATE_LOOKING;
    try_again(gate);
}

static void on_created(struct gate *gate, const struct store_reply *reply)
{
    if (reply->status == STORE_FAILED && gate->tries < MOST_TRIES) {
        look_later(gate);
        return;
    }
    if (reply->status != STORE_OK) {
        refuse_unkept(gate);
        return;
    }
    log_info("An answer inside an approved call", LOG_TEXT("task", gate->task->id),
             LOG_TEXT("call", gate->call), LOG_TEXT("state", task_state_name(reply->task->state)));
    if (reply->task->state == TASK_EXECUTING) {
        send(gate);
        return;
    }
    if (task_state_is_terminal(reply->task->state)) { /* of a replica that was taken for dead */
        refuse(gate, ANSWER_TOO_LATE);
        return;
    }
    gate->state = GATE_WAITING;
    gate->under_way++;
    store_task_get(gate->worker->gateway->store, str_from(gate->call),
                   (struct store_call){gate->worker->loop, on_call, gate});
}

static void on_looked(struct gate *gate, const struct store_reply *reply)
{
    if (reply->status == STORE_OK)
        on_created(gate, reply);
    else if (reply->status == STORE_FAILED)
        look_later(gate);
    else
        create(gate);
}

static void on_claimed(struct gate *gate, const struct store_reply *reply)
{
    if (reply->status == STORE_OK)
        send(gate);
    else if (reply->status == STORE_FAILED)
        try_again(gate);
    else
        refuse(gate, ANSWER_REFUSED); /* cancelled or expired meanwhile */
}

static void on_reply(void *context, const struct store_reply *reply)
{
    struct gate *gate = gate_from(context);
    ASSERT_NUMBERS(gate->under_way, >, 0);
    gate->under_way--;
    if (gate->state == GATE_CREATING)
        on_created(gate, reply);
    else if (gate->state == GATE_LOOKING)
        on_looked(gate, reply);
    else if (gate->state == GATE_CLAIMING)
        on_claimed(gate, reply);
    else if (gate->state == GATE_SENT && reply->status == STORE_FAILED)
        try_again(gate);
    else if (gate->state == GATE_SENT)
        gate->state = GATE_OVER;
    destroy_if_over(gate);
}

/* ---- for callers ---- */

enum answer_course answer_gate_pass(struct gateway_worker *worker,
                                    const struct answer_gate_answers *answers,
                                    answer_gate_callback callback, void (*dropped)(void *context),
                                    void *context)
{
    struct snapshot *snapshot = snapshot_current();
    bool waits =
        rounds_of(answers->task, snapshot->config) != ROUNDS_ALLOW && !all_say_no(answers->answers);
    struct gate *gate = memory_alloc(sizeof *gate);
    *gate = (struct gate){.worker = worker,
                          .task = answer_task_create(answers, waits, snapshot->config),
                          .callback = callback,
                          .dropped = dropped,
                          .context = context};
    MAGIC_SET(gate, GATE_MAGIC);
    snprintf(gate->call, sizeof gate->call, "%s", answers->task->id);
    loop_timer_init(&gate->timer, worker->loop, gate->task ? store_next : refuse_at_once, gate);
    list_gate(gate);
    if (gate->task)
        create(gate);
    else
        loop_timer_start(&gate->timer, 0);
    snapshot_unref(snapshot);
    return waits ? ANSWER_WAITS : ANSWER_IS_RECORDED;
}

static void note_answer(struct gate *gate, struct task *task)
{
    if (gate->state != GATE_WAITING)
        return;
    if (task->state == TASK_APPROVED) {
        gate->state = GATE_CLAIMING;
        store_next(gate);
    } else if (task_state_is_terminal(task->state)) {
        log_info("An answer inside an approved call is not sent", LOG_TEXT("task", task->id),
                 LOG_TEXT("state", task_state_name(task->state)));
        refuse(gate, ANSWER_REFUSED);
    }
}

void answer_gate_note_task(struct gateway_worker *worker, struct task *task)
{
    bool is_answer = task_is_answer(task);
    if (map_count(worker->answers) == 0)
        return;
    char *call =
        is_answer
            ? json_string_text(json_member(str_from(task->other_params), TASK_ANSWER_OF), NULL)
            : memory_copy_text(task->id);
    struct family *family = call ? map_get(worker->answers, str_from(call)) : NULL;
    free(call);
    if (!family)
        return;
    /* The family goes with its last gate, whose `next` is the family's own. */
    struct list ended;
    list_init(&ended);
    LIST_FOR_EACH_SAFE (node, next, &family->gates) {
        struct gate *gate = LIST_ENTRY(node, struct gate, node);
        if (is_answer && gate->task && strcmp(gate->task->id, task->id) == 0)
            note_answer(gate, task);
        else if (!is_answer && gate->state == GATE_WAITING && task->state != TASK_EXECUTING)
            cancel(gate);
    }
    LIST_FOR_EACH_SAFE (node, next, &family->gates) {
        struct gate *gate = LIST_ENTRY(node, struct gate, node);
        if (gate->state != GATE_OVER || gate->under_way > 0)
            continue;
        list_remove(&gate->node);
        list_append(&ended, &gate->node);
    }
    LIST_FOR_EACH_SAFE (node, next, &ended) {
        destroy(LIST_ENTRY(node, struct gate, node));
    }
}

/* The store's answers to those that are under way still come. */
static void drop(struct gate *gate)
{
    if (gate->callback)
        gate->dropped(gate->context);
    gate->callback = NULL;
    gate->state = GATE_OVER;
    loop_timer_stop(&gate->timer);
    unlist(gate);
    destroy_if_over(gate);
}

void answer_gates_drop(struct gateway_worker *worker)
{
    size_t position = 0;
    void *value;
    while (map_next(worker->answers, &position, NULL, &value)) {
        const struct family *family = value;
        drop(LIST_ENTRY(family->gates.next, struct gate, node));
        position = 0;
    }
}
