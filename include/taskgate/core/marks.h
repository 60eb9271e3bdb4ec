/*
 * Marks of a text that reads as another one than it is: characters that reorder it or cannot be
 * seen, and words in letters of two scripts that look alike. Any thread; linear. Behaviour 10.4.
 */
#pragma once

#include "taskgate/core/str.h"

enum mark {
    MARK_BIDI,         /* a bidirectional control */
    MARK_INVISIBLE,    /* default ignorable, or a space other than U+0020 */
    MARK_CONTROL,      /* but tab, CR and LF */
    MARK_MIXED_SCRIPT, /* a run of letters with Latin and Cyrillic, Greek, Armenian or Cherokee */
    MARK_COUNT
};

/* The marks of a text, each as the bit 1U << mark. */
unsigned marks_of(struct str text);

/* "mixed_script". */
const char *mark_name(enum mark mark);
/* The mark of a name; MARK_COUNT for another name. */
enum mark mark_of_name(struct str name);
/* The mark for people: "letters of alphabets that look alike". */
const char *mark_words(enum mark mark);
