/* Files with a secret that the gateway makes for itself. */
#pragma once

#include <stdbool.h>

#include "taskgate/config/config.h"
#include "taskgate/core/state_seal.h"
#include "taskgate/core/str.h"

/* Whether there is no such file, or an empty one, as a start of before that was cut may have left.
 */
bool private_file_is_missing(const char *path);
/* Makes the file, which its owner alone can read. It appears with its whole text or not at all, and
 * is on the disk when this returns. A file that has appeared there meanwhile stays. false with
 * errno. */
bool private_file_make(const char *path, struct str text);

/* ---- the state key ---- */

/* From the environment variable of `state_key.env`, else from the file `state.key` beside the
 * database, which is made (0600) if it is not there. A file of the process's own user that its
 * group may read is set back to 0600; one of another owner is accepted when others have no right to
 * it and its group is one of the process's. */
bool state_key_load(const struct config *config, const char *store_path, struct state_keys *keys,
                    struct error *error);
