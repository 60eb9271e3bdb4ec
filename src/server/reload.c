/* Watching and re-reading the configuration. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "reload.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/gateway/snapshot.h"
#include "taskgate/upstream/upstream.h"

/* Loads the libraries of a configuration before a loop needs them. */

bool libraries_load(const struct config *config, struct error *error)
{
    for (size_t i = 0; i < config->source_count; i++) {
        if (!upstream_prepare(config->sources[i].url, error))
            return false;
    }
    for (size_t i = 0; i < config->notify_count; i++) {
        if (!upstream_prepare(config->notify[i].url, error))
            return false;
    }
    if (config->oidc.is_on && !upstream_prepare(config->oidc.issuer, error))
        return false;
    return true;
}

#define LOOK_EVERY_MS 1000
#define MISSING_LOOKS 4 /* together with that: within the 5 s of a change */
/* Half a file may be a valid configuration with fewer rules. So a changed one is taken once nothing
 * of it has changed for this time. */
#define STILL_MS 500
#define RESTLESS_MS 10000 /* it is being written to: the log says so */

struct reload {
    uint32_t magic; /* RELOAD_MAGIC */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool asked, stopping;
    char *config_path; /* or NULL */
    struct config_running running;
    struct config_file *files; /* all that are watched, as they were when last read or looked at */
    size_t file_count;
    int missing_looks;             /* in a row, with one of them gone */
    char digest[DIGEST_HEX_BYTES]; /* of the files at the last look at their content */
    int64_t still_at_ms;           /* monotonic: when they have been so for long enough */
    int64_t waits_since_ms;        /* monotonic: for them to be still; 0: it does not wait */
    bool is_restless;              /* the log has said so */
    reload_callback callback;
    void *context;
};
#define RELOAD_MAGIC 0x53565203

static struct reload *reload_from(void *context)
{
    return MAGIC_CAST(struct reload, RELOAD_MAGIC, context);
}

static void reload_forget_files(struct reload *reload)
{
    for (size_t i = 0; i < reload->file_count; i++)
        free(reload->files[i].path);
    free(reload->files);
}

/* From now on these are watched, from how they were when they were read. */
static void watch_files(struct reload *reload, const struct config_file *files, size_t count)
{
    reload_forget_files(reload);
    reload->file_count = count;
    reload->files = memory_alloc_array(count, sizeof *reload->files);
    for (size_t i = 0; i < count; i++) {
        reload->files[i] = files[i];
        reload->files[i].path = memory_copy_text(files[i].path);
    }
}

/* `places` is what anybody is told. */
static void reload_refuse(struct reload *reload, const char *why, const char *places)
{
    log_error("Configuration not reloaded, the one before stays in force", LOG_TEXT("error", why));
    metrics_count(METRIC_CONFIG_LOADS, STR("error"));
    reload->callback(reload->context, places);
}

/* A missing file may be in the middle of a swap; if it stays away, the log says so once. */
static void count_missing(struct reload *reload, const char *missing)
{
    if (!missing) {
        reload->missing_looks = 0;
    } else if (reload->missing_looks <= MISSING_LOOKS && ++reload->missing_looks == MISSING_LOOKS) {
        char *why = memory_format("%s: the file is gone; put it back", missing);
        reload_refuse(reload, why, why);
        free(why);
    }
}

/* Whether a file has changed since, or is back after it was missed. */
static bool reload_look_at_files(struct reload *reload)
{
    bool was_missed = reload->missing_looks >= MISSING_LOOKS, changed = false;
    const char *missing = NULL;
    for (size_t i = 0; i < reload->file_count; i++) {
        struct config_file *seen = &reload->files[i], now = *seen;
        config_file_look(&now);
        if (now.inode == 0) {
            missing = seen->path;
            continue;
        }
        changed = changed || now.device != seen->device || now.inode != seen->inode ||
                  now.size != seen->size || now.modified.tv_sec != seen->modified.tv_sec ||
                  now.modified.tv_nsec != seen->modified.tv_nsec;
        *seen = now;
    }
    count_missing(reload, missing);
    return changed || (was_missed && !missing);
}

