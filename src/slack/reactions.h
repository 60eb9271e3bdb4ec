/*
 * Reactions to a message, as far as they are votes. Any thread; pure. Source: Slack's
 * reactions.get, conversations.history; behaviour 14.4.
 */
#pragma once

#include "taskgate/approval/terms.h"
#include "taskgate/config/config.h"

/* Reads the array `reactions` of a message into texts such as "+U012ABCDEF" (approves) and
 * "-U012ABCDEF" (rejects), of the people of the configuration alone, each once. An emoji counts
 * with any tone of the skin. False when the array does not name all who have reacted; what it names
 * is read. */
bool reactions_read(struct ballot_names *marks, struct str reactions, const struct config *config);

/* As one text with blanks between them, and back. */
void reactions_write(struct buffer *out, const struct ballot_names *marks);
void reactions_read_marks(struct ballot_names *marks, const char *text);
