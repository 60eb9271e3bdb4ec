/*
 * Fills the catalogue with every page of every source's tools/list. The gateway uses a session of
 * its own, or the first client's if the server wants a login (behaviour 2.12).
 */
#pragma once

#include "call/call.h"
#include "call/headers.h"
#include "http.h"
#include "state/tool_catalog.h"
#include "taskgate/mcp/lists.h"

/* Starts a fetch for every enabled source whose tools are not known yet. A loop_callback: `worker`
 * is a struct gateway_worker. Tries again later if a server cannot be reached. */
void tools_fetch_missing(void *worker);
/* A client has got a page. Fetches the pages after it with the client's own session, if the
 * source's tools are not known yet. */
void tools_fetch_pages_after(struct call *call, struct str next_cursor);
/* For a call of a tool that its owner was not told of, or that may have changed. Fetches the whole
 * list with the client's own session, then goes on, unless the client has gone meanwhile. The
 * tool's definition decides how it may be run, and what policies see (behaviour 5.6). false:
 * nothing is done, because another call of the owner had the list fetched within five seconds. */
bool tools_fetch_then(struct call *call, call_step next);
bool tools_fetch_is_due(struct call *call);
/* For an approved call of a tool that its owner was not told of since the start, or that may have
 * changed. Fetches the list with the headers of that call. `lacks_session`: they name none, and
 * one is opened for the fetch, and ended. `done` runs once, later, on the worker's loop. */
void tools_fetch_with(struct gateway_worker *worker, struct snapshot *snapshot,
                      const struct config_source *source, struct str owner,
                      const struct headers *headers, bool lacks_session, loop_callback done,
                      void *context);
/* The same for the control plane, with a session of the gateway's own. */
void tools_fetch_for_gateway(struct gateway_worker *worker, struct snapshot *snapshot,
                             const struct config_source *source, loop_callback done, void *context);
/* A server has come back, or the configuration has changed. Fetches what is missing, on the first
 * worker's loop. Any thread. */
void tools_fetch_soon(struct gateway *gateway);
/* A server has said that its tools have changed. Any thread. */
void tools_fetch_changed(struct gateway *gateway, struct str source);
/* Forgets the next try: the process ends. */
void tools_fetch_stop(struct gateway_worker *worker);

/* Reads all pages of the server's tools with the client's own credentials, for the catalogue, too.
 * `see` gets each tool, then `done` whether the server gave a list; neither does once the call has
 * ended. One walk for a call. */
void tools_walk(struct call *call, void (*see)(struct call *call, const struct mcp_tool *tool),
                void (*done)(struct call *call, bool is_list));
