/* Which kind of database the configuration names. */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/store/store.h"

const struct store_backend *store_choice_backend(const struct config *config);
