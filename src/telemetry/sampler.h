/* The traces that are kept: decided at their head. */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/telemetry/span.h"

void sampler_configure(enum config_sampler sampler, double ratio);
/* `trace_id` is the new span's. */
bool sampler_takes(const unsigned char trace_id[TRACE_ID_BYTES], const struct span_parent *parent);
