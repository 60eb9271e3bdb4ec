/* The audit trail's settings: from a configuration to the store. */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/store/store.h"

/* At the start, and after each reload. */
void audit_settings_apply(struct store *store, const struct config *config);
