/* What the handlers of the methods share. */
#pragma once

#include "conversation/relay.h"
#include "state/skill_files.h"

/* A request that is no message (verb.c). */
void verb_handle(struct call *call);

/* For looks.rewrite of a GET stream that goes on where another ended: what is on it may be
 * the answer to any request, a list among them. */
void lists_rewrite_resumed(struct call *call, const struct relay_reply *reply, struct buffer *out);

/* ---- of modern requests ---- */
/* Whether requestState and inputResponses have the right types. False when the call is answered. */
bool methods_have_good_rounds(struct call *call);

/* Of what needs no look but for what the server asks. */
extern const struct looks looks_at_questions;

/* Answers -32601. */
void methods_refuse_unknown(struct call *call);

/* ---- `expose` and the rules on the name or URI of a call that nothing can wait for (name_gate.c)
 * ---- */

/* Whether `expose` and the rules let the call pass. False: it is answered. */
bool name_gate_passes(struct call *call);
/* For looks.forbidden. */
bool name_gate_forbids_now(struct call *call);

/* A URI that a server's answer names, as if the client had asked to read it. */
enum name_gate_verdict { NAME_GATE_FORWARD, NAME_GATE_HIDDEN, NAME_GATE_DENIED };
enum name_gate_verdict name_gate_judge_uri(const struct call *call, struct str uri);

/* ---- under `pin.skills: approve` the content of a skill's file goes down only if it is that of an
 * accepted skill (skill_contents.c). Source: skills.mdx, "Verification on Read" ---- */

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
