/* The states of an invocation: which moves are allowed, and what holds in each state. */
#include <stdlib.h>

#include "invocation.h"
#include "taskgate/core/log.h"

/* A wrong move is a mistake of this program. The tests must see it; a process with other calls in
 * its hands must survive it. */
#ifdef TASKGATE_DEBUG
#define STOP_IN_TESTS() abort()
#else
#define STOP_IN_TESTS() ((void)0)
#endif

enum {
    OF_EXECUTION = INVOCATION_EXECUTION,
    OF_DETACHED = INVOCATION_DETACHED,
    OF_BOTH = OF_EXECUTION | OF_DETACHED,
};

struct move {
    const char *name; /* NULL: there is no such move */
    unsigned of;
};

#define MOVE(from, to, move_name, kinds)                                                           \
    [INVOCATION_##from][INVOCATION_##to] = {move_name, OF_##kinds},
static const struct move moves[INVOCATION_STATE_COUNT][INVOCATION_STATE_COUNT] = {
    INVOCATION_MOVES(MOVE)};
#undef MOVE

#define STATE(state, name) [INVOCATION_##state] = (name),
static const char *const names[] = {INVOCATION_STATES(STATE)};
#undef STATE
_Static_assert(sizeof names / sizeof *names == INVOCATION_STATE_COUNT, "each state has a name");

enum invocation_state invocation_where(const struct invocation *invocation)
{
    return invocation->state;
}

static bool is_state(enum invocation_state state)
{
    return (unsigned)state < INVOCATION_STATE_COUNT;
}

const char *invocation_state_name(enum invocation_state state)
{
    return is_state(state) ? names[state] : "unknown";
}

const char *invocation_move_name(enum invocation_kind kind, enum invocation_state from,
                                 enum invocation_state to)
{
    if (!is_state(from) || !is_state(to) || !(moves[from][to].of & (unsigned)kind))
        return NULL;
    return moves[from][to].name;
}

bool invocation_can_move(enum invocation_kind kind, enum invocation_state from,
                         enum invocation_state to)
{
    return invocation_move_name(kind, from, to) != NULL;
}

/* ---- what holds in each state ---- */

static bool nothing_is_under_way(const struct invocation *invocation)
{
    return !invocation->exchange;
}

static bool was_not_sent(const struct invocation *invocation)
{
    return !invocation->exchange && invocation->request_id.length == 0 && !invocation->server_task;
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
    return invocation->task && invocation->task->state == TASK_EXECUTING && invocation->source;
}

static bool server_works(const struct invocation *invocation)
{
    return invocation->exchange != NULL || invocation->rounds.is_between;
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

#define AT(state) (1U << INVOCATION_##state)

static const struct rule {
    unsigned states;
    unsigned of;
    bool (*holds)(const struct invocation *invocation);
    const char *what;
} rules[] = {
    {AT(OFFERED) | AT(CHECKING) | AT(CLAIMING) | AT(COMMITTING) | AT(REFUSED), OF_EXECUTION,
     was_not_sent, "nothing of it has been sent"},
    {AT(CLAIMING), OF_EXECUTION, waits_for_votes, "its task waits for a decision"},
    {AT(CHECKING) | AT(COMMITTING), OF_EXECUTION, is_approved, "its task is approved"},
    {AT(COMMITTING), OF_DETACHED, is_promoted, "it has a promoted task"},
    {AT(RUNNING), OF_EXECUTION, is_committed, "the store has its task as executing"},
    {AT(RUNNING), OF_DETACHED, server_works, "the server works on it, or gets it again"},
    {AT(POLLING), OF_BOTH, was_sent, "it has been sent"},
    {AT(POLLING), OF_BOTH, has_server_task, "the server has a task for it"},
    {AT(STORING) | AT(REFUSED), OF_BOTH, has_outcome, "its task has an outcome"},
    {AT(REFUSED), OF_BOTH, yields_to_others, "the refusal yields to the worker that has begun it"},
    {AT(STORING) | AT(ENDED), OF_BOTH, nothing_is_under_way, "nothing is under way to the server"},
};

bool invocation_check(const struct invocation *invocation, enum invocation_state state,
                      struct error *error)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct rule *rule = &rules[i];
        bool applies =
            (rule->states & (1U << state)) && (rule->of & (unsigned)invocation->class->kind);
        if (applies && !rule->holds(invocation))
            return error_set(error, "must hold at %s: %s", invocation_state_name(state),
                             rule->what);
    }
    return true;
}

/* ---- moving ---- */

static bool may_move(const struct invocation *invocation, enum invocation_state to,
                     struct error *error)
{
    if (!invocation_can_move(invocation->class->kind, invocation->state, to))
        return error_set(error, "there is no such move");
    return invocation_check(invocation, to, error);
}

bool invocation_move(struct invocation *invocation, enum invocation_state to)
{
    const char *from_name = invocation_state_name(invocation->state);
    struct error error;
    if (!may_move(invocation, to, &error)) {
        log_error("A call was to make a forbidden move: it stays where it is",
                  LOG_TEXT("task", invocation->id), LOG_TEXT("from", from_name),
                  LOG_TEXT("to", invocation_state_name(to)), LOG_TEXT("error", error.message));
        STOP_IN_TESTS();
        return false;
    }
    log_debug("A call moves", LOG_TEXT("task", invocation->id), LOG_TEXT("from", from_name),
              LOG_TEXT("to", invocation_state_name(to)));
    invocation->state = to;
    return true;
}

bool invocation_is_under_way(const struct invocation *invocation)
{
    enum invocation_state state = invocation_where(invocation);
    return state != INVOCATION_OFFERED && state != INVOCATION_ENDED;
}

bool invocation_has_begun(const struct invocation *invocation)
{
    enum invocation_state state = invocation_where(invocation);
    return state == INVOCATION_RUNNING || state == INVOCATION_POLLING ||
           state == INVOCATION_STORING;
}
