/*
 * The memory that this process may use, and the limits of a configuration that fit into it.
 * Callable from any thread; memory_limit_read() reads files and belongs on no loop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/config/config.h"

/* Of the memory limit, for what `limits` lets clients and servers make the process hold. The rest
 * is the program's: its own size, the store, buffers of the kernel. */
#define MEMORY_LIMIT_PERCENT 70

/* The keys of `limits` that bound memory. */
enum memory_limit_key {
    MEMORY_LIMIT_BODIES, /* bodies_bytes */
    MEMORY_LIMIT_RESULT, /* result_bytes */
    MEMORY_LIMIT_CONNECTIONS,
    MEMORY_LIMIT_BODY, /* body_bytes: one request must fit into bodies_bytes */
    MEMORY_LIMIT_KEY_COUNT
};

/* The smallest memory limit along the path of this process's control group, in bytes, versions 1
 * and 2; 0: there is none. `root` is put before the system's paths: "" but in tests. */
int64_t memory_limit_read(const char *root);

/* The limit that the process had when `config` was loaded, in bytes; 0: none, or the text of
 * config_parse(). */
int64_t memory_limit_of(const struct config *config);

/* MEMORY_LIMIT_PERCENT of it, in whole KiB. */
int64_t memory_limit_share(int64_t bytes);

/* The most that the limits of `config` let the process hold, in bytes. */
int64_t memory_limit_worst(const struct config *config);

/* Shrinks, of the first three keys, those that are not in `written` (bits of enum memory_limit_key)
 * until the worst case is within the share of `bytes` (0: no limit, nothing is done). One request
 * of the largest size always fits. False where they cannot shrink so far: they are at their
 * least then. */
bool memory_limit_fit(struct config *config, int64_t bytes, unsigned written);
/* The key in `written` that needs most memory, MEMORY_LIMIT_KEY_COUNT where it is empty. */
enum memory_limit_key memory_limit_costliest(const struct config *config, unsigned written);

#define MEMORY_LIMIT_TEXT_BYTES 32
/* As a configuration file may have it: "256MiB", "640KiB", "1000". */
void memory_limit_format(int64_t bytes, char text[static MEMORY_LIMIT_TEXT_BYTES]);
