/*
 * A client's open GET stream: where the gateway puts what it has to tell the client unasked,
 * between upstream's own events.
 */
#pragma once

#include "internal.h"

struct stream;

/* Registers the call's exchange, already streaming, with its worker. `inside_event` belongs to
 * the relay: while it is true what is told waits. */
struct stream *stream_open(struct call *call, const bool *inside_event);
void stream_close(struct stream *stream); /* NULL is allowed */
/* Upstream's event is complete: what waited goes out. NULL is allowed. */
void stream_flush(struct stream *stream);

/* Tells the owner's streams on this worker of a task's new state, where the session's
 * `initialize` advertised it: the seed's event, then the JSON-RPC notification. */
void stream_tell_status(struct gateway_worker *worker, struct task *task);
/* What the task's execution asks goes to the session that made it, where its client knows no tasks
 * and so waits in no tasks/result. */
void stream_offer(struct gateway_worker *worker, const struct task *task);
/* What a client is asked in no task goes to its streams here. */
void stream_offer_client(struct gateway_worker *worker, struct str key);
/* Sends a message on the stream of this number, if it is here. */
void stream_send(struct gateway_worker *worker, uint64_t claimant, struct str message);
/* Sends one JSON-RPC message to the owner's streams on this worker. */
void stream_tell_owner(struct gateway_worker *worker, struct task *task, struct str message);
/* notifications/tools/list_changed to every stream of the worker. */
void stream_tell_list_changed(struct gateway_worker *worker, struct task *unused, struct str none);
/* Ends every stream of the worker, and those that are about to be opened. */
void stream_end_all(struct gateway_worker *worker);
