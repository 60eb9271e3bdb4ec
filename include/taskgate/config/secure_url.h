/*
 * Addresses that tokens, secrets and keys are fetched from or sent to. Any thread.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/error.h"
#include "taskgate/core/str.h"

/* Whether a URL may be called: https with a host, or plain http to this machine (localhost,
 * 127.0.0.0/8, [::1]); no user, no fragment, no white space. */
bool secure_url_check(struct str url, struct error *error);
/* Of a URL that passes secure_url_check(): whether it is plain http. */
bool secure_url_is_plain(struct str url);
