/* What the store and other rooms know of an endpoint. Any thread; pure. */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/digest.h"

/* What identifies the endpoint over restarts and reloads: a digest of what the configuration says
 * of it, secrets included. That of a webhook is of its URL alone. */
void channel_key(const struct config_notify *notify, char key[DIGEST_HEX_BYTES]);