static bool are_other_pairs(const struct config_pair *old, size_t old_count,
                            const struct config_pair *new, size_t new_count)
{
    bool are_other = old_count != new_count;
    for (size_t i = 0; !are_other && i < new_count; i++)
        are_other =
            strcmp(old[i].name, new[i].name) != 0 || strcmp(old[i].value, new[i].value) != 0;
    return are_other;
}

static bool has_other_telemetry(const struct config_telemetry *old,
                                const struct config_telemetry *new)
{
    return old->is_on != new->is_on || strcmp(old->url, new->url) != 0 ||
           old->protocol != new->protocol || old->sampler != new->sampler ||
           old->sample_rate != new->sample_rate || old->max_queue_size != new->max_queue_size ||
           old->max_export_batch_size != new->max_export_batch_size ||
           old->scheduled_delay_ms != new->scheduled_delay_ms ||
           old->export_timeout_ms != new->export_timeout_ms ||
           are_other_pairs(old->headers, old->header_count, new->headers, new->header_count) ||
           are_other_pairs(old->resource, old->resource_count, new->resource, new->resource_count);
}

static bool has_other_replica(const struct config_replica *old, const struct config_replica *new)
{
    return !str_same(old->id, new->id) || !str_same(old->address, new->address) ||
           !str_same(old->bind, new->bind) || !str_same(old->key, new->key);
}

/* Warns of changes that only a restart can put into force: of each key that the table marks. */
static void warn_of_fixed(const struct config *old, const struct config *new)
{
    const struct {
        const char *key;
        bool changed;
    } fixed[] = {
        {"telemetry", has_other_telemetry(&old->telemetry, &new->telemetry)},
        {"store", strcmp(old->store_path, new->store_path) != 0 ||
                      !str_same(old->store_url, new->store_url) ||
                      old->store_lock_wait_ms != new->store_lock_wait_ms},
        {"replica", has_other_replica(&old->replica, &new->replica)},
        {"state_key", !str_same(old->state_key_env, new->state_key_env)},
        {"workers", old->workers != new->workers},
        {"proxy.bind", strcmp(old->proxy_bind, new->proxy_bind) != 0},
        {"limits.connections", old->limits.connections != new->limits.connections},
    };
    char key[CONFIG_RESTART_KEY_BYTES];
    for (size_t i = 0; config_restart_key(i, key); i++) {
        ASSERT(i < sizeof fixed / sizeof *fixed && strcmp(fixed[i].key, key) == 0);
        if (fixed[i].changed)
            log_warn("This key takes effect after a restart only", LOG_TEXT("key", key));
    }
}

/* Counted only where there are Cedar policies, before or now. */
static void count_policies(const struct snapshot *old, const struct snapshot *new)
{
    bool has_policies = policy_count(old->policy) > 0 || (new &&policy_count(new->policy) > 0);
    if (has_policies)
        metrics_count(METRIC_CEDAR_RELOADS, new ? STR("success") : STR("error"));
}

static void reload_accept(struct reload *reload, struct snapshot *snapshot, const char *warnings)
{
    struct snapshot *old = snapshot_current();
    warn_of_fixed(old->config, snapshot->config);
    count_policies(old, snapshot);
    snapshot_unref(old);
    snapshot_install(snapshot);
    if (*warnings)
        log_warn("The configuration has warnings", LOG_TEXT("warnings", warnings));
    reload->callback(reload->context, NULL);
}

/* Looks at the content, too. */
static void look_closely(struct reload *reload, bool *is_same)
{
    char digest[DIGEST_HEX_BYTES];
    config_files_digest(reload->files, reload->file_count, digest);
    *is_same = strcmp(digest, reload->digest) == 0;
    if (!*is_same)
        reload->still_at_ms = clock_monotonic_ms() + STILL_MS;
    memcpy(reload->digest, digest, sizeof reload->digest);
}

/* Whether the files are still what they were for a while. */
static bool are_still(struct reload *reload)
{
    bool is_same;
    int64_t now_ms = clock_monotonic_ms();
    if (reload->waits_since_ms == 0)
        reload->waits_since_ms = now_ms;
    look_closely(reload, &is_same);
    if (!is_same && !reload->is_restless && now_ms - reload->waits_since_ms >= RESTLESS_MS) {
        reload->is_restless = true;
        log_warn("The configuration is being written to, and is read once it is still");
    }
    return is_same && now_ms >= reload->still_at_ms;
}

