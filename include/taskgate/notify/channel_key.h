/* An endpoint, as the store and other rooms know it. Any thread; pure. */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/digest.h"

/* The endpoint's identity over restarts and reloads: a digest of its configuration, secrets
 * included. That of a webhook is of its URL alone. */
void channel_key(const struct config_notify *notify, char key[DIGEST_HEX_BYTES]);
