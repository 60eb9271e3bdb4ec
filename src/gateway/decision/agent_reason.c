/* Asking the agent for its reason, and taking it out of the call. */
#include "agent_reason.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "taskgate/core/log.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/reason_property.h"

/* Tools that were logged, by a hash of their names: one that another one displaces is logged again.
 */
#define LOGGED_TOOLS 1024

static bool agent_reason_is_logged(const char *source, struct str tool)
{
    static _Atomic uint64_t logged[LOGGED_TOOLS];
    uint64_t hash = str_hash(str_from(source)) * 31 + str_hash(tool);
    return atomic_exchange(&logged[hash % LOGGED_TOOLS], hash) == hash;
}

enum config_agent_reason agent_reason_asked(const struct policy_decision *decision)
{
    const struct config_rule *rule = decision->rule;
    bool holds = rule && (rule->action == ACTION_APPROVE || rule->action == ACTION_POLICY);
    return holds ? rule->agent_reason : AGENT_REASON_OFF;
}

bool agent_reason_write_schema(struct buffer *out, enum config_agent_reason asked,
                               const char *source, const struct mcp_tool *tool)
{
    struct str schema = json_member(tool->raw, "inputSchema");
    if (asked == AGENT_REASON_OFF)
        return false;
    if (reason_property_fits(schema)) {
        reason_property_write(out, schema, asked == AGENT_REASON_REQUIRED);
        return true;
    }
    if (!agent_reason_is_logged(source, tool->name))
        log_warn("A tool's schema cannot have the agent's reason", LOG_TEXT("source", source),
                 LOG_STR("tool", tool->name), LOG_TEXT("property", REASON_PROPERTY));
    return false;
}

/* Whether the tool was listed with the property. A tool that is not known is not known to have a
 * property of its own. */
static bool fits(const struct agent_reason_call *call)
{
    char *schema =
        catalog_copy_input_schema(call->catalog, str_from(call->source), str_from(call->owner),
                                  call->envelope->name.text, call->tool->digest);
    bool fits = !schema || reason_property_fits(str_from(schema));
    free(schema);
    return fits;
}

static void agent_reason_write_body(struct buffer *body, const struct envelope *envelope)
{
    OWNED_BUFFER(arguments);
    json_write_without_member(&arguments, envelope->arguments.raw, REASON_PROPERTY);
    envelope_write_replaced(envelope, envelope->arguments.raw, buffer_str(&arguments), body);
}

enum agent_reason agent_reason_take(const struct agent_reason_call *call, struct buffer *body,
                                    struct buffer *reason, struct error *error)
{
    enum config_agent_reason asked = agent_reason_asked(call->decision);
    if (asked == AGENT_REASON_OFF || !fits(call))
        return AGENT_REASON_NONE;
    enum reason_property read = reason_property_read(call->envelope->arguments.raw, reason);
    if (read == REASON_PROPERTY_GOOD) {
        agent_reason_write_body(body, call->envelope);
        return AGENT_REASON_TAKEN;
    }
    if (read == REASON_PROPERTY_ABSENT && asked == AGENT_REASON_OPTIONAL)
        return AGENT_REASON_NONE;
    error_set(error,
              "arguments." REASON_PROPERTY " must be a text of %d to %d characters that "
              "says why you make this call",
              REASON_PROPERTY_LEAST, REASON_PROPERTY_MOST);
    return AGENT_REASON_REFUSED;
}
