/*
 * Text of agents, servers and people as it is shown: the one rule of command line, log, messages
 * and statusMessage. A character that has no glyph of its own, or that changes how its
 * neighbours are read, stands as \uXXXX (two of them beyond U+FFFF); a byte that is no UTF-8 as
 * \ufffd. src/admin/page/text.js is the same rule for the page. Any thread; linear.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/buffer.h"

/* Controls, format and bidirectional controls, default ignorable and private characters, spaces
 * other than U+0020, U+2800. */
bool visible_is_hidden(unsigned code_point);
/* Whether there is a character that can be seen. */
bool visible_has_content(struct str text);

/* A text within a line for people. A run of white space with 4 or more line breaks, or of 16 or
 * more characters, is one mark: "[60 line breaks]", "[3,000 blanks]". Letters that are written
 * from right to left are isolated (U+2068, U+2069), so that they move nothing around them. */
void visible_append(struct buffer *out, struct str text);
/* The same between quotes, as JSON escapes it; of a longer text the first `most` characters and
 * "…", 0 for all of it. Escapes tell it from the words of the gateway. */
void visible_append_quoted(struct buffer *out, struct str text, size_t most);
/* A text for programs that may show it: line breaks and tabs stay, nothing else is added. */
void visible_append_lines(struct buffer *out, struct str text);
/* A JSON string of exactly this text, for a terminal or a log. buffer_append_json_string() is for
 * JSON that nobody reads; the hashes of the audit trail depend on its bytes. */
void visible_append_json_string(struct buffer *out, struct str text);

/* The first `most` characters. */
struct str visible_beginning(struct str text, size_t most);

/* These stand around right-to-left letters. Neither takes a column. */
#define VISIBLE_ISOLATE "\xE2\x81\xA8"     /* U+2068 */
#define VISIBLE_ISOLATE_END "\xE2\x81\xA9" /* U+2069 */

/* visible_append_json_string() with the first `most` characters and "…" inside the quotes: a value
 * in a sentence that visible_append() shows later. */
void visible_append_value(struct buffer *out, struct str text, size_t most);

/* Characters of a name or value that is quoted among the gateway's own words. */
#define VISIBLE_QUOTED_MAX 120