/* The files that were read are those that were still before: also the files that are named for the
 * first time. */
static bool was_read_still(struct reload *reload)
{
    bool is_same;
    look_closely(reload, &is_same);
    if (is_same) {
        reload->waits_since_ms = 0;
        reload->is_restless = false;
    }
    return is_same;
}

static void reload_take(struct reload *reload, struct config *config,
                        struct config_problems *problems)
{
    OWNED_BUFFER(text);
    struct snapshot *snapshot = config ? snapshot_create(config, problems) : NULL;
    struct error error = {""};
    config_problems_write(problems, &text);
    while (text.length > 0 && text.bytes[text.length - 1] == '\n')
        text.length--;
    buffer_append_char(&text, '\0');
    if (snapshot && !libraries_load(snapshot->config, &error)) {
        snapshot_unref(snapshot);
        reload_refuse(reload, error.message, error.message);
    } else if (snapshot) {
        reload_accept(reload, snapshot, text.bytes);
    } else {
        struct snapshot *old = snapshot_current();
        count_policies(old, NULL);
        snapshot_unref(old);
        OWNED_BUFFER(places);
        config_problems_write_places(problems, &places);
        buffer_append_char(&places, '\0');
        reload_refuse(reload, text.bytes, places.bytes);
    }
}

static void reload_load(struct reload *reload)
{
    struct config_problems problems = {0};
    struct config *config = config_reload(reload->config_path, &reload->running, &problems);
    /* Also when something in them turns out to be wrong: mending that must be seen. */
    if (config)
        watch_files(reload, config->files, config->file_count);
    else if (problems.file_count > 0)
        watch_files(reload, problems.files, problems.file_count);
    if (was_read_still(reload))
        reload_take(reload, config, &problems);
    else
        config_unref(config);
    config_problems_finish(&problems);
}

static int64_t next_look_ms(const struct reload *reload)
{
    int64_t now_ms = clock_monotonic_ms();
    if (reload->waits_since_ms == 0)
        return now_ms + LOOK_EVERY_MS;
    return reload->still_at_ms > now_ms ? reload->still_at_ms : now_ms;
}

static void *reload_watch(void *context)
{
    struct reload *reload = reload_from(context);
    pthread_mutex_lock(&reload->lock);
    while (!reload->stopping) {
        struct timespec until = clock_monotonic_until(next_look_ms(reload));
        if (!reload->asked)
            pthread_cond_timedwait(&reload->wake, &reload->lock, &until);
        bool asked = reload->asked, stopping = reload->stopping;
        reload->asked = false;
        pthread_mutex_unlock(&reload->lock);
        bool changed = !stopping && reload_look_at_files(reload);
        bool wanted = asked || changed || reload->waits_since_ms > 0;
        if (!stopping && wanted && are_still(reload))
            reload_load(reload);
        pthread_mutex_lock(&reload->lock);
    }
    pthread_mutex_unlock(&reload->lock);
    return NULL;
}

static void reload_destroy(struct reload *reload)
{
    pthread_cond_destroy(&reload->wake);
    pthread_mutex_destroy(&reload->lock);
    reload_forget_files(reload);
    free(reload->config_path);
    MAGIC_CLEAR(reload);
    free(reload);
}

struct reload *reload_start(const char *config_path, const struct config *config,
                            reload_callback callback, void *context, struct error *error)
{
    struct reload *reload = memory_alloc(sizeof *reload);
    MAGIC_SET(reload, RELOAD_MAGIC);
    reload->config_path = memory_copy_text(config_path);
    reload->running =
        (struct config_running){config->limits.connections, config->replica.address != NULL};
    watch_files(reload, config->files, config->file_count);
    config_files_digest(reload->files, reload->file_count, reload->digest);
    reload->still_at_ms = clock_monotonic_ms() + STILL_MS;
    ASSERT(callback);
    reload->callback = callback;
    reload->context = context;
    pthread_mutex_init(&reload->lock, NULL);
    clock_condition_init(&reload->wake);
    int failure = pthread_create(&reload->thread, NULL, reload_watch, reload);
    if (failure == 0)
        return reload;
    error_set(error, "the reload thread could not be started: %s", strerror(failure));
    reload_destroy(reload);
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
    reload_destroy(reload);
}
