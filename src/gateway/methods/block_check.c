/* Refuses calls of blocked callers. */
#include "block_check.h"

#include "taskgate/core/log.h"
#include "taskgate/gateway/blocks.h"
#include "taskgate/mcp/dialect.h"

static void refuse(struct call *call, struct str reason)
{
    struct buffer shown;
    buffer_init(&shown);
    dialect_append_reason(&shown, reason);
    const struct jsonrpc_error_data data = {.tool = call_tool(call), .reason = buffer_str(&shown)};
    log_info("A call of a blocked caller was refused", LOG_STR("tool", call_tool(call)),
             LOG_TEXT("source", call->source->id));
    if (call->envelope.kind == ENVELOPE_NOTIFICATION)
        call_answer(call, STR_EMPTY);
    else
        call_answer_error(call, JSONRPC_CALLER_BLOCKED, STR_EMPTY, &data);
    buffer_finish(&shown);
}

bool block_check_refused(struct call *call)
{
    const struct store_block_caller caller = {str_from(call->owner), str_from(call->source->id),
                                              str_from(call->facts.client.name)};
    struct buffer reason;
    buffer_init(&reason);
    enum blocks_verdict verdict = blocks_judge(&caller, &reason);
    /* The name of the client is not known, and may be that of a block. */
    if (verdict == BLOCKS_FREE && call->facts_failed)
        verdict = BLOCKS_UNKNOWN;
    if (verdict == BLOCKS_BLOCKED)
        refuse(call, buffer_str(&reason));
    else if (verdict == BLOCKS_UNKNOWN)
        call_answer_error(call, JSONRPC_UNAVAILABLE,
                          STR("it is not known yet whether the caller is blocked"), NULL);
    buffer_finish(&reason);
    return verdict != BLOCKS_FREE;
}
