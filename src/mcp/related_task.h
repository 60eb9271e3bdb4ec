/* `_meta["io.modelcontextprotocol/related-task"]`: the task of a message. */
#pragma once

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

#define RELATED_TASK "io.modelcontextprotocol/related-task"
