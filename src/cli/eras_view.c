/* One table: what a call comes to, for each action and each kind of client. */
#include "eras_view.h"

#include "taskgate/config/duration.h"

/* The view has these beside the outcomes of one call (policy_outcome()). */
enum { BY_SERVER = POLICY_ROUTE_COUNT, BY_POLICIES };

static const struct {
    const char *word, *sentence;
} outcomes[] = {
    [ROUTE_FORWARD] = {"forward", "passed on"},
    [ROUTE_HELD_ACCELERATED] = {"forward", "passed on"},
    [ROUTE_DENIED] = {"deny", "refused with -32014"},
    [ROUTE_REJECTED] = {"reject", "refused with -32003"},
    [ROUTE_APPROVAL] = {"task", "a task that waits for a human"},
    [ROUTE_ACCELERATED] = {"task_at_once", "a task that runs at once"},
    [ROUTE_HELD] = {"held", "held"},
    [ROUTE_TASK_REQUIRED] = {"task_required", "refused with -32009"},
    [ROUTE_TASK_FORBIDDEN] = {"task_forbidden", "refused with -32010"},
    [ROUTE_LACKS_EXTENSION] = {"missing_capability", "refused with -32021"},
    [BY_SERVER] = {"by_server", "passed on if the server has tasks, else refused with -32010"},
    [BY_POLICIES] = {"policy", "as the policies decide"},
};

/* The outcomes for calls of a legacy client: with `task`, plain ones of a client that knows tasks
 * and of one that knows none; and for those of a modern client that declares the tasks extension
 * and of any other. */
struct face {
    int with_task, plain, plain_without_tasks, declares_tasks, other;
};

/* At a server without tasks of its own, unless that makes a difference. */
static int eras_view_outcome_of(const struct policy_decision *decision, struct policy_caller caller)
{
    if (decision->action == ACTION_POLICY && policy_asks_policies(&caller, decision))
        return BY_POLICIES;
    enum policy_annotation own = ANNOTATION_OPTIONAL;
    enum policy_route without =
        policy_outcome(&caller, decision, policy_annotate(decision, false, false, own), false, own);
    enum policy_route with =
        policy_outcome(&caller, decision, policy_annotate(decision, true, true, own), true, own);
    bool is_by_server = without == ROUTE_TASK_FORBIDDEN && with == ROUTE_FORWARD;
    return is_by_server ? (int)BY_SERVER : (int)without;
}

static struct face find_face(const struct policy_decision *decision)
{
    typedef struct policy_caller caller;
    return (struct face){
        .with_task =
            eras_view_outcome_of(decision, (caller){.has_task = true, .knows_tasks = true}),
        .plain = eras_view_outcome_of(decision, (caller){.knows_tasks = true}),
        .plain_without_tasks = eras_view_outcome_of(decision, (caller){.has_task = false}),
        .declares_tasks =
            eras_view_outcome_of(decision, (caller){.is_modern = true, .knows_tasks = true}),
        .other = eras_view_outcome_of(decision, (caller){.is_modern = true}),
    };
}

static bool is_seen(const struct snapshot *snapshot, const struct config_source *source,
                    struct str tool)
{
    return source->enabled && policy_is_visible(snapshot->policy, source, tool);
}

static void append_outcome(struct buffer *out, const struct config_pseudo *pseudo, int outcome,
                           bool is_modern)
{
    char wait[64];
    buffer_append_text(out, outcomes[outcome].sentence);
    if (outcome != ROUTE_HELD)
        return;
    duration_format(pseudo->wait_ms, wait);
    buffer_append_format(out, " for %s", wait);
    if (is_modern)
        buffer_append_format(out, ", again after each of %d repetitions", pseudo->rounds);
    buffer_append_text(out, ", then answered with what is pending");
}

void eras_view_write_text(struct buffer *out, const struct snapshot *snapshot,
                          const struct config_source *source, struct str tool,
                          const struct policy_decision *decision)
{
    const struct config_pseudo *pseudo = &snapshot->config->pseudo;
    const struct face face = find_face(decision);
    if (!is_seen(snapshot, source, tool))
        return;
    buffer_append_format(out, "%-11swith task: ", "Legacy");
    append_outcome(out, pseudo, face.with_task, false);
    buffer_append_text(out, "; plain: ");
    append_outcome(out, pseudo, face.plain, false);
    if (face.plain_without_tasks != face.plain) {
        buffer_append_text(out, ", or of a client without tasks ");
        append_outcome(out, pseudo, face.plain_without_tasks, false);
    }
    buffer_append_format(out, "\n%-11s", "Modern");
    append_outcome(out, pseudo, face.declares_tasks, true);
    if (face.other != face.declares_tasks) {
        buffer_append_text(out, ", or of a client that declares no tasks ");
        append_outcome(out, pseudo, face.other, true);
    }
    buffer_append_text(out, "; tools/list has the tool as the server describes it\n");
}

void eras_view_write_json(struct buffer *out, const struct snapshot *snapshot,
                          const struct config_source *source, struct str tool,
                          const struct policy_decision *decision)
{
    const struct face face = find_face(decision);
    if (!is_seen(snapshot, source, tool)) {
        buffer_append_text(out, ",\"eras\":null");
        return;
    }
    buffer_append_format(out,
                         ",\"eras\":{\"legacy\":{\"with_task\":\"%s\",\"plain\":\"%s\","
                         "\"plain_without_tasks\":\"%s\"},"
                         "\"modern\":{\"declares_tasks\":\"%s\",\"other\":\"%s\"}}",
                         outcomes[face.with_task].word, outcomes[face.plain].word,
                         outcomes[face.plain_without_tasks].word,
                         outcomes[face.declares_tasks].word, outcomes[face.other].word);
}
