/* The store's folder and the generated token. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "private_file.h"
#include "store_opening.h"
#include "supervisor.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/random.h"
#include "taskgate/server/store_choice.h"
#include "taskgate/store/site.h"

/* The kinds of database. */

const struct store_backend *store_choice_of(const char *place)
{
    return strstr(place, "://") ? &store_postgres : &store_sqlite;
}

static const struct store_backend *store_choice_backend(const struct config *config)
{
    return store_choice_of(config->store_url ? config->store_url : config->store_path);
}

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

static bool store_opening_read_token(int fd, char token[TOKEN_MAX_BYTES], size_t *length)
{
    ssize_t got = read(fd, token, TOKEN_MAX_BYTES - 1);
    if (got <= 0)
        return false;
    struct str trimmed = str_trim(str_slice(token, (size_t)got));
    memmove(token, trimmed.bytes, trimmed.length);
    *length = trimmed.length;
    return trimmed.length > 0;
}

#define TOKEN_DIGITS 64 /* 256 random bits in hex */

static bool make_token(const char *path)
{
    char text[TOKEN_DIGITS + 2];
    random_hex(text, TOKEN_DIGITS);
    text[TOKEN_DIGITS] = '\n';
    bool made = private_file_make(path, str_slice(text, TOKEN_DIGITS + 1));
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
    bool good = store_opening_read_token(fd, token, &length);
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

/* Open, look for a signal, and again. */

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
