/*
 * The one strict reader of JSON bytes: RFC 8259, UTF-8, bounded depth, no key twice.
 *
 * Functions take the place where a value starts and return the place behind it, NULL once
 * the text is unreadable. The scan notes keys that JSON allows and this gateway refuses (duplicate
 * and look-alike keys) and goes on, so that unreadable text is always told as such.
 */
#pragma once

#include <stddef.h>

#include "keys.h"
#include "taskgate/core/error.h"
#include "taskgate/core/str.h"

enum scan_verdict { SCAN_ACCEPTED, SCAN_UNREADABLE, SCAN_REFUSED };

struct scanner {
    const char *begin, *end;
    unsigned depth;
    enum scan_verdict verdict;
    struct error *error; /* may be NULL */
    size_t *place;       /* the place of the wrong byte; NULL: it goes into the message */
    bool refuses_nul;    /* in keys: for a reader in C they would end there */
    bool folds_keys;     /* two that fold alike are as one key twice */
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
const char *scan_value(struct scanner *scanner, const char *at);
/* `at` is an opening brace. */
const char *scan_members(struct scanner *scanner, const char *at, scan_visitor *visit,
                         void *context);
/* Notes what is refused though it is JSON; the first one stays. */
void scan_refuse(struct scanner *scanner, const char *at, const char *what);
