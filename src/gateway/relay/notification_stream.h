/*
 * A client's open GET stream. The gateway puts its own messages to the client between the server's
 * events.
 */
#pragma once

#include "call/call.h"
#include "taskgate/mcp/dialect.h"

struct notification_stream;

/* Registers the call's exchange, which streams already, with its worker. `inside_event` is the
 * relay's. Messages wait while it is true. */
struct notification_stream *notification_stream_open(struct call *call, const bool *inside_event);
void notification_stream_close(struct notification_stream *stream); /* NULL is allowed */
/* The server's event is complete, so the waiting messages go out. NULL is allowed. */
void notification_stream_flush(struct notification_stream *stream);

/* Sends a task's new state to the owner's streams on this worker, if the session's `initialize`
 * advertised that: the seed's event, then the JSON-RPC notification. */
void notification_stream_send_status(struct gateway_worker *worker, struct task *task);
/* The same of a task that runs elsewhere, with what is asked there. */
void notification_stream_send_view(struct gateway_worker *worker, struct task *task,
                                   const struct dialect_view *view);
/* Sends the questions of a task's execution to the session that made the task. Its client knows no
 * tasks, so it waits in no tasks/result. */
void notification_stream_offer(struct gateway_worker *worker, const struct task *task);
/* Sends the questions to a client that belong to no task to its streams on this worker. */
void notification_stream_offer_client(struct gateway_worker *worker, struct str key);
/* Sends a message on the stream with this number. false: this worker does not have it. */
void notification_stream_send(struct gateway_worker *worker, uint64_t claimant, struct str message);
/* Sends one JSON-RPC message to the owner's streams on this worker. */
void notification_stream_send_owner(struct gateway_worker *worker, struct task *task,
                                    struct str message);
/* Sends notifications/tools/list_changed to every stream of the worker. */
void notification_stream_send_list_changed(struct gateway_worker *worker);
/* Ends every stream of the worker, and answers the GET requests whose stream is not open yet. */
void notification_stream_end_all(struct gateway_worker *worker);
