/* OpenTelemetry's variables of the environment, read as its specification has it: an empty one
 * counts as unset, and one that cannot be read is ignored with a warning. Source: OpenTelemetry
 * "Environment Variable Specification" and "OTLP Exporter Configuration", 1.x. */
#pragma once

#include "taskgate/config/telemetry.h"
#include "validate.h"

/* The spellings of one setting: that of traces alone, which wins, and that of all signals. Either
 * may be NULL. */
struct otel_setting {
    const char *of_traces, *of_all;
};

/* The value of the variable, or NULL where it is not set. */
const char *otel_value(const struct draft *draft, const char *name);
/* The first spelling that is set, and its value; NULL where none is. */
const char *otel_setting(const struct draft *draft, struct otel_setting setting, const char **name);
void otel_warn(const struct draft *draft, const char *name, const char *hint, const char *what);

/* Whether the variables switch off what the file has switched on. */
bool otel_is_off(const struct draft *draft);

/* One item of NAME=VALUE,NAME=VALUE with its value percent-decoded (W3C Baggage); false: it cannot
 * be read. The texts are the callee's to copy. */
typedef bool (*otel_pair_fn)(void *context, struct str name, struct str value);
/* Calls `take` with each item. false: one of them could not be read, or was refused; the others
 * were taken. */
bool otel_pairs(struct str list, otel_pair_fn take, void *context);

/* The numbers of the batches. */
void otel_apply_numbers(const struct draft *draft, struct config_telemetry *telemetry);
