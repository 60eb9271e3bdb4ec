/* What all calls that the gateway runs share: their states, which moves are allowed and what holds
 * in each state, their messages to the server, and how an outcome is stored. */
#include "invocation.h"

#include <stdlib.h>
#include <string.h>

#include "state/tool_catalog.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/log.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/legacy_text.h"

#define STORE_RETRY_MS 1000

static const struct store_actor gateway_actor = {"gateway", "taskgate"};

/* A wrong move is a mistake of this program. The tests must see it; a process with other calls in
 * its hands must survive it. */
#ifdef TASKGATE_DEBUG
#define STOP_IN_TESTS() abort()
#else
#define STOP_IN_TESTS() ((void)0)
#endif

enum {
    OF_APPROVED = CONVERSATION_APPROVED,
    OF_DETACHED = CONVERSATION_DETACHED,
    OF_BOTH = OF_APPROVED | OF_DETACHED,
};

struct move {
    const char *name; /* NULL: there is no such move */
    unsigned of;
};

#define MOVE(from, to, move_name, kinds)                                                           \
    [CONVERSATION_##from][CONVERSATION_##to] = {move_name, OF_##kinds},
static const struct move moves[CONVERSATION_STATE_COUNT][CONVERSATION_STATE_COUNT] = {
    CONVERSATION_MOVES(MOVE)};
#undef MOVE

/* Behaviour 1.4. */
#define MOVE(from, to, move_name, kinds)                                                           \
    _Static_assert(CONVERSATION_##from < CONVERSATION_RUNNING ||                                   \
                       CONVERSATION_##to >= CONVERSATION_RUNNING,                                  \
                   "what may have been sent is never sent again");
CONVERSATION_MOVES(MOVE)
#undef MOVE

#define STATE(state, name) [CONVERSATION_##state] = (name),
static const char *const names[] = {CONVERSATION_STATES(STATE)};
#undef STATE
_Static_assert(sizeof names / sizeof *names == CONVERSATION_STATE_COUNT, "each state has a name");

enum conversation_state conversation_where(const struct invocation *invocation)
{
    return invocation->state;
}

static bool is_state(enum conversation_state state)
{
    return (unsigned)state < CONVERSATION_STATE_COUNT;
}

const char *conversation_state_name(enum conversation_state state)
{
    return is_state(state) ? names[state] : "unknown";
}

const char *conversation_move_name(enum conversation_kind kind, enum conversation_state from,
                                   enum conversation_state to)
{
    if (!is_state(from) || !is_state(to) || !(moves[from][to].of & (unsigned)kind))
        return NULL;
    return moves[from][to].name;
}

/* ---- what holds in each state ---- */

static bool nothing_is_under_way(const struct invocation *invocation)
{
    return !invocation->up.exchange;
}

static bool was_not_sent(const struct invocation *invocation)
{
    return !invocation->up.exchange && invocation->request_id.length == 0 &&
           !invocation->server_task;
}

static bool was_sent(const struct invocation *invocation)
{
    return invocation->request_id.length > 0;
}

static bool is_approved(const struct invocation *invocation)
{
    return invocation->task && invocation->task->state == TASK_APPROVED && invocation->snapshot;
}

static bool waits_for_votes(const struct invocation *invocation)
{
    return invocation->task && invocation->task->state == TASK_PENDING && invocation->snapshot;
}

static bool is_committed(const struct invocation *invocation)
{
    return invocation->task && invocation->task->state == TASK_EXECUTING;
}

static bool knows_server(const struct invocation *invocation)
{
    return invocation->source != NULL;
}

static bool server_works(const struct invocation *invocation)
{
    return server_link_is_pending(&invocation->up);
}

static bool is_promoted(const struct invocation *invocation)
{
    return invocation->task && invocation->task->promoted;
}

static bool has_server_task(const struct invocation *invocation)
{
    return invocation->server_task != NULL;
}

/* TASK_PENDING is zero, and no outcome leads there. */
static bool has_outcome(const struct invocation *invocation)
{
    return invocation->task && invocation->outcome.change.to != TASK_PENDING;
}

static bool yields_to_others(const struct invocation *invocation)
{
    return invocation->outcome.change.unless_begun;
}

#define AT(state) (1U << CONVERSATION_##state)

static const struct rule {
    unsigned states;
    unsigned of;
    bool (*holds)(const struct invocation *invocation);
    const char *what;
} rules[] = {
    {AT(OFFERED) | AT(CHECKING) | AT(CLAIMING) | AT(COMMITTING) | AT(OPENING) | AT(REFUSED),
     OF_APPROVED, was_not_sent, "nothing of it has been sent"},
    {AT(CLAIMING), OF_APPROVED, waits_for_votes, "its task waits for a decision"},
    {AT(CHECKING) | AT(COMMITTING), OF_APPROVED, is_approved, "its task is approved"},
    {AT(OPENING) | AT(RUNNING), OF_APPROVED, is_committed, "the store has its task as executing"},
    {AT(RUNNING), OF_BOTH, knows_server, "its server is known"},
    {AT(RUNNING), OF_APPROVED, was_sent, "its request is written"},
    {AT(DETACHING), OF_DETACHED, is_promoted, "it has a promoted task"},
    {AT(RUNNING), OF_DETACHED, server_works, "the server works on it, or gets it again"},
    {AT(FOLLOWING), OF_BOTH, was_sent, "it has been sent"},
    {AT(FOLLOWING), OF_BOTH, has_server_task, "the server has a task for it"},
    {AT(STORING) | AT(REFUSED), OF_BOTH, has_outcome, "its task has an outcome"},
    {AT(REFUSED), OF_BOTH, yields_to_others, "the refusal yields to the worker that has begun it"},
    {AT(STORING) | AT(ENDED), OF_BOTH, nothing_is_under_way, "nothing is under way to the server"},
};

bool conversation_check(const struct invocation *invocation, enum conversation_state state,
                        struct error *error)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct rule *rule = &rules[i];
        bool applies =
            (rule->states & (1U << state)) && (rule->of & (unsigned)invocation->class->kind);
        if (applies && !rule->holds(invocation))
            return error_set(error, "must hold at %s: %s", conversation_state_name(state),
                             rule->what);
    }
    return true;
}

