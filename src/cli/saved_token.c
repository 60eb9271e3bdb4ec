/* Files named by the digest of the endpoint's URL, so that a token goes to no other. */
#include "saved_token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "taskgate/core/digest.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

#include "options.h"

#define TOKEN_MAX_BYTES ((size_t)64 * 1024)

/* NULL without a home. An empty or relative XDG_STATE_HOME counts as unset, as the XDG base
 * directory specification has it. */
static char *folder(void)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state && *state == '/')
        return memory_format("%s/taskgate", state);
    return home && *home == '/' ? memory_format("%s/.local/state/taskgate", home) : NULL;
}

static char *path_of(const char *url)
{
    char digest[DIGEST_HEX_BYTES], *in = folder();
    digest_sha256_hex(str_from(url), digest);
    char *path = in ? memory_format("%s/token-%.16s", in, digest) : NULL;
    free(in);
    return path;
}

/* Whether others can neither read nor have written it. */
static bool saved_token_is_own(int fd, const char *path)
{
    struct stat status;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
        (status.st_mode & 077) == 0)
        return true;
    options_complain("%s is not used: others can read it; taskgate login writes it anew", path);
    return false;
}

static char *read_all(int fd)
{
    char *text = memory_alloc(TOKEN_MAX_BYTES + 1);
    size_t length = 0;
    ssize_t count;
    while (length < TOKEN_MAX_BYTES &&
           (count = read(fd, text + length, TOKEN_MAX_BYTES - length)) > 0)
        length += (size_t)count;
    while (length > 0 && text[length - 1] == '\n')
        length--;
    text[length] = '\0';
    if (length > 0)
        return text;
    free(text);
    return NULL;
}

char *saved_token_read(const char *url)
{
    char *path = path_of(url), *token = NULL;
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    if (fd >= 0 && saved_token_is_own(fd, path))
        token = read_all(fd);
    if (fd >= 0)
        close(fd);
    free(path);
    return token;
}

static bool saved_token_make_folders(const char *path)
{
    OWNED char *part = memory_copy_text(path);
    for (char *at = part + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST)
            return false;
        *at = '/';
    }
    return true;
}

static bool saved_token_write_all(int fd, const char *token)
{
    size_t length = strlen(token);
    bool written = write(fd, token, length) == (ssize_t)length && write(fd, "\n", 1) == 1;
    return close(fd) == 0 && written;
}

bool saved_token_write(const char *url, const char *token, struct error *error)
{
    OWNED char *path = path_of(url);
    if (!path)
        return error_set(error, "neither XDG_STATE_HOME nor HOME says where to keep the token");
    OWNED char *fresh = memory_format("%s.XXXXXX", path);
    int fd = saved_token_make_folders(path) ? mkstemp(fresh) : -1; /* 0600 */
    bool written = fd >= 0 && saved_token_write_all(fd, token) && rename(fresh, path) == 0;
    if (!written) {
        error_set(error, "the token cannot be kept in %s: %s", path, strerror(errno));
        if (fd >= 0)
            unlink(fresh);
    }
    return written;
}

bool saved_token_forget(const char *url)
{
    OWNED char *path = path_of(url);
    return path && unlink(path) == 0;
}
