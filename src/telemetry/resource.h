/* The source of the spans: this process, its place, and its operator's words about it. */
#pragma once

#include "taskgate/config/config.h"

struct resource {
    struct config_pair *items; /* owned, as their texts are */
    size_t count;
};

/* The environment is that of the process where `environment` is NULL. */
void resource_init(struct resource *resource, const struct config_telemetry *telemetry,
                   config_getenv environment);
void resource_finish(struct resource *resource);
