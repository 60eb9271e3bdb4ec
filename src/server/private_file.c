/* Under another name first: a start that is cut must not leave half a secret. */
#include "private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "taskgate/core/memory.h"

bool private_file_is_missing(const char *path)
{
    struct stat status;
    if (lstat(path, &status) != 0)
        return errno == ENOENT;
    return S_ISREG(status.st_mode) && status.st_size == 0;
}

static bool write_whole(const char *path, struct str text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool good =
        fd >= 0 && write(fd, text.bytes, text.length) == (ssize_t)text.length && fsync(fd) == 0;
    int failure = errno;
    if (fd >= 0)
        close(fd);
    errno = failure;
    return good;
}

static bool put_in_place(const char *from, const char *path)
{
    struct stat status;
    bool is_empty = lstat(path, &status) == 0 && private_file_is_missing(path);
    if (is_empty)
        return rename(from, path) == 0;
    if (renameat2(AT_FDCWD, from, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return true;
    if (errno == EEXIST)
        return unlink(from) == 0;
    return errno == EINVAL && rename(from, path) == 0; /* the file system cannot tell */
}

/* The name is on the disk, too. */
static bool sync_folder(const char *path)
{
    char *copy = memory_copy_text(path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL);
    if (fd >= 0)
        close(fd);
    free(copy);
    return good;
}

bool private_file_make(const char *path, struct str text)
{
    char *aside = memory_format("%s.%ld", path, (long)getpid());
    unlink(aside); /* of a process with this number that was cut */
    bool good = write_whole(aside, text) && put_in_place(aside, path);
    int failure = errno;
    if (!good)
        unlink(aside);
    free(aside);
    errno = failure;
    return good && sync_folder(path);
}
