/* sd_notify(3) without its library: one datagram for each word. */
#include "supervisor.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "taskgate/core/magic.h"
#include "taskgate/core/str.h"

void supervisor_tell(const char *state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    size_t length = path ? strlen(path) : 0;
    if (length < 2 || length >= sizeof address.sun_path || !strchr("/@", path[0]))
        return;
    memcpy(address.sun_path, path, length);
    if (path[0] == '@') /* an abstract name */
        address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    /* A manager that does not listen is none of the gateway's worries. */
    ssize_t sent = sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (void *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
    (void)sent;
    close(fd);
}

static void supervisor_on_time(void *context)
{
    struct supervisor_watchdog *watchdog =
        MAGIC_CAST(struct supervisor_watchdog, SUPERVISOR_WATCHDOG_MAGIC, context);
    supervisor_tell("WATCHDOG=1");
    loop_timer_start(&watchdog->timer, watchdog->every_ms);
}

/* The variable may have been meant for another process. */
static int64_t asked_ms(void)
{
    const char *text = getenv("WATCHDOG_USEC"), *process = getenv("WATCHDOG_PID");
    uint64_t most_us, id;
    bool is_ours = !process || (str_to_u64(str_from(process), &id) && id == (uint64_t)getpid());
    if (!is_ours || !text || !str_to_u64(str_from(text), &most_us))
        return 0;
    return (int64_t)(most_us / 1000 / 2);
}

void supervisor_watchdog_start(struct supervisor_watchdog *watchdog, struct loop *loop)
{
    MAGIC_SET(watchdog, SUPERVISOR_WATCHDOG_MAGIC);
    watchdog->every_ms = asked_ms();
    loop_timer_init(&watchdog->timer, loop, supervisor_on_time, watchdog);
    if (watchdog->every_ms > 0)
        supervisor_on_time(watchdog);
}

void supervisor_watchdog_stop(struct supervisor_watchdog *watchdog)
{
    loop_timer_stop(&watchdog->timer);
    MAGIC_CLEAR(watchdog);
}
