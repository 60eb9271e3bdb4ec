/* taskgate explain: the decision of the rules on one tool, and the reason. */
#include <inttypes.h>
#include <stdio.h>

#include "taskgate/cli/cli.h"
#include "taskgate/config/config.h"
#include "taskgate/config/duration.h"
#include "taskgate/config/electorate.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/visible.h"
#include "taskgate/gateway/snapshot.h"
#include "taskgate/json/members.h"
#include "taskgate/policy/verdict.h"

#include "consultation.h"
#include "judgement.h"
#include "options.h"
#include "terminal.h"

/* ---- who may decide ---- */

/* The approvers of a workflow, and those of them in the file, as `explain` shows it. The
 * electorate of a workflow, in words and as JSON. */

/* Takes the votes of all in the file whom the terms let vote. */
static void read_ballot(struct ballot *ballot, const struct config *config,
                        const struct config_workflow *workflow)
{
    ballot_read(ballot, str_from(workflow->terms), STR_EMPTY);
    electorate_add(config, &ballot->votes);
    for (size_t i = ballot->votes.count; i > 0; i--) {
        if (!ballot_may_vote(&ballot->terms, &ballot->votes.items[i - 1].person))
            ballot_votes_remove(&ballot->votes, i - 1);
    }
}

/* ---- in words ---- */

static void append_names(struct buffer *out, const struct ballot_names *names, const char *before)
{
    for (size_t i = 0; i < names->count; i++)
        buffer_append_format(out, "%s%s", i == 0 ? before : ", ", names->items[i]);
}

static void append_needs(struct buffer *out, const struct ballot_need *needs, size_t count)
{
    const char *joint = "";
    for (size_t i = 0; i < count; i++) {
        if (needs[i].count == 0)
            continue;
        buffer_append_format(out, "%s%" PRId64 "%s%s", joint, needs[i].count,
                             needs[i].group ? " of " : "", needs[i].group ? needs[i].group : "");
        joint = ", ";
    }
}

static void append_terms(struct buffer *out, const struct ballot_terms *terms)
{
    bool is_named = terms->groups.count > 0 || terms->people.count > 0;
    if (terms->need_count > 0)
        append_needs(out, terms->needs, terms->need_count);
    else
        buffer_append_format(out, "%" PRId64 " %s", terms->quorum,
                             terms->quorum == 1 ? "approver" : "persons");
    append_names(out, &terms->groups, is_named ? " in " : "");
    append_names(out, &terms->people, terms->groups.count > 0 ? ", or " : " among ");
    append_names(out, &terms->emergency, "; alone in an emergency: ");
}

/* "2 persons of dba; in this file: alice, bob". */
static void electorate_view_write_text(struct buffer *out, const struct config *config,
                                       const struct config_workflow *workflow)
{
    struct ballot ballot;
    size_t count;
    read_ballot(&ballot, config, workflow);
    OWNED struct ballot_need *missing = ballot_missing(&ballot, &count);
    append_terms(out, &ballot.terms);
    buffer_append_text(out, ballot.votes.count > 0 ? "; in this file: " : "; nobody in this file");
    for (size_t i = 0; i < ballot.votes.count; i++) {
        buffer_append_format(out, "%s%s", i > 0 ? ", " : "", ballot.votes.items[i].person.name);
        append_names(out, &ballot.votes.items[i].person.groups, " (");
        buffer_append_text(out, ballot.votes.items[i].person.groups.count > 0 ? ")" : "");
    }
    if (!ballot_is_filled(&ballot)) {
        buffer_append_text(out, "; missing: ");
        append_needs(out, missing, count);
    }
    if (electorate_is_open(config))
        buffer_append_text(out, "; others may sign in");
    ballot_finish(&ballot);
}

/* ---- as JSON ---- */

static void add_present(struct buffer *out, const struct ballot_votes *votes)
{
    json_add_key(out, "present");
    buffer_append_char(out, '[');
    for (size_t i = 0; i < votes->count; i++) {
        buffer_append_text(out, i > 0 ? ",{" : "{");
        json_add_text(out, "name", votes->items[i].person.name);
        json_add_key(out, "groups");
        ballot_names_write(out, &votes->items[i].person.groups);
        buffer_append_char(out, '}');
    }
    buffer_append_char(out, ']');
}

