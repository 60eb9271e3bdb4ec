/* The keys of the texts that clients keep for the gateway. */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/state_seal.h"

/* From the environment variable of `state_key.env`, else from the file `state.key` beside the
 * database, which is made (0600) if it is not there. A file of the process's own user that its
 * group may read is set back to 0600; one of another owner is accepted when others have no right to
 * it and its group is one of the process's. */
bool state_key_load(const struct config *config, const char *store_path, struct state_keys *keys,
                    struct error *error);
