/*
 * The layout of values, and the functions on them for the parts of the engine.
 */
#pragma once

#include "arena.h"
#include "taskgate/policy/cedar.h"

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
uint64_t value_hash(const struct cedar_value *value);
/* The cost of reading all of it: 1 for a short scalar, else 1 plus the cost of its content. */
uint32_t value_weight(const struct cedar_value *value);
/* Whether it is or has a record that warns of variants. */
bool value_has_names(const struct cedar_value *value);
/* 0 for a scalar. */
unsigned value_depth(const struct cedar_value *value);
/* Turns one hash into an unrelated one. */
uint64_t value_mix(uint64_t hash);

/* The place of `value` with this hash among the items, or their count. In a set with slots that
 * lacks it, `free_slot` becomes the slot where it would be entered. */
size_t set_find(const struct cedar_set *set, const struct cedar_value *value, uint64_t hash,
                size_t *free_slot);
bool set_contains_hashed(const struct cedar_set *set, const struct cedar_value *value,
                         uint64_t hash);
bool set_contains(const struct cedar_set *set, const struct cedar_value *value);
bool set_is_subset(const struct cedar_set *part, const struct cedar_set *whole);
bool set_overlaps(const struct cedar_set *a, const struct cedar_set *b);
bool set_equal(const struct cedar_set *a, const struct cedar_set *b);
bool record_equal(const struct cedar_record *a, const struct cedar_record *b);
/* The order of members. Names of different lengths differ; their bytes are not read. */
int record_compare_names(struct str a, struct str b);

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
