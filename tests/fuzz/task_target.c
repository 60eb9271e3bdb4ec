/*
 * The life of a task, driven by random changes, clocks and copies, against a model written from
 * behaviour 7.1 to 7.14: the permitted moves, the fields that each move sets, and that no task
 * leaves a terminal state, runs without an approval, or is approved twice by an operator.
 */
#include <string.h>

#include "fuzz.h"
#include "taskgate/task/task.h"

#define START_MS INT64_C(1700000000000)

/* A letter a state, in the order of enum task_state: pending, approved, executing, completed,
 * failed, cancelled, rejected, expired; each with those it leaves to. */
static const char letters[] = "PAECFXRT";
static const char *const leaves_to[TASK_STATE_COUNT] = {"ARXTF", "EXTF", "CFXAT", "",
                                                        "",      "",     "",      ""};

struct model {
    enum task_state state;
    int64_t decide_by, execute_by, updated, decided, ended;
    unsigned approvals, executions, returns;
    unsigned refused;     /* credentials that upstream has refused; bits 1 << index in digests */
    bool was_decided_for; /* an approval, or accelerated */
    bool promoted;
    int64_t ttl_end;
};

/* Two known credentials, and none. A digest of the store has 64 digits: any text does here. */
static const char *const digests[] = {NULL, "a1", "b2", ""};

static unsigned bit_of(const char *credentials)
{
    return credentials && *credentials ? (*credentials == 'a' ? 1U : 2U) : 0;
}

static bool model_can_move(enum task_state from, enum task_state to)
{
    return strchr(leaves_to[from], letters[to]) != NULL;
}

static bool model_is_terminal(enum task_state state)
{
    return leaves_to[state][0] == '\0';
}

static int64_t model_deadline(const struct model *model)
{
    if (model->state == TASK_PENDING)
        return model->decide_by;
    if (model->state == TASK_EXECUTING && model->promoted)
        return model->ttl_end;
    return model->state == TASK_APPROVED ? model->execute_by : INT64_MAX;
}

static bool model_accepts(const struct model *model, const struct task_change *change)
{
    if (!model_can_move(model->state, change->to))
        return false;
    /* Only a promoted task expires while it runs, and it is never given back. */
    if (model->state == TASK_EXECUTING && change->to == TASK_APPROVED &&
        (change->by || model->promoted || model->returns + 1 >= TASK_MOST_TRIES))
        return false;
    if (change->to == TASK_EXECUTING && (model->refused & bit_of(change->credentials)))
        return false;
    if (model->state == TASK_EXECUTING && change->to == TASK_EXPIRED && !model->promoted)
        return false;
    if ((change->to == TASK_FAILED) != (change->failure != TASK_FAILURE_NONE))
        return false;
    return change->to != TASK_COMPLETED || change->outcome == TASK_OUTCOME_RESULT;
}

static void model_apply(struct model *model, const struct task_change *change, int64_t now_ms)
{
    const enum task_state from = model->state;
    if (now_ms < model->updated)
        now_ms = model->updated;
    model->updated = now_ms;
    model->state = change->to;
    if (change->execute_by_ms)
        model->execute_by = change->execute_by_ms;
    else if (from == TASK_PENDING && change->to == TASK_APPROVED)
        model->execute_by = now_ms + TASK_EXECUTE_WITHIN_MS;
    if (from == TASK_PENDING && change->to == TASK_APPROVED) {
        model->approvals++;
        model->was_decided_for = true;
    }
    if (from == TASK_PENDING && (change->to == TASK_APPROVED || change->to == TASK_REJECTED ||
                                 change->to == TASK_CANCELLED))
        model->decided = now_ms;
    model->executions += change->to == TASK_EXECUTING;
    if (from == TASK_EXECUTING && change->to == TASK_APPROVED) {
        model->returns++;
        model->refused |= bit_of(change->credentials);
    }
    if (model_is_terminal(change->to))
        model->ended = now_ms;
}

static void expect_agreement(const struct model *model, const struct task *task)
{
    struct error error = {""};
    FUZZ_EXPECT(task->state == model->state);
    FUZZ_EXPECT(task->updated_ms == model->updated);
    FUZZ_EXPECT(task->decided_ms == model->decided);
    FUZZ_EXPECT(task->ended_ms == model->ended);
    FUZZ_EXPECT(task->decide_by_ms == model->decide_by);
    FUZZ_EXPECT(task->execute_by_ms == model->execute_by);
    FUZZ_EXPECT(task_check(task, &error));
    FUZZ_EXPECT(task_state_is_terminal(task->state) == model_is_terminal(model->state));
    FUZZ_EXPECT(task_next_deadline_ms(task) == model_deadline(model));
    FUZZ_EXPECT((task_purge_ms(task) == INT64_MAX) == !model_is_terminal(model->state));
    /* Behaviour 1.4 and 1.5, as far as a value can hold them. */
    FUZZ_EXPECT(model->approvals <= 1);
    FUZZ_EXPECT(model->executions <= 1 + model->returns);
    FUZZ_EXPECT(task_refusal_count(task) == model->returns && model->returns < TASK_MOST_TRIES);
    FUZZ_EXPECT(model->executions == 0 || model->was_decided_for);
    FUZZ_EXPECT(!model->promoted || (model->approvals == 0 && model->executions == 0));
    for (unsigned to = 0; to < TASK_STATE_COUNT; to++)
        FUZZ_EXPECT(task_can_move(task->state, (enum task_state)to) ==
                    model_can_move(model->state, (enum task_state)to));
}

