/* One table: what a call comes to, for each action and each kind of client. */
#include "eras_view.h"

#include "taskgate/config/duration.h"

enum outcome {
    FORWARDED,
    DENIED,
    TASK,
    TASK_AT_ONCE,
    HELD,
    BY_SERVER,
    BY_POLICIES,
    TASK_REQUIRED,
    LACKS_EXTENSION
};

static const struct {
    const char *word, *sentence;
} outcomes[] = {
    [FORWARDED] = {"forward", "passed on"},
    [DENIED] = {"deny", "refused with -32014"},
    [TASK] = {"task", "a task that waits for a human"},
    [TASK_AT_ONCE] = {"task_at_once", "a task that runs at once"},
    [HELD] = {"held", "held"},
    [BY_SERVER] = {"by_server", "passed on if the server has tasks, else refused with -32010"},
    [BY_POLICIES] = {"policy", "as the policies decide"},
    [TASK_REQUIRED] = {"task_required", "refused with -32009"},
    [LACKS_EXTENSION] = {"missing_capability", "refused with -32021"},
};

/* The differences between rules, and the outcomes for calls of a legacy client: with `task`, plain
 * ones of a client that knows tasks and of one that knows none; and for those of a modern client
 * that declares the tasks extension and of any other. */
struct face {
    enum config_action action;
    bool requires_tasks, is_forced;
    enum outcome with_task, plain, plain_without_tasks, declares_tasks, other;
};

static const struct face faces[] = {
    {ACTION_FORWARD, false, false, BY_SERVER, FORWARDED, FORWARDED, FORWARDED, FORWARDED},
    {ACTION_FORWARD, false, true, TASK_AT_ONCE, TASK_REQUIRED, FORWARDED, FORWARDED, FORWARDED},
    {ACTION_DENY, false, false, DENIED, DENIED, DENIED, DENIED, DENIED},
    {ACTION_APPROVE, false, false, TASK, TASK_REQUIRED, HELD, TASK, HELD},
    {ACTION_APPROVE, true, false, TASK, TASK_REQUIRED, TASK_REQUIRED, TASK, LACKS_EXTENSION},
    {ACTION_POLICY, false, false, BY_POLICIES, TASK_REQUIRED, BY_POLICIES, BY_POLICIES,
     BY_POLICIES},
    {ACTION_POLICY, true, false, BY_POLICIES, TASK_REQUIRED, TASK_REQUIRED, BY_POLICIES,
     LACKS_EXTENSION},
};

/* NULL: there is none, which no configuration comes to. */
static const struct face *find_face(const struct policy_decision *decision)
{
    bool requires_tasks = policy_requires_tasks(decision);
    bool is_forced = decision->force_required && decision->action == ACTION_FORWARD;
    for (size_t i = 0; i < sizeof faces / sizeof *faces; i++)
        if (faces[i].action == decision->action && faces[i].requires_tasks == requires_tasks &&
            faces[i].is_forced == is_forced)
            return &faces[i];
    return NULL;
}

static bool is_seen(const struct snapshot *snapshot, const struct config_source *source,
                    struct str tool)
{
    return source->enabled && policy_is_visible(snapshot->policy, source, tool);
}

static void append_outcome(struct buffer *out, const struct config_pseudo *pseudo,
                           enum outcome outcome, bool is_modern)
{
    char wait[64];
    buffer_append_text(out, outcomes[outcome].sentence);
    if (outcome != HELD)
        return;
    duration_format(pseudo->wait_ms, wait);
    buffer_append_format(out, " for %s", wait);
    if (is_modern)
        buffer_append_format(out, ", again after each of %d repetitions", pseudo->rounds);
    buffer_append_text(out, ", then told what is pending");
}

void eras_view_write_text(struct buffer *out, const struct snapshot *snapshot,
                          const struct config_source *source, struct str tool,
                          const struct policy_decision *decision)
{
    const struct config_pseudo *pseudo = &snapshot->config->pseudo;
    const struct face *face = find_face(decision);
    if (!face || !is_seen(snapshot, source, tool))
        return;
    buffer_append_format(out, "%-11swith task: ", "Legacy");
    append_outcome(out, pseudo, face->with_task, false);
    buffer_append_text(out, "; plain: ");
    append_outcome(out, pseudo, face->plain, false);
    if (face->plain_without_tasks != face->plain) {
        buffer_append_text(out, ", or of a client without tasks ");
        append_outcome(out, pseudo, face->plain_without_tasks, false);
    }
    buffer_append_format(out, "\n%-11s", "Modern");
    append_outcome(out, pseudo, face->declares_tasks, true);
    if (face->other != face->declares_tasks) {
        buffer_append_text(out, ", or of a client that declares no tasks ");
        append_outcome(out, pseudo, face->other, true);
    }
    buffer_append_text(out, "; tools/list has the tool as the server describes it\n");
}

void eras_view_write_json(struct buffer *out, const struct snapshot *snapshot,
                          const struct config_source *source, struct str tool,
                          const struct policy_decision *decision)
{
    const struct face *face = find_face(decision);
    if (!face || !is_seen(snapshot, source, tool)) {
        buffer_append_text(out, ",\"eras\":null");
        return;
    }
    buffer_append_format(out,
                         ",\"eras\":{\"legacy\":{\"with_task\":\"%s\",\"plain\":\"%s\","
                         "\"plain_without_tasks\":\"%s\"},"
                         "\"modern\":{\"declares_tasks\":\"%s\",\"other\":\"%s\"}}",
                         outcomes[face->with_task].word, outcomes[face->plain].word,
                         outcomes[face->plain_without_tasks].word,
                         outcomes[face->declares_tasks].word, outcomes[face->other].word);
}