/* ,"approvers":{groups, people, quorum, present, missing, open} */
static void electorate_view_write_json(struct buffer *out, const struct config *config,
                                       const struct config_workflow *workflow)
{
    struct ballot ballot;
    size_t count;
    read_ballot(&ballot, config, workflow);
    const struct ballot_terms *terms = &ballot.terms;
    const struct ballot_need anybody = {NULL, terms->quorum};
    OWNED struct ballot_need *missing = ballot_missing(&ballot, &count);
    json_add_key(out, "approvers");
    buffer_append_text(out, "{\"groups\":");
    ballot_names_write(out, &terms->groups);
    json_add_key(out, "people");
    ballot_names_write(out, &terms->people);
    ballot_needs_write(out, "quorum", terms->need_count > 0 ? terms->needs : &anybody,
                       terms->need_count > 0 ? terms->need_count : 1);
    add_present(out, &ballot.votes);
    ballot_needs_write(out, "missing", missing, count);
    json_add_bool(out, "open", electorate_is_open(config));
    buffer_append_char(out, '}');
    ballot_finish(&ballot);
}

/* ---- eras ---- */

/* A tool as clients of either era of the protocol see it, for `explain`. A table says it of each
 * action; how a client is known to be one without tasks is in docs/clients.md. One table: what a
 * call comes to, for each action and each kind of client. */

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

/* The rows "Legacy" and "Modern", whole lines, on the tool of `decision`, which is that of the
 * rules. A tool that no client sees has none. */
