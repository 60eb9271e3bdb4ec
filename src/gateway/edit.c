/* An approver's arguments in place of the client's. */
#include "taskgate/gateway/edit.h"

#include <stdlib.h>
#include <string.h>

#include "call/authorization.h"
#include "call/broadcast.h"
#include "call/request_parts.h"
#include "call/worker.h"
#include "conversation/execute.h"
#include "decision/decision_log.h"
#include "state/tool_catalog.h"
#include "taskgate/approval/terms.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/canonical.h"
#include "taskgate/json/paths.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/input_schema.h"

/* ---- which values ---- */

static void digest_of_rest(struct str arguments, const struct ballot_names *paths,
                           char digest[DIGEST_HEX_BYTES])
{
    OWNED_BUFFER(rest);
    json_write_without_paths(&rest, arguments, paths->items, paths->count);
    canonical_digest(buffer_str(&rest), digest);
}

static bool keeps_the_rest(const struct task *task, struct str arguments)
{
    struct ballot_terms terms;
    char before[DIGEST_HEX_BYTES], after[DIGEST_HEX_BYTES];
    ballot_terms_read(&terms, str_from(task->terms));
    digest_of_rest(str_from(task->arguments), &terms.allow_edit, before);
    digest_of_rest(arguments, &terms.allow_edit, after);
    bool keeps = terms.allow_edit.count > 0 && strcmp(before, after) == 0;
    ballot_terms_finish(&terms);
    return keeps;
}

/* ---- the tool's schema ---- */

static bool is_of_control_plane(const struct task *task)
{
    return str_starts_with(str_from(task->owner), STR(PERSON_OWNER));
}

static bool fits_schema(const struct gateway_worker *worker, const struct task *task,
                        struct str arguments, struct error *error)
{
    struct str owner = is_of_control_plane(task) ? CATALOG_GATEWAY : str_from(task->owner);
    char *schema = catalog_copy_input_schema(worker->gateway->catalog, str_from(task->source),
                                             owner, str_from(task->tool), task->definition_digest);
    if (!schema)
        return error_set(error, "the tool's inputSchema is not known");
    /* The headers of the request repeat such arguments, and are the client's. */
    bool has_headers = *task->mirrored_headers && strstr(schema, "\"x-mcp-header\"");
    bool fits =
        !has_headers && input_schema_check(str_from(schema), arguments, error) == INPUT_SCHEMA_FITS;
    if (has_headers)
        error_set(error, "headers of the request repeat arguments of this tool");
    free(schema);
    return fits;
}

/* ---- the rules ---- */

/* The subject and groups of the caller's token are not kept with the task. They are known while
 * the credentials are held with which the call would run. Calls of the control plane never had a
 * token. */
static bool knows_caller(const struct task *task, const struct config_source *source,
                         const struct identity *identity)
{
    return identity || !source->auth.issuer || is_of_control_plane(task);
}

static bool asks_for_caller(const struct config *config, const struct policy_decision *decision)
{
    bool asks = decision->action == ACTION_POLICY;
    for (size_t i = 0; i < config->rule_count; i++)
        asks = asks || config->rules[i].has_principals;
    return asks;
}

static enum edit_status refuse(enum edit_status status, const char *why, struct error *error)
{
    error_set(error, "%s", why);
    return status;
}

/* EDIT_MADE: the call with these arguments goes the same way, or passes. */
static enum edit_status judge_route(const struct gateway_worker *worker,
                                    const struct snapshot *snapshot, const struct task *task,
                                    struct str arguments, struct error *error)
{
    const struct config_source *source =
        config_source_find(snapshot->config, str_from(task->source));
    const struct identity *identity = execution_identity(worker, str_from(task->id));
    struct policy_verified verified;
    const struct policy_request request = {source, str_from(task->tool), arguments,
                                           verified_from(identity, &verified)};
    struct policy_facts facts = {
        .principal = {str_from(task->owner), str_from(task->client_name),
                      str_from(task->client_version)},
        .now_ms = clock_now_ms(),
    };
    struct policy_decision decision;
    struct catalog_tool tool;
    if (!source || !source->enabled || !policy_is_visible(snapshot->policy, source, request.name))
        return refuse(EDIT_CHANGES_ROUTE, "the tool cannot be called any more", error);
    policy_decide(snapshot->policy, &request, &decision);
    if (asks_for_caller(snapshot->config, &decision) && !knows_caller(task, source, identity))
        return refuse(EDIT_CALLER_UNKNOWN,
                      "the rules ask who calls, which is not known here; the caller's next "
                      "request tells it",
                      error);
    if (policy_refuses_arguments(&request, &decision, error))
        return EDIT_CHANGES_ROUTE;
    catalog_find_tool(worker->gateway->catalog, str_from(source->id),
                      is_of_control_plane(task) ? CATALOG_GATEWAY : str_from(task->owner),
                      request.name, &tool);
    facts.hints = tool.hints;
    policy_check(snapshot, &request, &facts, &decision);
    bool same_workflow = decision.action == ACTION_APPROVE && decision.workflow &&
                         strcmp(decision.workflow->name, task->workflow) == 0;
    if (decision.action == ACTION_FORWARD || same_workflow)
        return EDIT_MADE;
    return refuse(EDIT_CHANGES_ROUTE, "by the rules a call with these arguments goes another way",
                  error);
}

/* ---- the request ---- */

/* The client's bytes, but for the arguments. */
static void write_request(struct buffer *out, const struct envelope *envelope, struct str arguments)
{
    struct str old = envelope->arguments.raw;
    OWNED_BUFFER(params);
    if (old.length == 0) {
        json_write_with_member(&params, envelope->params, "arguments", arguments);
        old = envelope->params;
        arguments = buffer_str(&params);
    }
    envelope_write_replaced(envelope, old, arguments, out);
}

