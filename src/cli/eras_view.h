/* A tool as clients of either era of the protocol see it, for `explain`. A table says it
 * of each action; how a client is known to be one without tasks is in docs/clients.md. */
#pragma once

#include "taskgate/core/buffer.h"
#include "taskgate/gateway/snapshot.h"

/* The rows "Legacy" and "Modern", whole lines, on the tool of `decision`, which is that of the
 * rules. A tool that no client sees has none. */
void eras_view_write_text(struct buffer *out, const struct snapshot *snapshot,
                          const struct config_source *source, struct str tool,
                          const struct policy_decision *decision);
/* `,"eras":{"legacy":{…},"modern":{…}}`; null for a tool that no client sees. */
void eras_view_write_json(struct buffer *out, const struct snapshot *snapshot,
                          const struct config_source *source, struct str tool,
                          const struct policy_decision *decision);
