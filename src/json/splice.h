/* Cutting a member out of the text of its object. */
#pragma once

#include "taskgate/core/str.h"

/* The span to cut from `text` (checked JSON) so that `member`, a span inside it from a key's quote
 * to the end of the value, leaves a valid object: it with one joining comma and the white
 * space beside it. */
struct str splice_member(struct str text, struct str member);
