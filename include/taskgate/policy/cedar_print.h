/*
 * Cedar policies back to text, in one layout.
 *
 * The output reads back as policies that decide alike: the same conditions, sets in their
 * written order, calls in their written form. White space, comments, unnecessary parentheses and
 * the spelling of strings are lost. Printing a printed text changes nothing. Callable from any
 * thread; nothing here blocks.
 */
#pragma once

#include "taskgate/policy/cedar.h"

/* All of them, an empty line between two. */
void cedar_policies_print(const struct cedar_policies *policies, struct buffer *out);
/* From the first annotation or the effect to the semicolon and a line end. */
void cedar_policy_print(const struct cedar_policy *policy, struct buffer *out);
