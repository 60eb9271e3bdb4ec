/* `server/discover`: with it a client of both eras finds out which of them a source serves. */
#include "call/extensions.h"
#include "list_cache.h"
#include "methods.h"
#include "server/probe.h"
#include "server/protocol.h"
#include "state/source_eras.h"
#include "taskgate/core/owned.h"
#include "taskgate/mcp/cacheable.h"

/* A legacy source: the clients of both eras fall back to `initialize` on this. Or a modern one, and
 * a request that is not. */
void discover_refuse_handle(struct call *call)
{
    bool is_incomplete = source_eras_serves_modern(call->worker->gateway->eras, call->source,
                                                   loop_now_ms(call->worker->loop));
    OWNED_BUFFER(text);
    jsonrpc_write_error(&text, call->envelope.id,
                        is_incomplete ? JSONRPC_INCOMPLETE_ENVELOPE : JSONRPC_METHOD_NOT_FOUND,
                        STR_EMPTY, NULL);
    call_answer_status(call, 400, buffer_str(&text));
}

/* A rule may make a task of any call, so the extension is offered whatever the server has. */
static void discover_write(struct call *call, struct str result, int64_t most_ms,
                           struct buffer *out)
{
    size_t start = out->length;
    OWNED_BUFFER(shown);
    extensions_write_shown(call, result, &shown);
    mcp_discover_write(out, buffer_str(&shown), true, most_ms);
    mcp_cacheable_drop_tags(out, start, result);
}

static void discover_rewrite(struct call *call, const struct relay_reply *reply, struct buffer *out)
{
    era_probe_note_result(call->worker->gateway, call->source, reply->result);
    lists_keep(call, NULL, reply->result);
    discover_write(call, reply->result, lists_most_ttl_ms(call), out);
}

static bool discover_answer_kept(struct call *call, enum lost_reason reason)
{
    return lists_answer_kept(call, reason, discover_write);
}

/* In the place of a server that has no such method. */
static void discover_answer_described(struct call *call)
{
    OWNED_BUFFER(described);
    OWNED_BUFFER(shown);
    server_legacy.describe(call, &described);
    extensions_write_shown(call, buffer_str(&described), &shown);
    call_answer_result(call, buffer_str(&shown));
}

void discover_handle(struct call *call)
{
    static const struct looks looks = {.rewrite = discover_rewrite,
                                       .stand_in = discover_answer_kept};
    call_identify(call);
    if (call_leases_session(call))
        server_legacy.obtain(call, discover_answer_described);
    else
        lists_fetch(call, &looks);
}
