/*
 * The life of a task: one table of moves, and the invariant after each of them.
 *
 *                 +----------------------------> failed, cancelled
 *                 |            +---------------> failed, cancelled, expired
 *                 |            |           +---> failed, cancelled, completed; expired, if promoted
 *                 |            |           |
 *     (new) --> pending --> approved --> executing <-- (new, promoted)
 *                 | |          ^  ^        |
 *                 | |          |  +--------+  given back, never a promoted one: upstream refused
 *                 | |          |              the credentials before it looked at the call
 *                 | |        (new, accelerated)
 *                 | +-> expired
 *                 +---> rejected
 *
 * Source: behaviour 7.1; of promoted ones behaviour 11.11.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"
#include "taskgate/task/task.h"

enum move_flag {
    MOVE_DECIDES = 1 << 0, /* sets decided_ms and decided_by */
    MOVE_ARMS = 1 << 1,    /* starts the execute-by clock */
    MOVE_ENDS = 1 << 2,    /* sets ended_ms; nothing follows */
    MOVE_OF_PROMOTED = 1 << 3,
    MOVE_OF_OTHERS = 1 << 4,
    MOVE_STARTS = 1 << 5, /* sets started_ms */
};

struct move {
    const char *name; /* its name in the audit trail; NULL: there is no such move */
    unsigned flags;
};

static const struct move moves[TASK_STATE_COUNT][TASK_STATE_COUNT] = {
    [TASK_PENDING] =
        {
            [TASK_APPROVED] = {"approve", MOVE_DECIDES | MOVE_ARMS},
            [TASK_REJECTED] = {"reject", MOVE_DECIDES | MOVE_ENDS},
            [TASK_CANCELLED] = {"cancel", MOVE_DECIDES | MOVE_ENDS},
            [TASK_EXPIRED] = {"expire", MOVE_ENDS},
            [TASK_FAILED] = {"fail", MOVE_ENDS},
        },
    [TASK_APPROVED] =
        {
            [TASK_EXECUTING] = {"execute", MOVE_STARTS},
            [TASK_CANCELLED] = {"cancel", MOVE_ENDS},
            [TASK_EXPIRED] = {"expire", MOVE_ENDS},
            [TASK_FAILED] = {"fail", MOVE_ENDS},
        },
    [TASK_EXECUTING] =
        {
            [TASK_COMPLETED] = {"complete", MOVE_ENDS},
            [TASK_FAILED] = {"fail", MOVE_ENDS},
            [TASK_CANCELLED] = {"cancel", MOVE_ENDS},
            [TASK_EXPIRED] = {"expire", MOVE_ENDS | MOVE_OF_PROMOTED},
            [TASK_APPROVED] = {"give_back", MOVE_OF_OTHERS},
        },
};

static bool transitions_is_state(enum task_state state)
{
    return (unsigned)state < TASK_STATE_COUNT;
}

static const struct move *find_move(enum task_state from, enum task_state to)
{
    if (!transitions_is_state(from) || !transitions_is_state(to) || !moves[from][to].name)
        return NULL;
    return &moves[from][to];
}

bool task_can_move(enum task_state from, enum task_state to)
{
    return find_move(from, to) != NULL;
}

bool task_has_refused(const struct task *task, const char *credentials)
{
    return credentials && *credentials && strstr(task->refused_credentials, credentials);
}

size_t task_refusal_count(const struct task *task)
{
    size_t count = *task->refused_credentials ? 1 : 0;
    for (const char *p = task->refused_credentials; *p; p++)
        count += *p == ' ';
    return count;
}

size_t task_claim(const struct task *task)
{
    return task_refusal_count(task);
}

bool task_can_change(const struct task *task, const struct task_change *change)
{
    const struct move *move = find_move(task->state, change->to);
    bool gives_back = task->state == TASK_EXECUTING && change->to == TASK_APPROVED;
    bool is_too_late = task->state == TASK_EXECUTING && change->unless_begun;
    if (!move || (move->flags & (task->promoted ? MOVE_OF_OTHERS : MOVE_OF_PROMOTED)))
        return false;
    if (change->to == TASK_EXECUTING && task_has_refused(task, change->credentials))
        return false;
    if (change->request_digest && strcmp(task->request_digest, change->request_digest) != 0)
        return false;
    if (gives_back && task_refusal_count(task) + 1 >= TASK_MOST_TRIES)
        return false;
    if (change->unless_promised && task->promised)
        return false;
    return !is_too_late && !(gives_back && change->by);
}

