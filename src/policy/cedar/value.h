/*
 * The layout of values, and the functions on them for the parts of the engine.
 */
#pragma once

#include <stddef.h>

#include "taskgate/core/str.h"
#include "taskgate/policy/cedar.h"

/*
 * Memory that is taken piece by piece and given back all at once. One thread at a time.
 */

struct arena_block;

struct arena {
    struct arena_block *first, *last;
    char *next;
    size_t left; /* bytes from `next` to the end of the last block */
};

void arena_init(struct arena *arena);
void arena_finish(struct arena *arena);
/* Gives everything back but the first block. */
void arena_reset(struct arena *arena);
/* Not zeroed, aligned for 64-bit integers and pointers; never NULL. */
void *arena_alloc(struct arena *arena, size_t size);
void *arena_alloc_array(struct arena *arena, size_t count, size_t size);
struct str arena_copy(struct arena *arena, struct str s);

/* The bytes of a text that are read in one step of a decision's budget. */
#define BYTES_PER_STEP 64

struct cedar_heap {
    struct arena arena;
};

/* Elements are distinct. `hashes` stands beside `items`; `slots` (index + 1, 0 for free) is
 * there for sets that are too large to be searched one by one. */
struct cedar_set {
    size_t count;
    const struct cedar_value *items;
    const uint64_t *hashes;
    const uint32_t *slots;
    size_t slot_mask;
    uint64_t hash;   /* independent of the order */
    uint32_t weight; /* the cost of reading all elements, see value_weight() */
    unsigned depth;  /* 1 when nothing nests in it */
    bool has_names;  /* an element is a record of names, or has one */
};

/* Members are sorted by the length of the name, then by its bytes. */
struct cedar_record {
    size_t count;
    const struct cedar_member *members;
    uint64_t hash;
    uint32_t weight;
    unsigned depth;
    bool warns_of_variants; /* see cedar_record_of_names() */
    bool has_names;         /* it warns, or a member does or has a record that does */
    const struct folded_name
        *unfolded; /* then: members with names that folding changes, by the fold */
    size_t unfolded_count;
};

struct cedar_ip {
    unsigned char bytes[16]; /* an IPv4 address in the first four */
    unsigned char prefix;
    bool v6;
};

uint64_t value_hash_text(struct str text);
/* The cost of reading all of it: 1 for a short scalar, else 1 plus the cost of its content. */
uint32_t value_weight(const struct cedar_value *value);
/* Whether it is or has a record that warns of variants. */
bool value_has_names(const struct cedar_value *value);
/* Turns one hash into an unrelated one. */
uint64_t value_mix(uint64_t hash);

bool set_contains(const struct cedar_set *set, const struct cedar_value *value);
bool set_is_subset(const struct cedar_set *part, const struct cedar_set *whole);
bool set_overlaps(const struct cedar_set *a, const struct cedar_set *b);
bool set_equal(const struct cedar_set *a, const struct cedar_set *b);
bool record_equal(const struct cedar_record *a, const struct cedar_record *b);

/* The empty record. */
extern const struct cedar_record record_empty;

/* Makes a set or a record of arrays that it takes over: both live in `arena`. False as
 * cedar_set() and cedar_record() are; `twice` (may be NULL) is the name that stands twice. */
bool set_build(struct arena *arena, struct cedar_value *elements, size_t count,
               struct cedar_value *set);
bool record_build(struct arena *arena, struct cedar_member *members, size_t count,
                  struct cedar_value *record, struct str *twice);
/* A copy of the uid and its texts. */
const struct cedar_uid *uid_copy(struct arena *arena, const struct cedar_uid *uid);
