/* A copy of a whole database in a new file, made while processes use it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "maintenance_internal.h"
#include "taskgate/core/memory.h"

/* The database would create the file with the process's mask. */
static bool create_private(const char *target, struct error *error)
{
    int descriptor = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (descriptor < 0)
        return error_set(error, "%s cannot be written: %s", target, strerror(errno));
    close(descriptor);
    return true;
}

/* With the files that stand beside an open database. */
static void remove_files(const char *target)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        char *path = memory_format("%s%s", target, suffixes[i]);
        unlink(path);
        free(path);
    }
}

bool store_backup(const struct store_site *from, const struct store_site *to, struct error *error)
{
    if (!create_private(to->place, error))
        return false;
    bool done = from->backend->backup ? from->backend->backup(from->place, to->place, error)
                                      : site_copy_moment(from, to, error);
    if (!done)
        remove_files(to->place);
    return done;
}