static void eras_view_write_text(struct buffer *out, const struct snapshot *snapshot,
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

/* `,"eras":{"legacy":{…},"modern":{…}}`; null for a tool that no client sees. */
static void eras_view_write_json(struct buffer *out, const struct snapshot *snapshot,
                                 const struct config_source *source, struct str tool,
                                 const struct policy_decision *decision)
{
    const struct face face = find_face(decision);
    if (!is_seen(snapshot, source, tool)) {
        json_add_value(out, "eras", STR("null"));
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

/* ---- the shadow ---- */

/* The shadow's decision on a tool, for `explain`. The shadow's verdict in a line. */

/* False when it depends on the call, and there is no call. */
static bool shadow_view_judge(const struct snapshot *snapshot, const struct policy_request *request,
                              const struct consultation *consultation, struct verdict *verdict)
{
    if (verdict_of_rules(snapshot->shadow, request, verdict))
        return true;
    if (!consultation)
        return false;
    struct policy_request call = *request;
    call.arguments = consultation->request.arguments;
    verdict_of(snapshot->shadow, &call, &consultation->facts, 0, NULL, verdict);
    return true;
}

/* Writes one line; nothing without a shadow. `consultation` may be NULL: no call is in view. */
static void shadow_view_write_text(struct buffer *out, const struct snapshot *snapshot,
                                   const struct policy_request *request,
                                   const struct consultation *consultation)
{
    struct verdict verdict;
    if (!snapshot->shadow)
        return;
    buffer_append_format(out, "%-11s", "Shadow");
    if (!shadow_view_judge(snapshot, request, consultation, &verdict)) {
        buffer_append_text(out, "depends on the call: give --args and --principal\n");
        return;
    }
    const struct config_rule *rule = verdict.decision.rule;
    struct str workflow = verdict_workflow(verdict.outcome, &verdict.decision);
    buffer_append_text(out, verdict_outcome_name(verdict.outcome));
    if (workflow.length) {
        buffer_append_text(out, " through the workflow ");
        visible_append(out, workflow);
    }
    if (verdict.outcome == VERDICT_HIDE) {
        buffer_append_text(out, ", by sources[].expose");
    } else if (rule) {
        buffer_append_format(out, ", by rule %zu: ", verdict.decision.rule_index);
        visible_append(out, str_from(rule->match));
        buffer_append_text(out, " (");
        visible_append(out, str_from(snapshot->config->shadow_path));
        buffer_append_format(out, ":%d)", rule->line);
    } else {
        buffer_append_text(out, ", by the default action");
    }
    buffer_append_char(out, '\n');
}

/* ,"shadow":{"decision":…,"rule":…,"workflow":…}; nothing without a shadow. */
static void shadow_view_write_json(struct buffer *out, const struct snapshot *snapshot,
                                   const struct policy_request *request,
                                   const struct consultation *consultation)
{
    struct verdict verdict;
    if (!snapshot->shadow)
        return;
    bool is_known = shadow_view_judge(snapshot, request, consultation, &verdict);
    struct str workflow = verdict_workflow(verdict.outcome, &verdict.decision);
    json_add_key(out, "shadow");
    buffer_append_char(out, '{');
    json_add_text_or_null(out, "decision", is_known ? verdict_outcome_name(verdict.outcome) : NULL);
    judgement_add_rule(out, &verdict.decision);
    if (is_known && workflow.length)
        json_add_str(out, "workflow", workflow);
    else
        json_add_value(out, "workflow", STR("null"));
    buffer_append_char(out, '}');
}

/* ---- the command ---- */

/* The source that is asked about; NULL after a word on stderr. */
static const struct config_source *explain_choose_source(const struct config *config,
                                                         const char *id)
{
    OWNED_BUFFER(ids);
    for (size_t i = 0; i < config->source_count; i++)
        buffer_append_format(&ids, "%s%s", i > 0 ? ", " : "", config->sources[i].id);
    const struct config_source *source = NULL;
    if (id)
        source = config_source_find(config, str_from(id));
    else if (config->source_count == 1)
        source = &config->sources[0];
    if (!source && id)
        options_complain("there is no source %s; there are: %.*s", id, STR_ARGS(buffer_str(&ids)));
    else if (!source)
        options_complain("there are several sources; name one with --source: %.*s",
                         STR_ARGS(buffer_str(&ids)));
    return source;
}

static void append_row(struct buffer *out, const char *name, struct str value)
{
    buffer_append_format(out, "%-11s", name);
    visible_append(out, value);
    buffer_append_char(out, '\n');
}

/* The clients that are served although the server does not speak their protocol. */
static struct str bridge_of(const struct config_source *source)
{
    static const char *const texts[] = {
        [BRIDGE_OFF] = "off",
        [BRIDGE_LEGACY] = "legacy clients, where the server speaks modern alone",
        [BRIDGE_MODERN] = "modern clients, where the server speaks legacy alone",
        [BRIDGE_LEGACY | BRIDGE_MODERN] = "clients of either protocol",
    };
    return str_from(texts[source->bridge]);
}

static void explain_append_text(struct buffer *out, const struct snapshot *snapshot,
                                const struct config_source *source, const char *tool,
                                const struct policy_decision *decision, struct str reason)
{
    OWNED_BUFFER(text);
    char timeout[64], valid_for[64];
    append_row(out, "Tool", str_from(tool));
    append_row(out, "Source", str_from(source->id));
    append_row(out, "Bridge", bridge_of(source));
    if (decision->rule)
        buffer_append_format(&text, "%zu: %s (%s:%d)", decision->rule_index, decision->rule->match,
                             snapshot->config->path, decision->rule->line);
    append_row(out, "Rule", decision->rule ? buffer_str(&text) : STR("none: the default action"));
    append_row(out, "Action", str_from(config_action_name(decision->action)));
    if (decision->workflow) {
        duration_format(config_decide_within_ms(snapshot->config, decision->workflow), timeout);
        duration_format(decision->workflow->valid_for_ms, valid_for);
        buffer_clear(&text);
        buffer_append_format(&text, "%s (%s to decide, then %s to begin the call)",
                             decision->workflow->name, timeout, valid_for);
        append_row(out, "Workflow", buffer_str(&text));
        buffer_clear(&text);
        electorate_view_write_text(&text, snapshot->config, decision->workflow);
        append_row(out, "Decided by", buffer_str(&text));
    }
    enum policy_annotation with = policy_annotate(decision, true, false, ANNOTATION_FORBIDDEN);
    enum policy_annotation without = policy_annotate(decision, false, false, ANNOTATION_FORBIDDEN);
    buffer_clear(&text);
    buffer_append_text(&text, policy_annotation_name(with));
    if (with != without)
        buffer_append_format(&text, " if the server has tasks, %s if it has none",
                             policy_annotation_name(without));
    append_row(out, "Announced", buffer_str(&text));
    append_row(out, "Why", reason);
}

/* Everything that is said of the tool, and of one call of it where there is one. */
static void explain_append_explanation(struct buffer *out, const struct snapshot *snapshot,
                                       const struct config_source *source, const char *tool,
                                       const struct policy_decision *ruled,
                                       const struct consultation *consultation, bool json)
{
    OWNED_BUFFER(reason);
    OWNED_BUFFER(quoted);
    OWNED_BUFFER(more);
    const struct policy_request request = {.source = source,
                                           .name = str_from(tool),
                                           .verified = consultation ? consultation->request.verified
                                                                    : NULL};
    judgement_write_reason(&reason, snapshot, source, str_from(tool), ruled);
    if (json) {
        struct policy_decision shown = *ruled;
        if (consultation) /* with one call in view, the workflow is that of the call */
            shown.workflow = consultation->decision.workflow;
        if (consultation)
            consultation_write_json(&more, consultation);
        if (shown.workflow)
            electorate_view_write_json(&more, snapshot->config, shown.workflow);
        eras_view_write_json(&more, snapshot, source, str_from(tool), ruled);
        shadow_view_write_json(&more, snapshot, &request, consultation);
        buffer_append_json_string(&quoted, str_from(source->id));
        judgement_write_json(out, str_from(tool), buffer_str(&quoted), &shown, buffer_str(&reason),
                             buffer_str(&more));
        buffer_append_char(out, '\n');
    } else {
        explain_append_text(out, snapshot, source, tool, ruled, buffer_str(&reason));
        eras_view_write_text(out, snapshot, source, str_from(tool), ruled);
        if (consultation)
            consultation_write_text(out, consultation);
        else if (policy_hangs_on_caller(snapshot->policy, &request))
            append_row(out, "Decision", STR("depends on the caller: give --principal"));
        else if (ruled->action == ACTION_POLICY)
            append_row(out, "Decision", STR("depends on the call: give --args and --principal"));
        shadow_view_write_text(out, snapshot, &request, consultation);
    }
}

static int explain(const struct snapshot *snapshot, const char *tool, const char *source_id,
                   const struct consultation_options *options, bool json)
{
    const struct config_source *source = explain_choose_source(snapshot->config, source_id);
    struct consultation consultation;
    if (!source)
        return CLI_USAGE;
    int code = CLI_USAGE;
    if (consultation_init(&consultation, options)) {
        struct policy_request request = {
            .source = source, .name = str_from(tool), .verified = consultation.request.verified};
        struct policy_decision ruled;
        OWNED_BUFFER(text);
        bool is_wanted = consultation_is_wanted(options);
        policy_decide(snapshot->policy, &request, &ruled);
        if (is_wanted)
            consultation_hold(&consultation, snapshot, source, request.name, &ruled);
        explain_append_explanation(&text, snapshot, source, tool, &ruled,
                                   is_wanted ? &consultation : NULL, json);
        code = terminal_write(&text) ? CLI_DONE : CLI_FAILURE;
    }
    consultation_finish(&consultation);
    return code;
}

int cli_explain(int argc, char **argv)
{
    const char *path = NULL, *source = NULL, *tool = NULL;
    struct consultation_options call = {0};
    bool json = false;
    const struct option options[] = {
        {"args", "JSON", "the arguments of a call, for Cedar policies", &call.arguments},
        {"principal", "WHO", "the caller: an owner, or {\"subject\", \"groups\", …}",
         &call.principal},
        {"at", "TIME", "the time of the call; by default now", &call.at},
        {"annotations", "JSON", "the server's hints, such as {\"readOnlyHint\": true}",
         &call.annotations},
        {"source", "ID", "the source of the tool, if there are several", &source},
        {"config", "FILE", "the configuration; by default one of the usual places", &path},
        {"json", NULL, "print JSON", .flag = &json},
    };
    const struct command command = {
        .usage = "taskgate explain TOOL [--args JSON] [--principal WHO] [--at TIME]\n"
                 "       [--annotations JSON] [--source ID] [--config FILE] [--json]",
        .synopsis =
            "Shows the decision of the rules on one tool: the rule, the action and workflow,\n"
            "the announcement, the reason, and what clients of both eras of the protocol get.\n"
            "With the facts of one call it also shows the decision on that call, and the\n"
            "Cedar policies that made it.",
        COMMAND_OPTIONS(options),
        .operands_min = 1,
        .operands_max = 1,
        .operand_name = "TOOL",
    };
    enum options_outcome outcome = options_read(&command, argc, argv, &tool);
    if (outcome != OPTIONS_READ)
        return options_exit_code(outcome);
    struct snapshot *snapshot = judgement_load(path, NULL);
    if (!snapshot)
        return CLI_USAGE;
    int code = explain(snapshot, tool, source, &call, json);
    snapshot_unref(snapshot);
    return code;
}
