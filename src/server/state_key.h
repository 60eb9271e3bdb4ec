/* The keys of the texts that clients keep for the gateway. */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/state_seal.h"

/* From the environment variable of `state_key.env`, else from the file `state.key` beside the
 * database, which is made (0600) if it is not there. */
bool state_key_load(const struct config *config, const char *store_path, struct state_keys *keys,
                    struct error *error);