/* ---- moving ---- */

static bool may_move(const struct invocation *invocation, enum conversation_state to,
                     struct error *error)
{
    if (!conversation_move_name(invocation->class->kind, invocation->state, to))
        return error_set(error, "there is no such move");
    return conversation_check(invocation, to, error);
}

bool conversation_move(struct invocation *invocation, enum conversation_state to)
{
    const char *from_name = conversation_state_name(invocation->state);
    struct error error;
    if (!may_move(invocation, to, &error)) {
        log_error("A call was to make a forbidden move: it stays where it is",
                  LOG_TEXT("task", invocation->id), LOG_TEXT("from", from_name),
                  LOG_TEXT("to", conversation_state_name(to)), LOG_TEXT("error", error.message));
        STOP_IN_TESTS();
        return false;
    }
    log_debug("A call moves", LOG_TEXT("task", invocation->id), LOG_TEXT("from", from_name),
              LOG_TEXT("to", conversation_state_name(to)));
    invocation->state = to;
    return true;
}

bool conversation_is_under_way(const struct invocation *invocation)
{
    enum conversation_state state = conversation_where(invocation);
    return state != CONVERSATION_OFFERED && state != CONVERSATION_ENDED;
}

bool conversation_has_begun(const struct invocation *invocation)
{
    enum conversation_state state = conversation_where(invocation);
    return state >= CONVERSATION_OPENING && state <= CONVERSATION_STORING;
}

/* ---- its life ---- */

void invocation_init(struct invocation *invocation, const struct invocation_class *class,
                     enum conversation_state state, struct gateway_worker *worker)
{
    MAGIC_SET(invocation, INVOCATION_MAGIC);
    invocation->class = class;
    invocation->state = state;
    invocation->worker = worker;
    invocation->references = 1;
    loop_timer_init(&invocation->timer, worker->loop, NULL, invocation);
    server_link_init(&invocation->up, &server_modern, class->maker, worker, invocation);
    headers_init(&invocation->headers, true);
}

void invocation_ref(struct invocation *invocation)
{
    ASSERT_NUMBERS(invocation->references, >, 0);
    invocation->references++;
}

