/* The times at which people are told again of a task that waits. Each is a row, which goes in the
 * transaction that notes the notice: it is neither lost nor told twice. */
#pragma once

#include "operation.h"

/* Notes the times of a task that was just inserted. */
bool reminders_note_created(struct batch *batch, const struct task *task);
/* Notes what is due for the outbox, up to `limit` of each kind, and plans the next sweep. After the
 * deadlines have been applied. */
bool reminders_send(struct batch *batch, size_t limit);
