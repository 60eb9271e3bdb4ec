/*
 * The recipients of each event, by the configuration. Any thread; pure. Behaviour 14.2.
 */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/store/store.h"

/* The NOTIFY_… bits that the store is to note for the endpoint: those of its `events`, and what
 * names it. */
unsigned recipients_events(const struct config_notify *notify, const struct config *config);
/* Whether the endpoint is one of those who are told. */
bool recipients_have(const struct config_notify *notify, const struct store_delivery *delivery,
                     const struct config *config);
/* Whether an endpoint that was told of this is told of all that becomes of the task. */
bool recipients_stay(const struct store_delivery *delivery);
