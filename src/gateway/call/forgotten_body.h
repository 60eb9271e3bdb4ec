/*
 * Calls that wait for long: the store has the body of each already, so memory keeps only what its
 * answer needs. On the call's loop.
 */
#pragma once

#include "call.h"

/* Moves the call's message, byte for byte, to memory of its size, and frees what held it. Nothing
 * that was taken of the body or the envelope before may be read. */
void call_own_body(struct call *call);
/* Replaces the call's message by one with its id, method, and of `params` the members name, uri,
 * taskId, task and _meta, and frees the client's bytes. Nothing that was taken of the body or the
 * envelope before may be read. The arguments are known by their digest alone. A call without an
 * exchange is left alone. */
void call_forget_body(struct call *call);
/* The canonical digest of the call's arguments, also of a forgotten body. */
void call_digest_arguments(const struct call *call, char digest[DIGEST_HEX_BYTES]);
