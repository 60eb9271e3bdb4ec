/* An approver's arguments in place of the client's. */
#include "taskgate/gateway/edit.h"

#include <stdlib.h>
#include <string.h>

#include "decision/policy_check.h"
#include "decision/task_binding.h"
#include "request/request_parts.h"
#include "request/verified.h"
#include "request/worker.h"
#include "run/execution.h"
#include "state/tool_catalog.h"
#include "taskgate/approval/terms.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/canonical.h"
#include "taskgate/json/paths.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/input_schema.h"

/* ---- which values ---- */

static void digest_of_rest(struct str arguments, const struct ballot_names *paths,
                           char digest[DIGEST_HEX_BYTES])
{
    struct buffer rest;
    buffer_init(&rest);
    json_write_without_paths(&rest, arguments, paths->items, paths->count);
    canonical_digest(buffer_str(&rest), digest);
    buffer_finish(&rest);
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
    return str_starts_with(str_from(task->owner), STR(TASK_BINDING_ADMIN));
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
    bool asks = decision->by_policies;
    for (size_t i = 0; i < config->rule_count; i++)
        asks = asks || config->rules[i].has_principals;
    return asks;
}

static bool keeps_route(const struct gateway_worker *worker, const struct snapshot *snapshot,
                        const struct task *task, struct str arguments, struct error *error)
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
        return error_set(error, "the tool cannot be called any more");
    catalog_find_tool(worker->gateway->catalog, str_from(source->id),
                      is_of_control_plane(task) ? CATALOG_GATEWAY : str_from(task->owner),
                      request.name, &tool);
    facts.hints = tool.hints;
    policy_decide(snapshot->policy, &request, &decision);
    if (policy_refuses_arguments(&request, &decision, error))
        return false;
    policy_check(snapshot, &request, &facts, &decision);
    if (asks_for_caller(snapshot->config, &decision) && !knows_caller(task, source, identity))
        return error_set(error, "the rules ask who calls, which is not known here; the caller's "
                                "next request tells it");
    bool same_workflow = decision.action == ACTION_APPROVE && decision.workflow &&
                         strcmp(decision.workflow->name, task->workflow) == 0;
    return decision.action == ACTION_FORWARD || same_workflow ||
           error_set(error, "by the rules a call with these arguments goes another way");
}

/* ---- the request ---- */

/* The client's bytes, but for the arguments. */
static void write_request(struct buffer *out, const struct task *task,
                          const struct envelope *envelope, struct str arguments)
{
    struct str body = str_slice(task->request, task->request_length);
    struct str old = envelope->arguments.raw;
    struct buffer params;
    buffer_init(&params);
    if (old.length == 0) {
        json_write_with_member(&params, envelope->params, "arguments", arguments);
        old = envelope->params;
        arguments = buffer_str(&params);
    }
    const char *end = old.bytes + old.length;
    buffer_append(out, str_slice(body.bytes, (size_t)(old.bytes - body.bytes)));
    buffer_append(out, arguments);
    buffer_append(out, str_slice(end, (size_t)(body.bytes + body.length - end)));
    buffer_finish(&params);
}

/* It is read as a client's is, by the same reader. */
static bool bind(struct store_edit *edit, struct str request, struct error *error)
{
    struct envelope envelope;
    struct request_parts parts;
    bool is_good = envelope_read(&envelope, request, error) == ENVELOPE_OK;
    if (is_good) {
        request_parts_read(&parts, &envelope);
        canonical_digest(envelope.arguments.raw, edit->arguments_digest);
        memcpy(edit->request_digest, parts.digest, sizeof edit->request_digest);
        edit->arguments = memory_copy_str(envelope.arguments.raw);
        request_parts_finish(&parts);
    }
    envelope_finish(&envelope);
    return is_good;
}

static bool make_request(const struct task *task, struct str arguments, int64_t most_bytes,
                         struct store_edit *edit, struct error *error)
{
    struct envelope envelope;
    struct buffer request;
    buffer_init(&request);
    bool is_good = envelope_read(&envelope, str_slice(task->request, task->request_length),
                                 error) == ENVELOPE_OK;
    if (is_good)
        write_request(&request, task, &envelope, arguments);
    envelope_finish(&envelope);
    if (is_good && request.length > (size_t)most_bytes)
        is_good = error_set(error, "the call is larger than limits.body_bytes");
    if (is_good && bind(edit, buffer_str(&request), error)) {
        memcpy(edit->before_digest, task->request_digest, sizeof edit->before_digest);
        edit->request = buffer_take(&request, &edit->request_length);
        return true;
    }
    buffer_finish(&request);
    return false;
}

enum edit_status edit_make(const struct gateway_worker *worker, const struct snapshot *snapshot,
                           const struct task *task, struct str arguments, struct store_edit *edit,
                           struct error *error)
{
    char digest[DIGEST_HEX_BYTES];
    *edit = (struct store_edit){.arguments = NULL};
    canonical_digest(arguments, digest);
    if (strcmp(digest, task->arguments_digest) == 0)
        return EDIT_NOTHING_CHANGED;
    if (!keeps_the_rest(task, arguments)) {
        error_set(error, "only the paths of allow_edit in the workflow %s may be changed",
                  task->workflow);
        return EDIT_NOT_ALLOWED;
    }
    if (!fits_schema(worker, task, arguments, error)) {
        error_prefix(error, "arguments");
        return EDIT_NOT_ALLOWED;
    }
    if (!keeps_route(worker, snapshot, task, arguments, error))
        return EDIT_CHANGES_ROUTE;
    return make_request(task, arguments, snapshot->config->limits.body_bytes, edit, error)
               ? EDIT_MADE
               : EDIT_NOT_ALLOWED;
}
