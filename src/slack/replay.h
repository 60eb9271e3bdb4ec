/* Signatures of presses that were taken, so that a copy of a request counts once. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/str.h"

struct replay;

struct replay *replay_create(void);
void replay_destroy(struct replay *replay); /* NULL is allowed */
/* Whether the signature is new; then it is remembered for `keep_ms`. Times are monotonic. */
bool replay_note(struct replay *replay, struct str signature, int64_t now_ms, int64_t keep_ms);
