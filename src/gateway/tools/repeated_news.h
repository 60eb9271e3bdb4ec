/*
 * News to other replicas of outcomes that nobody got: the same call made again, which may arrive
 * there, gets them (inbox/repeated_calls.h). A courtesy, as all news.
 */
#pragma once

#include "inbox/repeated_calls.h"
#include "replicas/news.h"

/* `for_ms`: as repeated_call_learn(). */
void repeated_news_send(struct gateway_worker *worker, const struct repeated_call *join,
                        int64_t for_ms);
/* Of repeated_call_leave(). */
void repeated_news_send_left(struct gateway_worker *worker, const struct repeated_call *join);
/* The client has got the outcome of its task: the same call is a new one. */
void repeated_news_forget(const struct call *call, const char *id);
/* The same of each task whose result is in these events of inbox_take_events(). */
void repeated_news_forget_told(const struct call *call, struct str events);
/* It is so no more. */
void repeated_news_send_end(struct gateway_worker *worker, const struct repeated_call *join);
void repeated_news_take(struct gateway_worker *worker, const struct news *news);
