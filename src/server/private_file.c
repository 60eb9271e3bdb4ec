/* Under another name first: a start that is cut must not leave half a secret. */
#include "private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/random.h"

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

/* ---- the state key: `state.key` has one or two keys in hex; the first seals, both open ---- */

#define FILE_NAME "state.key"
#define FILE_MOST_BYTES 512
#define HEX_BYTES ((size_t)2 * STATE_KEY_BYTES)

static char *path_beside(const char *store_path)
{
    char *copy = memory_copy_text(store_path);
    char *path = memory_format("%s/%s", dirname(copy), FILE_NAME);
    free(copy);
    return path;
}

static bool make_file(const char *path, struct error *error)
{
    char text[HEX_BYTES + 2];
    random_hex(text, HEX_BYTES);
    text[HEX_BYTES] = '\n';
    bool good = private_file_make(path, str_slice(text, HEX_BYTES + 1));
    int failure = errno;
    explicit_bzero(text, sizeof text);
    return good ||
           error_set(error, "%s: the state key cannot be written: %s", path, strerror(failure));
}

static bool is_in_group(gid_t group)
{
    gid_t groups[NGROUPS_MAX];
    int count = getgroups(NGROUPS_MAX, groups);
    bool is_member = getegid() == group;
    for (int i = 0; i < count && !is_member; i++)
        is_member = groups[i] == group;
    return is_member;
}

/* Others could make states of their own if they could read it. A file of this user that its group
 * may read is what a volume's mount makes of 0600 (fsGroup): nobody but the group could read it
 * meanwhile. One of another owner, such as a Secret's file, is for a group of this process. */
static bool make_private(int fd, const char *path, struct error *error)
{
    struct stat status;
    bool is_file = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    if (is_file && (status.st_mode & 077) == 0)
        return true;
    if (!is_file || (status.st_mode & 07) != 0 ||
        (status.st_uid != geteuid() && !is_in_group(status.st_gid)))
        return error_set(error,
                         "%s: the state key must be a file that its owner alone can read; "
                         "chmod 600 it",
                         path);
    if (status.st_uid != geteuid())
        return true;
    if (fchmod(fd, 0600) != 0)
        return error_set(error, "%s: the state key cannot be made private: %s", path,
                         strerror(errno));
    log_info("The state key was made private again", LOG_TEXT("file", path));
    return true;
}

static bool state_key_read_file(const char *path, struct state_keys *keys, struct error *error)
{
    char text[FILE_MOST_BYTES];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return error_set(error, "%s: the state key cannot be opened: %s", path, strerror(errno));
    bool good = make_private(fd, path, error);
    ssize_t got = good ? read(fd, text, sizeof text) : 0;
    close(fd);
    if (!good)
        return false;
    good = state_keys_read(keys, str_slice(text, got > 0 ? (size_t)got : 0), error);
    explicit_bzero(text, sizeof text);
    return good || error_prefix(error, path);
}

static bool state_key_load_file(const char *path, struct state_keys *keys, struct error *error)
{
    if (private_file_is_missing(path)) {
        if (!make_file(path, error))
            return false;
        log_info("A state key was made", LOG_TEXT("file", path));
    }
    return state_key_read_file(path, keys, error);
}

bool state_key_load(const struct config *config, const char *store_path, struct state_keys *keys,
                    struct error *error)
{
    if (config->state_key_env) {
        const char *value = getenv(config->state_key_env);
        if (!value) /* the name may be a secret that was written in its place */
            return error_set(error, "state_key.env: the variable is not set");
        if (state_keys_read(keys, str_from(value), error))
            return true;
        return error_prefix(error, config->state_key_env) || error_prefix(error, "state_key.env");
    }
    char *path = path_beside(store_path);
    bool good = state_key_load_file(path, keys, error);
    free(path);
    return good;
}
