/*
 * Under `pin.skills: approve` the content of a skill's file goes down only if it is that of an
 * accepted skill. Source: skills.mdx, "Verification on Read". On the worker's loop.
 */
#pragma once

#include "conversation/relay.h"
#include "state/skill_files.h"

/* Whether the answer is to be read, by SKILL_CONTENTS_LOOKS. Of resources/read, the request is
 * noted for skill_contents_refuse_late(). `call` has a good `uri`. */
bool skill_contents_are_compared(struct call *call);
/* A file of SKILL_FILE_BYTES in base64, or as a text with as many escapes. */
#define SKILL_CONTENTS_LOOKS                                                                       \
    .replace_result = skill_contents_refuse, .stand_in = skill_contents_refuse_unread,             \
    .most_bytes = (size_t)SKILL_FILE_BYTES * 2
bool skill_contents_refuse(struct call *call, const struct relay_reply *reply,
                           struct buffer *message);
bool skill_contents_refuse_unread(struct call *call, enum lost_reason reason);
/* For looks.replace_result of a GET stream that goes on where another ended: an error in
 * place of contents that may not go down, as of a request that is not known here any more. */
bool skill_contents_refuse_late(struct call *call, const struct relay_reply *reply,
                                struct buffer *message);
