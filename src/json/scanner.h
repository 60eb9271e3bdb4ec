/*
 * The one strict reader of JSON bytes: RFC 8259, UTF-8, bounded depth, no key twice.
 *
 * Functions take the place where a value starts and return the place behind it, NULL once
 * the text is unreadable. The scan notes keys that JSON allows and this gateway refuses (duplicate
 * and look-alike keys) and goes on, so that unreadable text is always told as such.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/error.h"
#include "taskgate/core/str.h"

/* Of lists and objects in each other: ENVELOPE_MAX_DEPTH for callers. */
#define SCANNER_MAX_DEPTH 128

/*
 * The keys of the objects that a scan stands in, and the search for two equal ones.
 *
 * One stack for all open objects: an object's keys lie above those of the object around it.
 * Keys point into the scanned text, or, when they had escapes, into memory of the stack.
 */

#define KEYS_INLINE 48

struct key {
    const char *bytes; /* decoded */
    size_t length;
    uint64_t head;  /* load_word() of the key, zero-padded: most unequal keys differ here */
    const char *at; /* the opening quote in the text */
};

struct words {
    uint64_t *items;
    size_t count;
};

struct keys {
    struct key *items; /* `first_items` until they run out */
    size_t count, capacity;
    struct buffer decoded;       /* the last block of them */
    size_t decoded_growth;       /* how many times the text's bytes `decoded` may come to need */
    struct words entries, slots; /* room for large objects; empty until one closes */
    struct key first_items[KEYS_INLINE];
};

/* keys_push() for escaped keys, full stacks and the end of the text. */
const struct key *keys_push_rare(struct keys *keys, struct str raw, bool escaped, const char *end);

/* Eight bytes can be read, however short the key is. */
static inline uint64_t keys_head(struct str key)
{
    uint64_t word = load_word(key.bytes);
    return key.length < 8 ? word & ((UINT64_C(1) << key.length * 8) - 1) : word;
}

/* Pushes the key whose raw text is `raw`; `end` is where the scanned text ends. The result is
 * valid until the next push. */
static inline const struct key *keys_push(struct keys *keys, struct str raw, bool escaped,
                                          const char *end)
{
    if (escaped || keys->count == keys->capacity || end - raw.bytes < 8)
        return keys_push_rare(keys, raw, escaped, end);
    struct key *key = &keys->items[keys->count++];
    key->bytes = raw.bytes;
    key->length = raw.length;
    key->at = raw.bytes - 1;
    key->head = keys_head(raw);
    return key;
}

enum scan_verdict { SCAN_ACCEPTED, SCAN_UNREADABLE, SCAN_REFUSED };

struct scanner {
    const char *begin, *end;
    unsigned depth;
    enum scan_verdict verdict;
    struct error *error; /* may be NULL */
    size_t *place;       /* the place of the wrong byte; NULL: it goes into the message */
    bool refuses_nul;    /* in keys: for a reader in C they would end there */
    bool folds_keys;     /* two that fold alike are as one key twice */
    bool has_escape;     /* set by a string with one */
    struct keys keys;
};

/* Called for each member of an object; scans the value at `at` and returns its end, or NULL.
 * `key` is valid until then: the stack it lies on may move. */
typedef const char *scan_visitor(struct scanner *scanner, const char *at, const struct key *key,
                                 void *context);

void scanner_init(struct scanner *scanner, struct str text, struct error *error);
void scanner_finish(struct scanner *scanner);
/* Refuses keys that fold alike (fold.h) in a text that has been scanned before. */
void scanner_fold_keys(struct scanner *scanner);

/* Scans the whole text: white space, a value, white space. Members of a top-level object go
 * to `visit` (may be NULL). `value` (may be NULL) is the value without the space around it. */
enum scan_verdict scan_document(struct scanner *scanner, scan_visitor *visit, void *context,
                                struct str *value);
/* Its two kinds: `at` is a quote, or not. */
const char *scan_string(struct scanner *scanner, const char *at);
const char *scan_other_value(struct scanner *scanner, const char *at);

static inline const char *scan_value(struct scanner *scanner, const char *at)
{
    bool is_string = at < scanner->end && *at == '"'; /* as most are */
    return is_string ? scan_string(scanner, at) : scan_other_value(scanner, at);
}
/* `at` is an opening brace. */
const char *scan_members(struct scanner *scanner, const char *at, scan_visitor *visit,
                         void *context);
/* Notes what is refused though it is JSON; the first one stays. */
void scan_refuse(struct scanner *scanner, const char *at, const char *what);
