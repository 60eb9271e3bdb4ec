/*
 * JSON text as it is shown (core/visible.h). Each string is decoded first, so that no escape of its
 * writer hides what it stands for. Expects checked text. Any thread.
 */
#pragma once

#include "taskgate/core/visible.h"

/* The same value: for programs, at a terminal. */
void visible_append_json(struct buffer *out, struct str json);
/* For people: white space and right-to-left letters as in visible_append(). */
void visible_append_json_for_people(struct buffer *out, struct str json);