void invocation_unref(struct invocation *invocation)
{
    ASSERT_NUMBERS(invocation->references, >, 0);
    if (--invocation->references > 0)
        return;
    headers_finish(&invocation->headers);
    buffer_finish(&invocation->request_id);
    invocation->up.protocol->release(&invocation->up);
    outcome_finish(&invocation->outcome);
    snapshot_unref(invocation->snapshot);
    task_unref(invocation->task);
    free(invocation->server_task);
    MAGIC_CLEAR(invocation);
    invocation->class->destroy(invocation);
}

struct invocation *invocation_of_task(const struct gateway_worker *worker, struct str id)
{
    void *found = map_get(worker->executions, id);
    found = found ? found : map_get(worker->detached_tasks, id);
    return found ? invocation_from(found) : NULL; /* the first member of either */
}

void invocation_set_task(struct invocation *invocation, struct task *task)
{
    ASSERT(!task || !*invocation->id || strcmp(invocation->id, task->id) == 0);
    if (task)
        task_ref(task);
    task_unref(invocation->task);
    invocation->task = task;
    if (task)
        memcpy(invocation->id, task->id, sizeof invocation->id);
    else
        invocation->id[0] = '\0';
}

struct sending invocation_sending(const struct invocation *invocation)
{
    return (struct sending){
        .source = invocation->source,
        .snapshot = invocation->snapshot,
        .headers = &invocation->headers,
    };
}

struct question_origin invocation_origin(struct invocation *invocation)
{
    return (struct question_origin){
        .worker = invocation->worker,
        .snapshot = invocation->snapshot,
        .source = invocation->source,
        .headers = invocation->up.headers ? invocation->up.headers : &invocation->headers,
        .session = invocation->session,
        .audience = &invocation->audience,
        .budget = &invocation->budget,
    };
}

/* ---- the end ---- */

/* The client of a bridged task is a legacy one: it has a session, and its call was made a modern
 * one. */
void invocation_take_result(struct invocation *invocation, struct str result)
{
    const struct task *task = invocation->task;
    struct catalog_tool tool;
    OWNED_BUFFER(legacy);
    if (!*task->mirrored_headers || !*task->session) {
        outcome_of_result(&invocation->outcome, result);
        return;
    }
    catalog_find_tool(invocation->worker->gateway->catalog, str_from(task->source),
                      str_from(task->owner), str_from(task->tool), &tool);
    legacy_text_write_call_result(&legacy, result, tool.wraps_output);
    outcome_of_result(&invocation->outcome, buffer_str(&legacy));
}

void invocation_take_reply(struct invocation *invocation, const struct exchange_reply *reply)
{
    struct str result = json_member(reply->message, "result");
    struct str error = json_member(reply->message, "error");
    if (result.length > 0)
        invocation_take_result(invocation, result);
    else if (error.length > 0)
        outcome_of_error(&invocation->outcome, error);
    else
        outcome_of_no_answer(&invocation->outcome, str_from(invocation->task->tool), reply);
}

static void store_outcome(struct invocation *invocation);

static void on_retry(void *context)
{
    store_outcome(invocation_from(context));
}

static void on_stored(void *context, const struct store_reply *reply)
{
    struct invocation *invocation = invocation_from(context);
    if (reply->status == STORE_FAILED && conversation_where(invocation) != CONVERSATION_ENDED) {
        /* The answer exists only in memory. It is kept until the disk takes it. */
        log_error("The outcome of a call could not be stored yet",
                  LOG_TEXT("task", invocation->id));
        loop_timer_start_with(&invocation->timer, on_retry, invocation, STORE_RETRY_MS);
    } else {
        invocation->class->end(invocation);
    }
    invocation_unref(invocation); /* the message's own reference */
}

static void store_outcome(struct invocation *invocation)
{
    struct gateway_worker *worker = invocation->worker;
    invocation->outcome.change.claim = task_claim(invocation->task);
    invocation_ref(invocation);
    store_task_change(worker->gateway->store, str_from(invocation->id),
                      outcome_change(&invocation->outcome), &gateway_actor,
                      (struct store_call){worker->loop, on_stored, invocation});
}

void invocation_store(struct invocation *invocation)
{
    ASSERT(invocation->state == CONVERSATION_STORING || invocation->state == CONVERSATION_REFUSED);
    if (invocation->task && *invocation->task->original_digest)
        outcome_mark_edited(&invocation->outcome);
    loop_timer_stop(&invocation->timer);
    store_outcome(invocation);
}
