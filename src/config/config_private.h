/*
 * Data beside a configuration that are not part of its content.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "taskgate/config/config.h"
#include "taskgate/config/glob.h"
#include "taskgate/core/buffer.h"

struct config_holder {
    struct config config;
    atomic_size_t references;
    struct glob **client_globs; /* beside config.clients */
    size_t client_glob_count;
    int64_t memory_bytes; /* as memory_limit_of() */
};

/* Zeroed, with one reference. */
struct config *config_create(void);
/* Remembers a file that was read, as `file` has it. */
void config_add_file(struct config *config, const char *path, const struct config_file *file);
/* The same of a load that fails. */
void config_add_failed_file(struct config_problems *problems, const char *path,
                            const struct config_file *file);
/* `bytes` as memory_limit_of(). */
void config_set_memory_limit(struct config *config, int64_t bytes);
int64_t config_memory_limit(const struct config *config);
/* Compiles the data for lookups; called once, after validation. */
void config_compile(struct config *config);

void config_strings_add(struct config_strings *strings, struct str text);
/* Any may be a secret. */
void config_forget_texts(struct config_strings *texts);
/* Frees what read_document() has stored in the mapping `target` of this pattern, and in those below
 * it. */
void read_forget(const char *pattern, void *target);

/*
 * Reading a whole file, and knowing later whether it is still the same.
 */

/* Appends the file's content to `text` and fills `file` (but for its path) with the
 * facts of the version that was read. False with errno. */
bool file_read(const char *path, struct buffer *text, struct config_file *file);