static struct task_change random_change(struct fuzz_input *input)
{
    static const char *const people[] = {NULL, "ada", "",
                                         "\xE2\x80\xAE"
                                         "eve"};
    static const char *const texts[] = {NULL, "", "because", "a\nb"};
    uint8_t what = fuzz_byte(input), more = fuzz_byte(input);
    struct task_change change = {
        .to = (enum task_state)(what % 9), /* one beyond the last, too */
        .by = people[more & 3],
        .reason = texts[more >> 2 & 3],
        .status_message = texts[more >> 4 & 3],
        .failure = (enum task_failure)(what >> 4 & 3),
        .outcome = (enum task_outcome)((more >> 6) % 3),
        .credentials = digests[more >> 2 & 3],
    };
    /* Half of the time the change has the facts that the target state needs. */
    if (what & 0x80) {
        change.failure = change.to == TASK_FAILED ? TASK_FAILURE_UPSTREAM : TASK_FAILURE_NONE;
        change.outcome = change.to == TASK_COMPLETED ? TASK_OUTCOME_RESULT : TASK_OUTCOME_NONE;
    }
    if (change.outcome != TASK_OUTCOME_NONE)
        change.outcome_text = fuzz_text(input, fuzz_byte(input) % 8);
    if (what & 0x40)
        change.execute_by_ms = START_MS + fuzz_byte(input) * INT64_C(1000);
    return change;
}

static void try_change(struct task *task, struct model *model, const struct task_change *change,
                       int64_t now_ms)
{
    struct error error = {""};
    const bool can = change->to < TASK_STATE_COUNT && model_accepts(model, change);
    const bool moved = task_transition(task, change, now_ms, &error);
    FUZZ_EXPECT(moved == can);
    FUZZ_EXPECT(moved == (error.message[0] == '\0'));
    if (moved)
        model_apply(model, change, now_ms);
}

/* As in every read: a passed deadline is applied first. */
static void try_clock(struct task *task, struct model *model, int64_t now_ms)
{
    struct task_change change;
    const bool is_due = task_due(task, now_ms, &change);
    FUZZ_EXPECT(is_due == (now_ms >= model_deadline(model)));
    if (is_due) {
        FUZZ_EXPECT(change.to == TASK_EXPIRED);
        try_change(task, model, &change, now_ms);
        FUZZ_EXPECT(task->state == TASK_EXPIRED);
    }
}

static struct task *begin_promoted(struct model *model, int64_t ttl_ms)
{
    struct task *task = task_create_promoted();
    task->created_ms = task->updated_ms = START_MS;
    task->ttl_ms = ttl_ms;
    *model = (struct model){.state = TASK_EXECUTING,
                            .updated = START_MS,
                            .promoted = true,
                            .ttl_end = START_MS + ttl_ms};
    return task;
}

static struct task *begin(struct fuzz_input *input, struct model *model)
{
    const uint8_t how = fuzz_byte(input);
    if (how >= 0xC0)
        return begin_promoted(model, 1 + (how & 0x3F) * INT64_C(1000));
    const bool accelerated = how & 1;
    struct task *task = task_create(accelerated ? TASK_APPROVED : TASK_PENDING);
    task->created_ms = task->updated_ms = START_MS;
    task->ttl_ms = 1 + (how >> 1) * INT64_C(1000);
    task->accelerated = accelerated;
    if (accelerated)
        task->execute_by_ms = START_MS + fuzz_byte(input) * INT64_C(1000) + 1;
    else
        task->decide_by_ms = START_MS + fuzz_byte(input) * INT64_C(1000) + 1;
    *model = (struct model){.state = task->state,
                            .decide_by = task->decide_by_ms,
                            .execute_by = task->execute_by_ms,
                            .updated = START_MS,
                            .was_decided_for = accelerated};
    return task;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct model model;
    struct task *task = begin(&input, &model);
    int64_t now_ms = START_MS;
    expect_agreement(&model, task);
    for (unsigned step = 0; step < 64 && input.left; step++) {
        /* Wall clocks go back, too. */
        now_ms += (int64_t)(int8_t)fuzz_byte(&input) * 500;
        if (now_ms & 4)
            try_clock(task, &model, now_ms);
        struct task_change change = random_change(&input);
        try_change(task, &model, &change, now_ms);
        expect_agreement(&model, task);
        struct task *copy = task_copy(task);
        task_unref(task);
        task = copy;
    }
    expect_agreement(&model, task);
    task_unref(task);
    return 0;
}
