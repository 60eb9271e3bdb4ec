/* The methods of extensions that rules judge, by the table: the parameter, and the URIs that the
 * answer names. */
#include "taskgate/mcp/extension.h"
#include "client/modern.h"
#include "lists_internal.h"
#include "methods.h"
#include "name_gate.h"
#include "server/probe.h"
#include "state/definition_watch.h"
#include "state/source_eras.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/cacheable.h"
#include "taskgate/mcp/lists.h"
#include "taskgate/policy/gate.h"

/* ---- the answer ---- */

struct judgement {
    const struct call *call;
    enum name_gate_verdict verdict; /* on the last URI */
    bool is_of_skills;
};

/* Before they are judged. */
static void pin_skills(const struct call *call, struct str result)
{
    static const char *const keys[] = {"skill", "skills", "nextCursor"};
    struct definition_watch *watch = call->worker->gateway->definitions;
    struct str found[3];
    struct buffer entry;
    if (call->source->pins[DEFINITION_SKILL] == PIN_OFF)
        return;
    json_members(result, keys, 3, found);
    bool has_more = found[2].length > 0 && json_type(found[2]) != JSON_NULL;
    definition_watch_see_entries(watch, call->source, DEFINITION_SKILL, found[1],
                                 call->envelope.cursor.raw.length == 0 && !has_more);
    if (found[0].length == 0)
        return;
    buffer_init(&entry);
    buffer_append_format(&entry, "[%.*s]", STR_ARGS(found[0]));
    definition_watch_see_entries(watch, call->source, DEFINITION_SKILL, buffer_str(&entry), false);
    buffer_finish(&entry);
}

/* Whether the answer has skills themselves; these are pinned. */
static bool has_skills(const struct call *call)
{
    return call->method->extension.of == MCP_EXTENSION_SKILLS &&
           str_starts_with(str_from(call->method->extension.member), STR("skill"));
}

/* A skill that has changed, or is flagged, may be there as if it were not. */
static bool judge(void *context, struct str uri, struct str entry)
{
    struct judgement *judgement = context;
    const struct call *call = judgement->call;
    judgement->verdict = name_gate_judge_uri(call, uri);
    if (judgement->is_of_skills && !lists_may_show(call, DEFINITION_SKILL, uri, entry))
        judgement->verdict = NAME_GATE_HIDDEN;
    return judgement->verdict == NAME_GATE_FORWARD;
}

static bool says_nothing_of_caches(struct str result)
{
    static const char *const keys[] = {"cacheScope", "ttlMs"};
    struct str found[2];
    json_members(result, keys, 2, found);
    return found[0].length == 0 && found[1].length == 0;
}

/* A list that says nothing of caches and of which nothing was left out passes in the legacy era,
 * which has no such members, as it is. */
static void write_cacheable(const struct call *call, struct str result, struct str shown,
                            struct buffer *out)
{
    int64_t most_ms = lists_most_ttl_ms(call);
    if (!call->dialect->has_sessions)
        mcp_cacheable_write(out, shown, most_ms);
    else if (str_equal(result, shown) && says_nothing_of_caches(result))
        buffer_append(out, shown);
    else
        mcp_cacheable_write_untyped(out, shown, most_ms);
}

static void rewrite(struct call *call, const struct relay_reply *reply, struct buffer *out)
{
    const struct mcp_method *method = call->method;
    struct judgement judgement = {.call = call, .is_of_skills = has_skills(call)};
    struct buffer list;
    size_t start = out->length;
    buffer_init(&list);
    if (judgement.is_of_skills && method->extension.answer == MCP_ANSWER_LIST)
        pin_skills(call, reply->result);
    if (method->extension.answer == MCP_ANSWER_LIST)
        mcp_entries_filter(&list, reply->result, method->extension.member, judge, &judgement);
    else
        buffer_append(&list, reply->result);
    if (method->extension.is_cacheable)
        write_cacheable(call, reply->result, buffer_str(&list), out);
    else
        buffer_append(out, buffer_str(&list));
    if (method->extension.answer == MCP_ANSWER_LIST)
        mcp_cacheable_drop_tags(out, start, reply->result);
    buffer_finish(&list);
}

/* Of one entry: no part of it is left out. */
static bool refuse_entry(struct call *call, const struct relay_reply *reply, struct buffer *message)
{
    struct str result = reply->result;
    const struct jsonrpc_error_data unknown = {.details = call->envelope.uri.text},
                                    denied = {
                                        .gate = str_from(policy_gate_name(POLICY_GATE_GOVERNANCE))};
    struct judgement judgement = {
        .call = call, .verdict = NAME_GATE_HIDDEN, .is_of_skills = has_skills(call)};
    if (judgement.is_of_skills)
        pin_skills(call, result);
    if (mcp_entry_passes(json_member(result, call->method->extension.member), judge, &judgement))
        return false;
    bool is_denied = judgement.verdict == NAME_GATE_DENIED;
    dialect_write_error(call->dialect, message, call->envelope.id,
                        is_denied ? JSONRPC_RULE_DENIED : JSONRPC_RESOURCE_UNKNOWN, STR_EMPTY,
                        is_denied ? &denied : &unknown);
    call->outcome = "error";
    return true;
}

void extension_write_late(struct call *call, struct str result, struct buffer *out)
{
    struct judgement judgement = {.call = call, .is_of_skills = true};
    struct str skill = json_member(result, "skill");
    pin_skills(call, result);
    if (skill.length == 0)
        mcp_entries_filter(out, result, "skills", judge, &judgement);
    else if (mcp_entry_passes(skill, judge, &judgement))
        buffer_append(out, result);
    else
        buffer_append_text(out, "{}"); /* the response has begun as one with a result */
}

/* ---- the call ---- */

static bool is_open(const struct call *call)
{
    const struct mcp_extension *extension = mcp_extension_get(call->method->extension.of);
    return policy_extension(call->snapshot->policy, call->source, str_from(extension->name)) !=
               POLICY_EXTENSION_DENIED &&
           (extension->is_bridged_down || !call->is_bridged_down);
}

static void relay(struct call *call)
{
    struct relay_options options = {.take_message = methods_taker(call),
                                    .forbidden = name_gate_forbids_now,
                                    .rewrite = rewrite};
    if (call->method->extension.answer == MCP_ANSWER_ENTRY)
        options.replace_result = refuse_entry;
    if (name_gate_passes(call))
        client_forward(call, &options);
}

/* A server whose settings are not known is left to answer itself. */
static void relay_if_supported(struct call *call)
{
    bool reads;
    if (source_eras_find_directories(call->worker->gateway->eras, call->source, &reads) && !reads)
        methods_refuse_unknown(call);
    else
        relay(call);
}

static void check_setting(struct call *call)
{
    bool reads, is_modern = call->dialect->era == MCP_ERA_MODERN || call->is_bridged;
    if (is_modern &&
        !source_eras_find_directories(call->worker->gateway->eras, call->source, &reads))
        era_probe_then(call, relay_if_supported);
    else
        relay_if_supported(call);
}

void extension_handle(struct call *call)
{
    const struct mcp_method *method = call->method;
    if (!is_open(call))
        methods_refuse_unknown(call);
    else if (method->extension.parameter == MCP_PARAMETER_URI && !call->envelope.uri.text.bytes)
        call_answer_error(call, JSONRPC_INVALID_PARAMS, STR("params.uri must be a string"), NULL);
    else if (method->extension.setting[0] != '\0')
        check_setting(call);
    else
        relay(call);
}
