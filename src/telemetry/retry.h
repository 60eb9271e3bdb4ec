/* When a batch that the collector has not taken is sent again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Whether another attempt may succeed (OTLP/HTTP, "Retryable Response Codes"). Status 0: there was
 * no response. */
bool retry_is_useful(int status);
/* The pause after so many failures in a row: what the collector asks for (0: nothing), else a time
 * that doubles, with some chance in it. */
int64_t retry_pause_ms(unsigned failures, int64_t asked_ms);
