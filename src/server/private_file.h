/* Files with a secret that the gateway makes for itself. */
#pragma once

#include <stdbool.h>

#include "taskgate/core/str.h"

/* Whether there is no such file, or an empty one, as a start of before that was cut may have left.
 */
bool private_file_is_missing(const char *path);
/* Makes the file, which its owner alone can read. It appears with its whole text or not at all, and
 * is on the disk when this returns. A file that has appeared there meanwhile stays. false with
 * errno. */
bool private_file_make(const char *path, struct str text);