const char *task_move_name(enum task_state from, enum task_state to)
{
    const struct move *move = find_move(from, to);
    return move ? move->name : NULL;
}

bool task_next_move(size_t *position, struct task_move *move)
{
    while (*position < (size_t)TASK_STATE_COUNT * TASK_STATE_COUNT) {
        enum task_state from = (enum task_state)(*position / TASK_STATE_COUNT);
        enum task_state to = (enum task_state)(*position % TASK_STATE_COUNT);
        (*position)++;
        if (!task_can_move(from, to))
            continue;
        *move = (struct task_move){from, to, moves[from][to].name};
        return true;
    }
    return false;
}

bool task_state_is_terminal(enum task_state state)
{
    for (unsigned to = 0; to < TASK_STATE_COUNT; to++) {
        if (task_can_move(state, (enum task_state)to))
            return false;
    }
    return transitions_is_state(state);
}

bool task_check(const struct task *task, struct error *error)
{
    const bool is_approved = task->state == TASK_APPROVED || task->state == TASK_EXECUTING;
    const bool is_unbegun =
        task->state == TASK_PENDING || task->state == TASK_APPROVED || task->state == TASK_REJECTED;
    const struct {
        bool holds;
        const char *what;
    } rules[] = {
        {transitions_is_state(task->state), "its state is unknown"},
        {task->promoted ? task_id_is_ulid(str_from(task->id)) : task_id_is_ours(str_from(task->id)),
         "its id is not one of ours"},
        {task->created_ms > 0 && task->updated_ms > 0, "it has no time of creation or change"},
        {task->ttl_ms > 0, "it has no time to live"},
        {task_state_is_terminal(task->state) == (task->ended_ms > 0),
         "its end is set exactly when it has ended"},
        {task->state != TASK_PENDING || (task->decide_by_ms > 0 && task->decided_ms == 0),
         "a pending task is undecided and has a decide-by"},
        {!task->promoted || !is_unbegun, "a promoted task has begun"},
        {!is_approved || task->promoted || task->execute_by_ms > 0,
         "an approved task has an execute-by"},
        {task->state != TASK_REJECTED || task->decided_ms > 0, "a rejected task was decided"},
        {(task->state == TASK_FAILED) == (task->failure != TASK_FAILURE_NONE),
         "a failed task, and no other, says what failed"},
        {task->state != TASK_COMPLETED || task->outcome == TASK_OUTCOME_RESULT,
         "a completed task has a result"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (!rules[i].holds)
            return error_set(error, "task %s (%s): %s", task->id, task_state_name(task->state),
                             rules[i].what);
    }
    return true;
}

/* Checks that the caller brings the facts which task_check() demands of the target state. */
static bool check_change(const struct task *task, const struct task_change *change,
                         struct error *error)
{
    if (change->to == TASK_FAILED && change->failure == TASK_FAILURE_NONE)
        return error_set(error, "task %s: a move to failed must say what failed", task->id);
    if (change->to != TASK_FAILED && change->failure != TASK_FAILURE_NONE)
        return error_set(error, "task %s: only a move to failed brings a failure", task->id);
    if (change->to == TASK_COMPLETED && change->outcome != TASK_OUTCOME_RESULT)
        return error_set(error, "task %s: a move to completed must bring a result", task->id);
    return true;
}

static char *format_duration(int64_t ms)
{
    if (ms % 1000 == 0)
        return memory_format("%" PRId64 " s", ms / 1000);
    return memory_format("%" PRId64 " ms", ms);
}

static char *promoted_expiry_message(const struct task *task)
{
    char *duration = format_duration(task->ttl_ms);
    char *message = memory_format("Not completed within its time to live of %s", duration);
    free(duration);
    return message;
}

static char *expiry_message(const struct task *task)
{
    const bool undecided = task->state == TASK_PENDING;
    int64_t start_ms = undecided || task->decided_ms == 0 ? task->created_ms : task->decided_ms;
    int64_t end_ms = undecided ? task->decide_by_ms : task->execute_by_ms;
    char *duration = format_duration(end_ms - start_ms);
    char *message = memory_format(
        undecided ? "Approval timed out after %s" : "Approved, but not run within %s", duration);
    free(duration);
    return message;
}

/* A failed task must explain itself: many clients never fetch its result (SEP-1686 clients
 * of the SDK show `statusMessage` alone). */
static char *default_message(const struct task *task, const struct task_change *change)
{
    const bool reasoned = change->reason && *change->reason;
    const char *by = change->by && *change->by ? change->by : "an operator";
    switch (change->to) {
    case TASK_EXPIRED:
        return task->promoted ? promoted_expiry_message(task) : expiry_message(task);
    case TASK_REJECTED:
        return reasoned ? memory_format("Rejected by %s: %s", by, change->reason)
                        : memory_format("Rejected by %s", by);
    case TASK_CANCELLED:
        return reasoned ? memory_format("Cancelled: %s", change->reason)
                        : memory_copy_text("Cancelled");
    default:
        return memory_copy_text("");
    }
}

static void replace(char **field, const char *text)
{
    if (text)
        task_set_text(field, str_from(text));
}

/* Each refusal counts, whether the credentials are known or not. */
static void transitions_note_refusal(struct task *task, const char *credentials)
{
    const char *earlier = task->refused_credentials;
    char *all = memory_format("%s%s%s", earlier, *earlier ? " " : "",
                              credentials && *credentials ? credentials : "unknown");
    task_set_text(&task->refused_credentials, str_from(all));
    free(all);
}

static void transitions_set_clocks(struct task *task, const struct move *move,
                                   const struct task_change *change, int64_t now_ms)
{
    /* The wall clock may be set back; the order of a task's own times stays. */
    if (now_ms < task->updated_ms)
        now_ms = task->updated_ms;
    task->updated_ms = now_ms;
    if (change->execute_by_ms)
        task->execute_by_ms = change->execute_by_ms;
    else if (move->flags & MOVE_ARMS)
        task->execute_by_ms = now_ms + TASK_EXECUTE_WITHIN_MS;
    if (move->flags & MOVE_DECIDES)
        task->decided_ms = now_ms;
    if (move->flags & MOVE_STARTS)
        task->started_ms = now_ms;
    else if (change->to == TASK_APPROVED)
        task->started_ms = 0;
    if (move->flags & MOVE_ENDS)
        task->ended_ms = now_ms;
}

bool task_transition(struct task *task, const struct task_change *change, int64_t now_ms,
                     struct error *error)
{
    const struct move *move = find_move(task->state, change->to);
    if (!task_can_change(task, change))
        return error_set(error, "task %s cannot go from %s to %s", task->id,
                         task_state_name(task->state), task_state_name(change->to));
    ASSERT(move != NULL); /* task_can_change() looks at the table, too */
    if (!check_change(task, change, error))
        return false;

    char *message = change->status_message ? memory_copy_text(change->status_message)
                                           : default_message(task, change);
    task_set_text(&task->status_message, str_from(message));
    free(message);
    /* The reason stays the decider's. A later cancel has its reason in the message above. */
    if (task->decided_ms == 0)
        replace(&task->reason, change->reason);
    replace(&task->upstream_task, change->upstream_task);
    if (move->flags & MOVE_OF_OTHERS)
        transitions_note_refusal(task, change->credentials);
    if (move->flags & MOVE_DECIDES)
        replace(&task->decided_by, change->by);
    if (change->outcome != TASK_OUTCOME_NONE) {
        free(task->outcome_text);
        task->outcome = change->outcome;
        task->outcome_text = memory_copy_str(change->outcome_text);
        task->outcome_length = change->outcome_text.length;
    }
    task->failure = change->failure;
    transitions_set_clocks(task, move, change, now_ms);
    task->state = change->to;
    ASSERT(task_check(task, NULL));
    return true;
}
