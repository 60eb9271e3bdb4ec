/* Mode 0600 and the process lock. */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "taskgate/core/memory.h"

#define PRIVATE_MODE 0600

bool files_make_private(const char *path, struct error *error)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, PRIVATE_MODE);
    if (fd < 0)
        return error_set(error, "cannot open the database %s: %s; see store.path", path,
                         strerror(errno));
    struct stat status;
    bool made = false;
    if (fstat(fd, &status) != 0)
        error_set(error, "cannot look at the database %s: %s", path, strerror(errno));
    else if (!S_ISREG(status.st_mode))
        error_set(error, "the database %s is not a regular file", path);
    else if ((status.st_mode & 0777) != PRIVATE_MODE && fchmod(fd, PRIVATE_MODE) != 0)
        error_set(error, "cannot make the database %s private: %s", path, strerror(errno));
    else
        made = true;
    close(fd);
    return made;
}

static void write_process_id(int fd)
{
    char text[32];
    int length = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    /* Only a hint for the next one's message: a full disk must not keep us from starting. */
    if (ftruncate(fd, 0) == 0)
        (void)!pwrite(fd, text, (size_t)length, 0);
}

static void describe_holder(int fd, const char *path, struct error *error)
{
    char text[32] = "";
    ssize_t length = pread(fd, text, sizeof text - 1, 0);
    text[length > 0 ? strcspn(text, "\n") : 0] = '\0';
    error_set(error,
              "the database %s is in use by another taskgate process%s%s; stop that one, or name "
              "another file in store.path",
              path, *text ? " with id " : "", text);
}

int files_lock(const char *path, struct error *error)
{
    /* By the real path, so that a symbolic link is no way around the lock. */
    char *real_path = realpath(path, NULL);
    if (!real_path) {
        error_set(error, "cannot find the database %s: %s", path, strerror(errno));
        return -1;
    }
    char *lock_path = memory_format("%s.lock", real_path);
    free(real_path);
    int fd = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, PRIVATE_MODE);
    if (fd < 0) {
        error_set(error, "cannot open the lock file %s: %s", lock_path, strerror(errno));
    } else if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK)
            describe_holder(fd, path, error);
        else
            error_set(error, "cannot lock %s: %s", lock_path, strerror(errno));
        close(fd);
        fd = -1;
    } else {
        write_process_id(fd);
    }
    free(lock_path);
    return fd;
}
