/* The store's folder and the generated token. */
#include "store_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "private_file.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/random.h"

#define FALLBACK_PATH "./taskgate.db"
#define TOKEN_FILE "admin-token"
#define TOKEN_MAX_BYTES 512

/* The folder part of a path; the caller frees. */
static char *folder_of(const char *path)
{
    char *copy = memory_copy_text(path);
    char *folder = memory_copy_text(dirname(copy));
    free(copy);
    return folder;
}

char *store_folder_path(const struct config *config)
{
    char *folder = folder_of(config->store_path);
    bool use_fallback = false;
    if (access(folder, W_OK) != 0 && config->store_path_is_default) {
        /* Makes the service's own folder if the process may. */
        use_fallback = mkdir(folder, 0700) != 0;
    }
    if (use_fallback && !config->store_url)
        log_warn("The store's default folder is not writable, the store is in the present one",
                 LOG_TEXT("folder", folder), LOG_TEXT("store", FALLBACK_PATH));
    free(folder);
    return memory_copy_text(use_fallback ? FALLBACK_PATH : config->store_path);
}

bool store_folder_check(const char *store_path, struct error *error)
{
    char *folder = folder_of(store_path);
    struct stat status;
    bool good = true;
    if (stat(folder, &status) == 0 && !S_ISDIR(status.st_mode))
        good = error_set(error, "%s is not a folder; name another file in store.path", folder);
    else if (access(folder, W_OK | X_OK) != 0)
        good = error_set(error,
                         "the store's folder %s cannot be used: %s; create it, writable for the "
                         "user that runs taskgate, or name another file in store.path",
                         folder, strerror(errno));
    free(folder);
    return good;
}

static bool read_token(int fd, char token[TOKEN_MAX_BYTES], size_t *length)
{
    ssize_t got = read(fd, token, TOKEN_MAX_BYTES - 1);
    if (got <= 0)
        return false;
    struct str trimmed = str_trim(str_slice(token, (size_t)got));
    memmove(token, trimmed.bytes, trimmed.length);
    *length = trimmed.length;
    return trimmed.length > 0;
}

/* 256 random bits in hex. */
static bool make_token(const char *path)
{
    unsigned char bytes[32];
    char text[2 * sizeof bytes + 2];
    random_bytes(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    text[2 * sizeof bytes] = '\n';
    bool made = private_file_make(path, str_slice(text, 2 * sizeof bytes + 1));
    explicit_bzero(text, sizeof text);
    return made;
}

static bool generated_token(const char *path, char sha256[65], struct error *error)
{
    char token[TOKEN_MAX_BYTES];
    size_t length = 0;
    bool is_new = private_file_is_missing(path);
    if (is_new && !make_token(path))
        return error_set(error, "%s: the admin token cannot be written: %s", path, strerror(errno));
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return error_set(error, "%s: cannot be opened for the generated admin token: %s", path,
                         strerror(errno));
    bool good = read_token(fd, token, &length);
    close(fd);
    if (!good)
        return error_set(error, "%s: cannot be read; remove it to have a new token made", path);
    digest_sha256_hex(str_slice(token, length), sha256);
    explicit_bzero(token, sizeof token);
    log_info(is_new ? "An admin token was generated" : "The generated admin token is in use",
             LOG_TEXT("file", path));
    return true;
}

bool store_folder_admin_token(const struct config *config, const char *store_path, char sha256[65],
                              struct error *error)
{
    const char *given = getenv("THOUGHTGATE_ADMIN_TOKEN");
    sha256[0] = '\0';
    if (given && given[0]) {
        digest_sha256_hex(str_from(given), sha256);
        return true;
    }
    if (config->token_count > 0)
        return true;
    char *folder = folder_of(store_path);
    char *path = memory_format("%s/%s", folder, TOKEN_FILE);
    bool good = generated_token(path, sha256, error);
    free(path);
    free(folder);
    return good;
}
