/* Mode 0600, the process lock, and the identity of the open files. */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "backend.h"
#include "taskgate/core/memory.h"

#define PRIVATE_MODE 0600

/* ---- opening ---- */

/* The process that holds a flock() on the file, by the kernel's list, whose lines are such as
 * "1: FLOCK  ADVISORY  WRITE 16382 fe:00:9978139 0 EOF"; 0 when it is not known. */
static long find_holder(const struct stat *status)
{
    static const char before_process[] = " WRITE ";
    long holder = 0;
    char line[256], file_id[64];
    FILE *locks = fopen("/proc/locks", "re");
    snprintf(file_id, sizeof file_id, " %02x:%02x:%lu ", major(status->st_dev),
             minor(status->st_dev), (unsigned long)status->st_ino);
    while (locks && holder == 0 && fgets(line, sizeof line, locks)) {
        const char *process = strstr(line, before_process);
        bool is_held = strstr(line, ": FLOCK ") != NULL;
        if (process && is_held && strstr(process, file_id))
            holder = strtol(process + sizeof before_process - 1, NULL, 10);
    }
    if (locks)
        fclose(locks);
    return holder;
}

static bool refuse_second(const struct stat *status, const char *path, struct error *error)
{
    char with_id[48] = "";
    long holder = find_holder(status);
    if (holder > 0)
        snprintf(with_id, sizeof with_id, " with id %ld", holder);
    return error_set(error,
                     "the database %s " BACKEND_IN_USE "%s; stop that one, or "
                     "name another file in store.path",
                     path, with_id);
}

static bool files_prepare(int fd, const char *path, struct error *error)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return error_set(error, "cannot look at the database %s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return error_set(error, "the database %s is not a regular file", path);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK)
            return refuse_second(&status, path, error);
        return error_set(error, "cannot lock the database %s: %s", path, strerror(errno));
    }
    if ((status.st_mode & 0777) != PRIVATE_MODE && fchmod(fd, PRIVATE_MODE) != 0)
        return error_set(error, "cannot make the database %s private: %s", path, strerror(errno));
    return true;
}

int files_open(const char *path, struct error *error)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, PRIVATE_MODE);
    if (fd < 0) {
        error_set(error, "cannot open the database %s: %s; see store.path", path, strerror(errno));
    } else if (!files_prepare(fd, path, error)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* ---- the open files ---- */

static bool is_file(const char *path, dev_t device, ino_t inode)
{
    struct stat status;
    return stat(path, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

static bool names(const char *path, int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && is_file(path, status.st_dev, status.st_ino);
}

bool files_note(struct files_opened *files, int database, const char *path, struct error *error)
{
    struct stat log;
    *files = (struct files_opened){.database = database, .path = realpath(path, NULL)};
    if (!files->path || !names(files->path, database))
        return error_set(error, "the database was replaced while it was opened");
    files->log_path = memory_format("%s-wal", files->path);
    if (stat(files->log_path, &log) != 0)
        return error_set(error, "cannot look at the database's log %s: %s", files->log_path,
                         strerror(errno));
    files->log_device = log.st_dev;
    files->log_inode = log.st_ino;
    return true;
}

void files_finish(struct files_opened *files)
{
    free(files->path);
    free(files->log_path);
    *files = (struct files_opened){.database = -1};
}

bool files_are_in_place(const struct files_opened *files)
{
    return names(files->path, files->database) &&
           is_file(files->log_path, files->log_device, files->log_inode);
}
