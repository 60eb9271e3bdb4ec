/*
 * News between the rooms of this process and other replicas: what happens here is told there, and
 * what others tell goes to the clients of this one. On the worker's loop.
 */
#pragma once

#include "replicas/news.h"

/* The configuration was changed here. Tells the others once, whichever worker it is called on. */
void replica_news_send_tools(struct gateway_worker *worker);
/* The server of a call that runs here has put or withdrawn a question. The same. */
void replica_news_send_asks(struct gateway_worker *worker, const struct task *task);
/* gateway->news */
void replica_news_take(struct gateway_worker *worker, const struct news *news);

void replica_news_worker_init(struct gateway_worker *worker);
void replica_news_worker_close(struct gateway_worker *worker);
