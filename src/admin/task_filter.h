/*
 * The filter of a list of tasks beyond the store's columns: those with a text that operators see,
 * of a group of equal calls, or that wait for a vote of the person who asks.
 */
#pragma once

#include "taskgate/core/digest.h"

#include "operator.h"
#include "query.h"

/* Bytes of task_filter_digest(), with its NUL. */
#define TASK_FILTER_DIGEST_BYTES DIGEST_HEX_BYTES

/* Puts the filter that the query asks for, if any, into query->filter; the store releases it. */
void task_filter_add(struct task_list_query *query, const struct task_view *view);
/* Whether the task waits for a vote of the operator who looks. Any thread. */
bool task_filter_waits_for(const struct task *task, const struct task_view *view);
/* Equal for calls of one owner of the same tool, definition and request (behaviour 8.7). */
void task_filter_digest(const struct task *task, char digest[TASK_FILTER_DIGEST_BYTES]);

/* Whether `text` has each of `words`, which white space parts, in any case of ASCII letters. */
bool search_finds(const char *text, struct str words);
