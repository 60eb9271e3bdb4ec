/* Deciding by the session's id, and by what the server speaks. */
#include "bridge_check.h"

#include "mcp_client/era_probe.h"
#include "state/source_eras.h"
#include "taskgate/core/random.h"

/* A session keeps its kind, whatever its server becomes meanwhile. */
#define SESSION_PREFIX "tg-bridge-"

void bridge_check_write_session(struct buffer *id)
{
    char uuid[RANDOM_UUID_BYTES];
    random_uuid(uuid);
    buffer_append_format(id, SESSION_PREFIX "%s", uuid);
}

void bridge_check(struct call *call)
{
    if (!(call->source->bridge & BRIDGE_LEGACY))
        return;
    struct str session = http_header_known(call->exchange, HTTP_NAME_MCP_SESSION_ID);
    call->is_bridged = str_starts_with(session, STR(SESSION_PREFIX)) ||
                       source_eras_is_modern_alone(call->worker->gateway->eras, call->source);
}

/* The server has refused `initialize`. If it speaks the modern era, it speaks that alone. */
static void check_asked(struct call *call, call_step next)
{
    struct source_eras *eras = call->worker->gateway->eras;
    int64_t now_ms = loop_now_ms(call->worker->loop);
    unsigned served;
    source_eras_find(eras, call->source, now_ms, &served);
    if (served & CONFIG_ERA_MODERN)
        source_eras_note(eras, call->source, CONFIG_ERA_LEGACY, false, now_ms);
    bridge_check(call);
    next(call);
}

bool bridge_check_refused(struct call *call, call_step next)
{
    if (!(call->source->bridge & BRIDGE_LEGACY) || call->source->eras != CONFIG_ERA_AUTO)
        return false;
    era_probe_then(call, check_asked, next);
    return true;
}