/* It is read as a client's is, by the same reader. */
static bool edit_bind(struct store_edit *edit, struct str request, struct error *error)
{
    OWNED_ENVELOPE(envelope);
    bool is_good = envelope_read(&envelope, request, error) == ENVELOPE_OK;
    if (is_good) {
        request_parts_digest(&envelope, edit->request_digest);
        canonical_digest(envelope.arguments.raw, edit->arguments_digest);
        edit->arguments = memory_copy_str(envelope.arguments.raw);
    }
    return is_good;
}

static bool make_request(const struct task *task, struct str arguments, int64_t most_bytes,
                         struct store_edit *edit, struct error *error)
{
    OWNED_ENVELOPE(envelope);
    OWNED_BUFFER(request);
    bool is_good = envelope_read(&envelope, str_slice(task->request, task->request_length),
                                 error) == ENVELOPE_OK;
    if (is_good)
        write_request(&request, &envelope, arguments);
    if (is_good && request.length > (size_t)most_bytes)
        is_good = error_set(error, "the call is larger than limits.body_bytes");
    if (is_good && edit_bind(edit, buffer_str(&request), error)) {
        memcpy(edit->before_digest, task->request_digest, sizeof edit->before_digest);
        edit->request = buffer_take(&request, &edit->request_length);
        return true;
    }
    return false;
}

/* ---- the judgement of one worker ---- */

static enum edit_status judge(const struct gateway_worker *worker, const struct snapshot *snapshot,
                              const struct task *task, struct str arguments,
                              struct store_edit *edit, struct error *error)
{
    char digest[DIGEST_HEX_BYTES];
    canonical_digest(arguments, digest);
    if (strcmp(digest, task->arguments_digest) == 0)
        return EDIT_NOTHING_CHANGED;
    if (task_is_answer(task))
        return refuse(EDIT_NOT_ALLOWED, "an answer inside a call cannot be changed", error);
    if (!keeps_the_rest(task, arguments)) {
        error_set(error, "only the paths of allow_edit in the workflow %s may be changed",
                  task->workflow);
        return EDIT_NOT_ALLOWED;
    }
    if (!fits_schema(worker, task, arguments, error)) {
        error_prefix(error, "arguments");
        return EDIT_NOT_ALLOWED;
    }
    enum edit_status status = judge_route(worker, snapshot, task, arguments, error);
    if (status != EDIT_MADE)
        return status;
    return make_request(task, arguments, snapshot->config->limits.body_bytes, edit, error)
               ? EDIT_MADE
               : EDIT_NOT_ALLOWED;
}

/* ---- the worker that knows the caller ---- */

/* "Who has the credentials of the call, and what does it say of these arguments?" */
struct edit_inquiry {
    struct inquiry base; /* first */
    uint32_t magic;      /* EDIT_INQUIRY_MAGIC */
    struct task *task;
    const struct snapshot *snapshot; /* borrowed until the end, as the arguments */
    struct str arguments;
    edit_callback done;
    void *context;
    struct edit_answer answer;
};
#define EDIT_INQUIRY_MAGIC 0x47576173

static struct edit_inquiry *edit_inquiry_from(void *context)
{
    return MAGIC_CAST(struct edit_inquiry, EDIT_INQUIRY_MAGIC, context);
}

static bool knows(struct gateway_worker *worker, struct inquiry *asked)
{
    return execution_identity(worker, str_from(edit_inquiry_from(asked)->task->id)) != NULL;
}

static void answer(struct gateway_worker *worker, struct inquiry *asked)
{
    struct edit_inquiry *inquiry = edit_inquiry_from(asked);
    struct edit_answer *answer = &inquiry->answer;
    answer->status = judge(worker, inquiry->snapshot, inquiry->task, inquiry->arguments,
                           &answer->edit, &answer->why);
}

static void done(struct inquiry *asked, enum inquiry_end end)
{
    struct edit_inquiry *inquiry = edit_inquiry_from(asked);
    struct edit_answer *answer = &inquiry->answer;
    if (end == INQUIRY_LATE)
        answer->status =
            refuse(EDIT_LATE, "a worker of the gateway does not answer; nothing was changed",
                   &answer->why);
    inquiry->done(inquiry->context, inquiry->task, answer);
}

static void destroy(struct inquiry *asked)
{
    struct edit_inquiry *inquiry = edit_inquiry_from(asked);
    task_unref(inquiry->task);
    free(inquiry->answer.edit.arguments);
    free(inquiry->answer.edit.request);
    MAGIC_CLEAR(inquiry);
    free(inquiry);
}

static const struct inquiry_kind edit_inquiry_kind = {knows, answer, done, destroy};

void edit_ask(struct gateway_worker *worker, const struct snapshot *snapshot, struct task *task,
              struct str arguments, edit_callback callback, void *context)
{
    struct edit_inquiry *inquiry = memory_alloc(sizeof *inquiry);
    MAGIC_SET(inquiry, EDIT_INQUIRY_MAGIC);
    inquiry->task = task_ref(task);
    inquiry->snapshot = snapshot;
    inquiry->arguments = arguments;
    inquiry->done = callback;
    inquiry->context = context;
    answer(worker, &inquiry->base);
    if (inquiry->answer.status == EDIT_CALLER_UNKNOWN) {
        inquiry_begin(&inquiry->base, &edit_inquiry_kind, worker);
        return;
    }
    callback(context, task, &inquiry->answer);
    destroy(&inquiry->base);
}
