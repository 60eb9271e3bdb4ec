/*
 * Pins what servers define: tells the table of pins (policy/pins.h) of each list that is new, and
 * the store of what is new in it. Its answers, and changes there by other replicas or people, go
 * into the table. Any thread.
 */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"
#include "taskgate/store/store.h"

struct definition_watch;

/* `store` outlives it. One in the process: it begins and ends the table. */
struct definition_watch *definition_watch_create(struct store *store);
void definition_watch_destroy(struct definition_watch *watch); /* NULL is allowed */

/* The files of the skills that it has seen. */
struct skill_files *definition_watch_skill_files(const struct definition_watch *watch);

/* Of this source, not all could be told to the store: its tools are to be given again. */
typedef void (*definition_watch_again)(void *context, struct str source);
/* Before the loops run and the listeners open. Runs `loop` until what the store has was read,
 * could not be, or takes too long; answers come there from then on. */
void definition_watch_start(struct definition_watch *watch, struct loop *loop,
                            definition_watch_again again, void *context);
/* Tries again what has failed. On that loop, now and then. */
void definition_watch_retry(struct definition_watch *watch);

struct definition_item {
    struct str name;
    const char *digest;
    unsigned flags; /* those that one definition alone can have */
    const void *of; /* for write_text */
};
/* A list, or a part of one, in its order; all is borrowed. */
struct definition_items {
    const struct config_source *source;
    enum definition_kind kind;
    bool is_whole;
    const struct definition_item *items;
    size_t count;
    /* Appends the text of a definition, for those that the store is to have. */
    void (*write_text)(const struct definition_item *item, struct buffer *out);
};
/* Does nothing where the source's `pin` is off. `watch` may be NULL: the table alone is told. */
void definition_watch_see(struct definition_watch *watch, const struct definition_items *items);

/* The same for the entries of a list as the server has sent it: a JSON array of prompts, or of
 * skills, which go by their `uri`. An array that is the source's last one of the kind costs its
 * hash alone. */
void definition_watch_see_entries(struct definition_watch *watch,
                                  const struct config_source *source, enum definition_kind kind,
                                  struct str entries, bool is_whole);
