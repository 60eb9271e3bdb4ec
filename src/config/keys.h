/*
 * The table of configuration keys: the one place with all keys, the form of their values,
 * their targets and their meaning. The reader, the check for unknown keys and
 * docs/configuration.md are made from it.
 *
 * A key belongs to a mapping, named by its pattern: "" is the whole file, "sources[]" each
 * item of that list, "approval.*" each value of that mapping.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskgate/config/config.h"

enum key_type {
    KEY_TEXT,          /* char * */
    KEY_BOOL,          /* bool */
    KEY_INTEGER,       /* int64_t or int */
    KEY_REAL,          /* only checked */
    KEY_BYTES,         /* int64_t; "4MiB" or a number */
    KEY_DURATION,      /* int64_t, milliseconds */
    KEY_CHOICE,        /* an enum or bool */
    KEY_CHOICES,       /* unsigned, the bits of a list of choices */
    KEY_TEXTS,         /* struct config_strings */
    KEY_TEXT_OR_TEXTS, /* struct config_strings; a single text is a list of one */
    KEY_TEXT_MAP,      /* only checked: names of one's own to texts */
    KEY_QUORUM,        /* only looked at by validate_ballots() */
    KEY_ANY,           /* not looked at */
    KEY_MAPPING,       /* its keys have rows of their own, stored in the same struct */
    KEY_LIST,          /* of mappings: pointer and count */
    KEY_NAMED,         /* a mapping with names as keys: pointer and count, `char *name` first */
};

struct choice {
    const char *name;
    unsigned value;
};

struct choices {
    const char *noun; /* "an action" */
    const struct choice *items;
    size_t count;
};

/* false: `error` has the rule that the text breaks. */
typedef bool (*key_check)(struct str text, struct error *error);

struct key {
    const char *parent; /* pattern of the mapping it belongs to */
    const char *name;
    enum key_type type;
    bool is_required;
    bool has_flag;            /* whether `flag` means something */
    bool is_hidden;           /* the value may hold a secret and is never shown */
    bool needs_restart;       /* a reload does not put it, or what is below it, into force */
    size_t offset;            /* of the value, in the struct of the mapping */
    size_t size;              /* of a single value; 0: it is checked, but not stored */
    size_t flag;              /* of a bool that says the key was there */
    size_t count;             /* of the size_t beside a KEY_LIST or KEY_NAMED pointer */
    size_t item;              /* sizeof one item of these */
    int64_t minimum, maximum; /* of a number, bytes, or milliseconds */
    const struct choices *choices;
    key_check check;          /* for each text */
    const char *rule;         /* id of the reference's rule that a bad value breaks */
    const char *default_text; /* as it would be written; NULL: none */
    const char *help;
};

/* Said of a key with needs_restart, after its help. */
#define CONFIG_NEEDS_RESTART " Only a restart changes it."

extern const struct key config_keys[];
extern const size_t config_key_count;

/* NULL when `pattern` has no such key. */
const struct key *key_find(const char *pattern, const char *name);
/* The pattern of the mapping, or of the items, that `key` holds. The caller frees. */
char *key_pattern(const struct key *key);
/* "text", "list of text", "forward, approve, deny or policy", … The caller frees. */
char *key_type_text(const struct key *key);
