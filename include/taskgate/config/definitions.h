/*
 * The kinds of what a server defines for its clients, and the reasons to flag it: the words of
 * configuration, store, API and metrics. Any thread.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/str.h"

enum definition_kind { DEFINITION_TOOL, DEFINITION_PROMPT, DEFINITION_SKILL, DEFINITION_KINDS };
const char *definition_kind_name(enum definition_kind kind); /* "tool" … */
bool definition_kind_parse(struct str name, enum definition_kind *kind);

/* Names of one source, of all kinds together; those beyond are not kept. */
#define DEFINITIONS_MOST 10000

/* `sources[].pin`: what becomes of a definition that is another one than those accepted. */
enum definition_pin { PIN_WARN, PIN_OFF, PIN_APPROVE };

/* FLAG_ROW(symbol, name, meaning): reasons, in the order of their bits. The store keeps the bits:
 * a new one comes last. */
#define DEFINITION_FLAGS(FLAG_ROW)                                                                 \
    FLAG_ROW(CONTROL, "control", "a control character other than line breaks and tabs")            \
    FLAG_ROW(BIDI, "bidi", "a character that changes the direction of text")                       \
    FLAG_ROW(TAG, "tag", "a tag character (U+E0000 to U+E007F), which is not shown")               \
    FLAG_ROW(ZERO_WIDTH, "zero_width", "a character without width")                                \
    FLAG_ROW(ANSI, "ansi", "an escape sequence of terminals")                                      \
    FLAG_ROW(LOOKALIKE, "lookalike", "another name of the list looks the same")                    \
    FLAG_ROW(DUPLICATE, "duplicate", "the list has the name with another definition")              \
    FLAG_ROW(LONG, "long", "a description above 8 KiB")                                            \
    FLAG_ROW(INSTRUCTIONS, "instructions", "words that instruct a model rather than describe")

enum definition_flag {
#define FLAG_ROW(symbol, name, meaning) FLAG_BIT_##symbol,
    DEFINITION_FLAGS(FLAG_ROW)
#undef FLAG_ROW
        DEFINITION_FLAG_COUNT
};
#define FLAGGED(symbol) (1U << FLAG_BIT_##symbol)
const char *definition_flag_name(enum definition_flag flag);
