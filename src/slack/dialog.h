/* The dialog that asks for a reason or a typed value, and the bodies of calls to Slack. Any thread;
 * pure. */
#pragma once

#include "taskgate/core/buffer.h"
#include "taskgate/slack/press.h"

/* The body of views.open for a pressed button. */
void dialog_write(struct buffer *out, const struct slack_press *press,
                  const struct slack_asked *asked);
/* The body of chat.postEphemeral: a line that the person alone sees. `thread` is the message under
 * which it stands; NULL: in the channel. */
void dialog_write_line(struct buffer *out, const char *channel, const char *user,
                       const char *thread, const char *text);
