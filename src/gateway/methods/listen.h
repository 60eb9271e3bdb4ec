/* The open `subscriptions/listen` of a worker, for what the gateway itself has to say there. */
#pragma once

#include "call/worker.h"

/* The lists have changed with the configuration: tells those that asked to hear of tools. */
void listen_tell_of_tools(struct gateway_worker *worker);
/* The task has changed: tells those of its owner's streams that listen to it. */
void listen_note_task(struct gateway_worker *worker, struct task *task);
/* The server of a running task has put or withdrawn a question to its client. */
void listen_note_requests(struct gateway_worker *worker, const struct task *task);
/* The same of a task that runs at another replica, as that tells. */
struct news;
void listen_note_news(struct gateway_worker *worker, const struct news *news);
/* The process ends: each gets its result, and its stream ends. */
void listen_end_all(struct gateway_worker *worker);
