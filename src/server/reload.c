/* Watching and re-reading the configuration. */
#include "reload.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/gateway/snapshot.h"

#define LOOK_EVERY_S 1

/* What tells one version of the file from another. stat() follows symlinks, so a swap of the
 * link shows as another inode. */
struct file_mark {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified;
};

struct reload {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool asked, stopping;
    char *config_path; /* or NULL */
    char *file;        /* the one that was found */
    struct file_mark mark;
    reload_callback callback;
    void *context;
};

static struct file_mark mark_of(const char *file)
{
    struct stat status;
    if (stat(file, &status) != 0)
        return (struct file_mark){0}; /* in the middle of a swap, or gone */
    return (struct file_mark){status.st_dev, status.st_ino, status.st_size, status.st_mtim};
}

static bool same_mark(const struct file_mark *a, const struct file_mark *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->modified.tv_sec == b->modified.tv_sec && a->modified.tv_nsec == b->modified.tv_nsec;
}

/* What only a restart can change is said, not ignored. */
static void warn_of_fixed(const struct config *old, const struct config *new)
{
    struct {
        const char *key;
        bool changed;
    } fixed[] = {
        {"store.path", strcmp(old->store_path, new->store_path) != 0},
        {"workers", old->workers != new->workers},
        {"proxy.bind", strcmp(old->proxy_bind, new->proxy_bind) != 0},
        {"limits.connections", old->limits.connections != new->limits.connections},
    };
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        if (fixed[i].changed)
            log_warn("This key takes effect after a restart only", LOG_TEXT("key", fixed[i].key));
    }
}

static void refuse(struct reload *reload, const char *why)
{
    log_error("Configuration not reloaded, the one before stays in force", LOG_TEXT("error", why));
    metrics_count(METRIC_CONFIG_LOADS, STR("error"));
    reload->callback(reload->context, why);
}

static void load(struct reload *reload)
{
    struct config_problems problems = {0};
    struct error error = {""};
    struct config *config = config_load(reload->config_path, NULL, &problems);
    struct snapshot *snapshot = config ? snapshot_create(config, &error) : NULL;
    if (snapshot) {
        struct snapshot *old = snapshot_current();
        warn_of_fixed(old->config, snapshot->config);
        snapshot_unref(old);
        snapshot_install(snapshot);
        metrics_count(METRIC_CONFIG_LOADS, STR("success"));
        metrics_set(METRIC_CONFIG_RELOAD_TIMESTAMP, (double)clock_now_ms() / 1000, NULL);
        log_info("Configuration reloaded", LOG_TEXT("file", reload->file));
        reload->callback(reload->context, NULL);
    } else {
        struct buffer text;
        buffer_init(&text);
        config_problems_write(&problems, &text);
        if (error.message[0])
            buffer_append_text(&text, error.message);
        while (text.length > 0 && text.bytes[text.length - 1] == '\n')
            text.length--;
        buffer_append_char(&text, '\0');
        refuse(reload, text.bytes);
        buffer_finish(&text);
    }
    config_problems_finish(&problems);
}

static void *watch(void *context)
{
    struct reload *reload = context;
    pthread_mutex_lock(&reload->lock);
    while (!reload->stopping) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += LOOK_EVERY_S;
        if (!reload->asked)
            pthread_cond_timedwait(&reload->wake, &reload->lock, &until);
        bool asked = reload->asked, stopping = reload->stopping;
        reload->asked = false;
        pthread_mutex_unlock(&reload->lock);
        struct file_mark now = mark_of(reload->file);
        bool changed = now.inode != 0 && !same_mark(&now, &reload->mark);
        if (!stopping && (asked || changed)) {
            reload->mark = now;
            load(reload);
        }
        pthread_mutex_lock(&reload->lock);
    }
    pthread_mutex_unlock(&reload->lock);
    return NULL;
}

struct reload *reload_start(const char *config_path, const struct config *config,
                            reload_callback callback, void *context, struct error *error)
{
    struct reload *reload = memory_alloc(sizeof *reload);
    reload->config_path = memory_copy_text(config_path);
    reload->file = memory_copy_text(config->path);
    reload->mark = mark_of(reload->file);
    reload->callback = callback;
    reload->context = context;
    pthread_mutex_init(&reload->lock, NULL);
    pthread_cond_init(&reload->wake, NULL);
    int failure = pthread_create(&reload->thread, NULL, watch, reload);
    if (failure == 0)
        return reload;
    error_set(error, "the reload thread could not be started: %s", strerror(failure));
    pthread_cond_destroy(&reload->wake);
    pthread_mutex_destroy(&reload->lock);
    free(reload->file);
    free(reload->config_path);
    free(reload);
    return NULL;
}

void reload_now(struct reload *reload)
{
    pthread_mutex_lock(&reload->lock);
    reload->asked = true;
    pthread_cond_signal(&reload->wake);
    pthread_mutex_unlock(&reload->lock);
}

void reload_stop(struct reload *reload)
{
    if (!reload)
        return;
    pthread_mutex_lock(&reload->lock);
    reload->stopping = true;
    pthread_cond_signal(&reload->wake);
    pthread_mutex_unlock(&reload->lock);
    pthread_join(reload->thread, NULL);
    pthread_cond_destroy(&reload->wake);
    pthread_mutex_destroy(&reload->lock);
    free(reload->file);
    free(reload->config_path);
    free(reload);
}
