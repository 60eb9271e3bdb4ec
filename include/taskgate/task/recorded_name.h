/*
 * Records of decided calls, in the log and the audit trail: the log's messages, and names of tools.
 *
 * An agent may call a tool with a name of a megabyte. Such a record is kept for ever, so it has
 * only the beginning of the name, its length and its digest. Any thread.
 */
#pragma once

#include "taskgate/core/digest.h"
#include "taskgate/core/str.h"

/* The messages of log lines with a decision, which `policy simulate` reads again. */
#define RECORDED_CALLS "Calls decided" /* of a kind, with their number */
#define RECORDED_CALL "Call decided"
#define RECORDED_TASK "Task created" /* the decision is its member of this name */
#define RECORDED_OTHERS "Calls of too many kinds to be told one by one"

/* A name of at most so many bytes is kept whole; every longer text is a name that was cut. */
#define RECORDED_NAME_BYTES_MAX 1024
#define RECORDED_NAME_BYTES (RECORDED_NAME_BYTES_MAX + DIGEST_HEX_BYTES + 64)

/* The name itself, or `PREFIX... (LENGTH bytes, sha256 HEX)` in `out`. */
struct str recorded_name(struct str name, char out[RECORDED_NAME_BYTES]);
