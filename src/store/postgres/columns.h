/* Expressions that several statements have. */
#pragma once

#define CLOCK_MS "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
/* Whether a grant is in force. */
#define GRANT_ANY "EXISTS (SELECT 1 FROM taskgate_grant WHERE ended_ms = 0)"
