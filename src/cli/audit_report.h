/* taskgate audit report: how people decide, tool by tool. */
#pragma once

#include <stdbool.h>

#include "audit_source.h"

/* Returns an exit code. */
int audit_report(struct audit_source *source, int64_t since_ms, bool json);
