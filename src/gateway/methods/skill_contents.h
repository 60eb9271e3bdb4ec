/*
 * Under `pin.skills: approve` the content of a skill's file goes down only if it is that of an
 * accepted skill. Source: skills.mdx, "Verification on Read". On the worker's loop.
 */
#pragma once

#include "conversation/relay.h"

/* Lets the answer of resources/read be read where that is due. `call` has a good `uri`. */
void skill_contents_check(struct call *call, struct relay_options *options);
/* For relay_options.replace_result of a GET stream that goes on where another ended: an error in
 * place of contents that may not go down, as of a request that is not known here any more. */
bool skill_contents_refuse_late(struct call *call, const struct relay_reply *reply,
                                struct buffer *message);
