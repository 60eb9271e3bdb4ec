/* The tool `slow`: waits, and reports its progress on the caller's token. */
#include "reply.h"
#include "rpc.h"
#include "server.h"
#include "tools.h"

#define LONGEST_SECONDS 3600.0
#define REPORT_EVERY_MS 1000
#define REPORTS_AT_LEAST 4

static void on_tick(h2o_timeout_entry_t *entry);

static void wait_more(struct call *call)
{
    h2o_timeout_link(call->server->context.loop, &call->server->tick, &call->tick);
}

json_t *slow_begin(struct call *call, json_t *arguments)
{
    double seconds = json_number_value(json_object_get(arguments, "seconds"));
    if (!(seconds > 0 && seconds <= LONGEST_SECONDS))
        return tool_text(true, "slow needs \"seconds\", a number above 0 and up to %.0f.",
                         LONGEST_SECONDS);
    if (call->may_stream)
        reply_start_stream(call->reply);
    call->began_at = h2o_now(call->server->context.loop);
    call->lasts = (uint64_t)(seconds * 1000.0 + 0.5);
    call->tick.cb = on_tick;
    wait_more(call);
    return NULL;
}

static void report(struct call *call, uint64_t elapsed)
{
    int percentage = (int)(elapsed * 100 / call->lasts);
    uint64_t step = call->lasts / REPORTS_AT_LEAST;
    call->next_report = elapsed + (step < REPORT_EVERY_MS ? step : REPORT_EVERY_MS);
    /* The protocol wants each report above the one before. */
    if (call->progress_token == NULL || percentage <= call->reported)
        return;
    call->reported = percentage;
    json_t *params = json_pack("{s:O, s:i, s:i, s:s}", "progressToken", call->progress_token,
                               "progress", percentage, "total", 100, "message", "Waiting");
    reply_send(call->reply, rpc_notification("notifications/progress", rpc_need(params)));
}

static void on_tick(h2o_timeout_entry_t *entry)
{
    struct call *call = H2O_STRUCT_FROM_MEMBER(struct call, tick, entry);
    uint64_t elapsed = h2o_now(call->server->context.loop) - call->began_at;
    if (elapsed >= call->lasts) {
        call_finish(call, tool_text(false, "Waited %.3g s.", (double)call->lasts / 1000.0));
        return;
    }
    if (elapsed >= call->next_report)
        report(call, elapsed);
    wait_more(call);
}
