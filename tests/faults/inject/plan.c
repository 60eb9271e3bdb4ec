/* The plan of faults, mapped from the test's file. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inject.h"

static struct fault_plan *plan; /* NULL: nothing fails */

bool fault_is_due(enum fault_kind kind, const char *function)
{
    if (!plan)
        return false;
    atomic_fetch_add(&plan->calls[kind], 1);
    if (atomic_load(&plan->kind) != (int64_t)kind + 1 || atomic_fetch_sub(&plan->countdown, 1) != 1)
        return false;
    strncpy(plan->where, function, sizeof plan->where - 1);
    atomic_fetch_add(&plan->fired, 1);
    return true;
}

/* The real functions: those of this program are the ones that fail. */
int __real_open(const char *path, int flags, ...);

/* Before main(): SQLite takes no hooks once it is in use. */
__attribute__((constructor)) static void map_plan(void)
{
    const char *path = getenv("TASKGATE_FAULTS");
    fault_install_hooks();
    if (!path)
        return;
    int fd = __real_open(path, O_RDWR | O_CLOEXEC);
    if (fd == -1)
        abort();
    void *mapped = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        abort();
    close(fd);
    plan = mapped;
}
