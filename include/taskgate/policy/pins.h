/*
 * The definitions that servers give now, and which of them are accepted: one table for the process,
 * behind one lock, so that each decision can ask it. gateway/state/definition_watch.h
 * fills it. A process that never begins has an empty one, by which
 * nothing is changed. Any thread.
 */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"

struct pin_name {
    struct str source;
    enum definition_kind kind;
    struct str name;
};

/* From now on a name is judged as changed until pins_loaded(), unless it was put here. */
void pins_begin(void);
void pins_loaded(void);
/* Forgets all. */
void pins_end(void);

enum pin_sight {
    PIN_SAME,  /* the store has it, or is told of it now */
    PIN_FRESH, /* the store is to be told */
    PIN_FULL,  /* the source has too many names: it counts as changed */
};
/* Not a name that databases do not take; it counts as changed. */
bool pins_can_keep(struct str name);
/* A server gives this now. The first one of a name is accepted. */
enum pin_sight pins_see(const struct pin_name *name, const char *digest, unsigned flags);

/* The name as the store has it. */
struct pin_row {
    const char *digest;
    const char *accepted; /* digests with blanks between them */
    const char *difference;
    unsigned flags;
};
/* `is_answer`: it is the answer to what the store was told of the name. Returns whether it is what
 * the server gives now; an answer that is not has to be told again. */
bool pins_put(const struct pin_name *name, const struct pin_row *row, bool is_answer);

/* Whether the present definition, or the one with this digest ("" or NULL: none), is not accepted.
 */
bool pins_is_changed(const struct pin_name *name, const char *digest);
/* Whether the definition with this digest is accepted, whichever is present. */
bool pins_has_accepted(const struct pin_name *name, const char *digest);
unsigned pins_flags(const struct pin_name *name);
/* Appends the difference of a changed one, if it is known. */
void pins_write_difference(const struct pin_name *name, struct buffer *out);
/* Another number whenever another answer was given above. */
uint64_t pins_version(void);
