/*
 * Markdown for the generated parts of the documents.
 */
#pragma once

#include "taskgate/core/buffer.h"

/* Appends `text` as an item of a list, "- …", in lines of at most 120 columns. A line breaks at
 * a blank; a longer word keeps its length. */
void markdown_append_item(struct buffer *out, struct str text);
