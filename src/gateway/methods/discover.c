/* `server/discover`: with it a client of both eras finds out which of them a source serves. */
#include "methods.h"
#include "relay/relay.h"

/* A legacy source. The clients of both eras fall back to `initialize` on this. */
void discover_refuse_handle(struct call *call)
{
    struct buffer text;
    buffer_init(&text);
    jsonrpc_write_error(&text, call->envelope.id, JSONRPC_METHOD_NOT_FOUND, STR_EMPTY, NULL);
    call_answer_status(call, 400, buffer_str(&text));
    buffer_finish(&text);
}

void discover_handle(struct call *call)
{
    const struct relay_options options = {.silence_ms =
                                              call->snapshot->config->times.tools_fetch_timeout_ms};
    relay_start(call, &options);
}
