/* A task in words, for people who read it in a chat or on a pager. Any thread; pure. */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"
#include "taskgate/store/store.h"

/* "Approval needed", "Reminder", "Approved" … */
const char *channel_text_word(const struct store_delivery *delivery);
/* Whether people who know of the task already are called again. */
bool channel_text_calls_again(const struct store_delivery *delivery);
/* "Approval needed: delete_user". At most `most` bytes, and whole characters. */
void channel_text_title(struct buffer *out, const struct store_delivery *delivery, size_t most);
/* The title of its first notification. */
void channel_text_subject(struct buffer *out, const struct task *task, size_t most);
/* A line for each fact that is known. Texts are shown as core/visible.h says.
 * Returns whether the whole request is there: arguments, `_meta` and further parameters, as
 * operators see them. */
bool channel_text_facts(struct buffer *out, const struct task *task, const struct config *config,
                        bool with_arguments, size_t most);
