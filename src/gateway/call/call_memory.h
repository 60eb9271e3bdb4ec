/*
 * Memory for what a call has under way while it waits, in what its request has left over: thousands
 * of calls may wait, and the heap has only what does not fit there. On the call's loop.
 */
#pragma once

#include "call.h"

/* Cleared, and aligned for any object. To be given back, and not to be read any more, by the time
 * when the call's exchange ends: when its parts are dropped, at the latest. */
void *call_memory_take(struct call *call, size_t size);
/* A copy that ends with NUL. */
char *call_memory_copy(struct call *call, struct str text);
/* NULL is allowed. Of a call whose exchange has ended, too. */
void call_memory_give(struct call *call, void *memory);

/* ---- calls that wait for long: the store has the body of each already, so memory keeps only what
 * its answer needs ---- */
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
