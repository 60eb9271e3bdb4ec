/* Open, look for a signal, and again. */
#include "store_wait.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "supervisor.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/server/store_choice.h"

#define LOOK_MS 200
#define AFTER_WAIT_MS 30000 /* for the rest of a start */

/* Whether a signal has asked the process to end; false after at most `for_ms`. */
static bool is_ended_within(const struct store_wait *wait, int for_ms)
{
    struct pollfd signals = {.fd = wait->signals, .events = POLLIN};
    struct signalfd_siginfo info;
    return poll(&signals, 1, for_ms) > 0 &&
           read(wait->signals, &info, sizeof info) == (ssize_t)sizeof info &&
           info.ssi_signo != SIGHUP;
}

static void say_waiting(const struct store_wait *wait, const struct error *reason)
{
    char state[64];
    log_warn("Waiting for the database", LOG_TEXT("reason", reason->message),
             LOG_NUMBER("at_most_ms", wait->at_most_ms));
    snprintf(state, sizeof state, "EXTEND_TIMEOUT_USEC=%" PRId64,
             (wait->at_most_ms + AFTER_WAIT_MS) * 1000);
    supervisor_tell(state);
}

struct store *store_wait_open(const struct store_wait *wait, const struct config *config,
                              const char *path, const struct store_redaction *redaction,
                              bool *ended, struct error *error)
{
    const char *place = config->store_url ? config->store_url : path;
    int64_t until_ms = clock_monotonic_ms() + wait->at_most_ms;
    bool is_said = false;
    *ended = false;
    for (;;) {
        struct store *store =
            store_open(store_choice_backend(config), place, config->replica.id, redaction, error);
        if (store || !store_is_in_use(error) || clock_monotonic_ms() >= until_ms)
            return store;
        if (!is_said)
            say_waiting(wait, error);
        is_said = true;
        *ended = is_ended_within(wait, LOOK_MS);
        if (*ended)
            return NULL;
    }
}
