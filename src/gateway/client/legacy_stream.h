/*
 * A legacy client's GET stream: what the server says outside of calls, and the gateway's own
 * messages between it. A legacy server's stream passes byte for byte (conversation/relay.h). In
 * front of a modern server a listener feeds the stream: one that breaks off is begun anew, after
 * pauses that grow, and then the client is notified once that all lists may have changed. On the
 * call's loop.
 */
#pragma once

#include "call/call.h"
#include "taskgate/mcp/dialect.h"

/* For looks.opened: the server's own stream passes. */
void client_stream_opened(struct call *call);

/* ---- of the sessions that the gateway gives out in front of modern servers ---- */

/* Answers the GET with a stream that a listener feeds. call->declared is set. */
void legacy_stream_open(struct call *call);
/* Takes resources/subscribe and resources/unsubscribe in such a session, which the rules have let
 * pass: its URIs are a part of what the session's streams listen to. Answers once the server has
 * said that it serves the URI. false: the call is no such request. */
bool client_stream_takes(struct call *call);
/* The session has ended, and its streams with it. */
void legacy_stream_end_session(const struct call *call);

/* ---- what the gateway itself has to say, on the streams of one worker ---- */

/* Sends a task's new state to the owner's streams, if the session's `initialize` advertised that:
 * the older event, then the JSON-RPC notification. */
void client_streams_send_status(struct gateway_worker *worker, struct task *task);
/* The same of a task that runs elsewhere, with what is asked there. */
void client_streams_send_view(struct gateway_worker *worker, struct task *task,
                              const struct dialect_view *view);
/* Sends the questions of a task's execution to the session that made the task. Its client knows no
 * tasks, so it waits in no tasks/result. */
void client_streams_offer(struct gateway_worker *worker, const struct task *task);
/* Sends the questions to a client that belong to no task. */
void client_streams_offer_client(struct gateway_worker *worker, struct str key);
/* Sends a message on the stream with this number, if the worker has it. */
void client_streams_send(struct gateway_worker *worker, uint64_t claimant, struct str message);
/* Sends one JSON-RPC message to the owner's streams. */
void client_streams_send_owner(struct gateway_worker *worker, struct task *task,
                               struct str message);
/* Sends notifications/tools/list_changed to every stream. */
void client_streams_send_list_changed(struct gateway_worker *worker);
/* Ends every stream: the process ends. */
void client_streams_end_all(struct gateway_worker *worker);
