/* Words to the service manager that has started the process, by the datagrams of sd_notify(3).
 * Without one ($NOTIFY_SOCKET) nothing is sent. On the first loop's thread, or before there is one.
 */
#pragma once

#include <stdint.h>

#include "taskgate/loop/loop.h"

/* "READY=1", "STOPPING=1" or another assignment; several are separated by line feeds. */
void supervisor_tell(const char *state);

/* Says that the process lives as often as the manager wants it ($WATCHDOG_USEC), from this loop: a
 * loop that hangs says nothing. */
struct supervisor_watchdog {
    uint32_t magic; /* SUPERVISOR_WATCHDOG_MAGIC */
    struct loop_timer timer;
    int64_t every_ms; /* 0: nobody asks */
};
#define SUPERVISOR_WATCHDOG_MAGIC 0x57415401
void supervisor_watchdog_start(struct supervisor_watchdog *watchdog, struct loop *loop);
void supervisor_watchdog_stop(struct supervisor_watchdog *watchdog);
