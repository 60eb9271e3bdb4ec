/* Counts the event of a committed change. */
#include "task_metrics.h"

#include "taskgate/core/metrics.h"
#include "taskgate/telemetry/task_trace.h"

/* Every decision comes over the admin endpoint, but those of grants. */
#define CHANNEL STR("admin")

/* Whether this change is the one that ended the waiting for a decision. A task that goes back
 * to approved, or ends after its approval, was changed later than it was decided. */
static bool has_just_left_pending(const struct task *task)
{
    switch (task->state) {
    case TASK_APPROVED:
    case TASK_REJECTED:
    case TASK_CANCELLED:
        return task->decided_ms != 0 && task->decided_ms == task->updated_ms;
    case TASK_EXPIRED:
    case TASK_FAILED:
        return task->decided_ms == 0;
    default:
        return false;
    }
}

/* How long a human took, by what was said. */
static void count_decision(const struct task *task)
{
    bool is_decision = task->state == TASK_APPROVED || task->state == TASK_REJECTED;
    if (is_decision)
        metrics_observe(
            METRIC_DECISION_SECONDS, (double)(task->decided_ms - task->created_ms) / 1000,
            METRIC_LABELS(str_from(task->workflow),
                          task->state == TASK_APPROVED ? STR("approve") : STR("reject")));
}

/* From the creation to the decision, whatever process has seen the first of them. */
static void write_span(const struct task *task)
{
    struct task_trace trace;
    struct buffer name = {0};
    if (!task_trace_read(&trace, str_from(task->trace)))
        return;
    const struct span_parent parent = {.context = &trace.create, .state = str_from(trace.state)};
    buffer_append_format(&name, "approval %s", task->tool);
    struct span *span = span_start(SPAN_INTERNAL, buffer_str(&name), &parent);
    buffer_finish(&name);
    span_set_id(span, trace.wait.span_id);
    span_set_times(span, task->created_ms, task->updated_ms);
    span_add_link(span, &trace.create);
    span_set_text(span, ATTRIBUTE_TASK, str_from(task->id));
    span_set_text(span, ATTRIBUTE_TOOL, str_from(task->tool));
    span_set_text(span, ATTRIBUTE_SOURCE, str_from(task->source));
    span_set_text(span, ATTRIBUTE_RULE, str_from(*task->rule ? task->rule : "default"));
    span_set_text(span, ATTRIBUTE_WORKFLOW, str_from(task->workflow));
    span_set_text(span, ATTRIBUTE_OUTCOME, str_from(task_state_name(task->state)));
    span_end(span);
}

static void count_approval(const struct task *task, bool created)
{
    if (created && task->state == TASK_APPROVED) {
        metrics_count(METRIC_APPROVAL_REQUESTS, STR("grant"), STR("approved"));
    } else if (created) {
        metrics_count(METRIC_APPROVAL_REQUESTS, CHANNEL, STR("pending"));
    } else if (has_just_left_pending(task)) {
        count_decision(task);
        if (telemetry_is_on)
            write_span(task);
        struct str outcome = str_from(task_state_name(task->state));
        metrics_count(METRIC_APPROVAL_REQUESTS, CHANNEL, outcome);
        metrics_observe(METRIC_APPROVAL_WAIT, (double)(task->updated_ms - task->created_ms) / 1000,
                        METRIC_LABELS(CHANNEL, outcome));
    }
}

void task_metrics_count(const struct task *task, bool created)
{
    if (!task->accelerated && !task->promoted)
        count_approval(task, created);
    if (!created && task_state_is_terminal(task->state))
        metrics_count(METRIC_TASKS_COMPLETED, str_from(task_kind_name(task)),
                      str_from(task_state_name(task->state)));
}
