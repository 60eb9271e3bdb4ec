/*
 * A client's open GET stream: where the gateway puts what it has to tell the client unasked,
 * between upstream's own events.
 */
#pragma once

#include "request/call.h"

struct notification_stream;

/* Registers the call's exchange, already streaming, with its worker. `inside_event` belongs to
 * the relay: while it is true what is told waits. */
struct notification_stream *notification_stream_open(struct call *call, const bool *inside_event);
void notification_stream_close(struct notification_stream *stream); /* NULL is allowed */
/* Upstream's event is complete: what waited goes out. NULL is allowed. */
void notification_stream_flush(struct notification_stream *stream);

/* Tells the owner's streams on this worker of a task's new state, where the session's
 * `initialize` advertised it: the seed's event, then the JSON-RPC notification. */
void notification_stream_send_status(struct gateway_worker *worker, struct task *task);
/* What the task's execution asks goes to the session that made it, where its client knows no tasks
 * and so waits in no tasks/result. */
void notification_stream_offer(struct gateway_worker *worker, const struct task *task);
/* What a client is asked in no task goes to its streams here. */
void notification_stream_offer_client(struct gateway_worker *worker, struct str key);
/* Sends a message on the stream of this number, if it is here. */
void notification_stream_send(struct gateway_worker *worker, uint64_t claimant, struct str message);
/* Sends one JSON-RPC message to the owner's streams on this worker. */
void notification_stream_send_owner(struct gateway_worker *worker, struct task *task,
                                    struct str message);
/* notifications/tools/list_changed to every stream of the worker. */
void notification_stream_send_list_changed(struct gateway_worker *worker);
/* Ends every stream of the worker, and those that are about to be opened. */
void notification_stream_end_all(struct gateway_worker *worker);
