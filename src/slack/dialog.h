/* The dialog that asks for a reason, and the bodies of calls to Slack. Any thread; pure. */
#pragma once

#include "taskgate/core/buffer.h"
#include "taskgate/slack/press.h"

#define DIALOG_CALLBACK "taskgate_reason"
/* Of the input, and of its block. */
#define DIALOG_REASON "reason"

/* The body of views.open for a pressed button. */
void dialog_write(struct buffer *out, const struct slack_press *press);
/* The body of chat.postEphemeral: a line that the person alone sees. */
void dialog_write_line(struct buffer *out, const struct slack_press *press, const char *text);
