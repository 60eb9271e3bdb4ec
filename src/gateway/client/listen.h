/*
 * A modern client's `subscriptions/listen` (MCP 2026-07-28, patterns/subscriptions): a stream of
 * notifications. A modern server's stream passes, one to one; at a legacy server a listener feeds
 * it. The gateway leaves out news of resources that the client may not see, and adds its own:
 * changes of its tasks, and of the tools after a reload. If the server knows no such stream, or is
 * asked for nothing, the gateway serves its own part by itself. On the call's loop.
 */
#pragma once

#include "call/call.h"
#include "taskgate/mcp/subscription.h"

/* ---- what the gateway itself has to say, on the streams of one worker ---- */

/* The lists have changed with the configuration: notifies those that asked for tools. */
void listens_send_list_changed(struct gateway_worker *worker);
/* The task has changed: notifies those of its owner's streams that listen to it. */
void listens_note_task(struct gateway_worker *worker, struct task *task);
/* The server of a running task has put or withdrawn a question to its client. */
void listens_note_requests(struct gateway_worker *worker, const struct task *task);
/* The same of a task that runs at another replica, by its news. */
struct news;
void listens_note_news(struct gateway_worker *worker, const struct news *news);
/* The process ends: each gets its result, and its stream ends. */
void listens_end_all(struct gateway_worker *worker);
