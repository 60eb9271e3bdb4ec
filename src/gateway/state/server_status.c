/* The status of servers: what they can do, and whether they answer. */
#include "server_status.h"

#include <stdlib.h>

#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "tool_catalog_internal.h"
#include "tools_found.h"

#define AWAY_EVERY_MS INT64_C(60000)

bool catalog_capabilities(struct catalog *catalog, struct str source,
                          struct mcp_capabilities *capabilities)
{
    *capabilities = (struct mcp_capabilities){0};
    pthread_mutex_lock(&catalog->lock);
    struct source_entry *entry = map_get(catalog->sources, source);
    bool seen = entry && entry->has_capabilities;
    if (seen)
        *capabilities = entry->capabilities;
    pthread_mutex_unlock(&catalog->lock);
    return seen;
}

bool catalog_has_seen_tasks(struct catalog *catalog, struct str source)
{
    bool seen;
    if (tools_found_get_tasks(catalog, source, &seen))
        return seen;
    pthread_mutex_lock(&catalog->lock);
    uint64_t version = tools_found_version();
    const struct source_entry *entry = map_get(catalog->sources, source);
    seen = entry && entry->has_seen_tasks;
    pthread_mutex_unlock(&catalog->lock);
    tools_found_keep_tasks(catalog, source, version, seen);
    return seen;
}

static bool set_capabilities(struct source_entry *entry,
                             const struct mcp_capabilities *capabilities)
{
    const struct mcp_capabilities *old = &entry->capabilities;
    bool changed = !entry->has_capabilities || old->tasks != capabilities->tasks ||
                   old->task_status != capabilities->task_status;
    entry->has_capabilities = true;
    if (capabilities->tasks && !entry->has_seen_tasks) {
        entry->has_seen_tasks = true;
        tools_found_renew();
    }
    entry->capabilities = *capabilities;
    return changed;
}

bool catalog_set_capabilities(struct catalog *catalog, const struct config_source *source,
                              const struct mcp_capabilities *capabilities)
{
    pthread_mutex_lock(&catalog->lock);
    struct source_entry *entry = catalog_present_source(catalog, source);
    bool changed = entry && set_capabilities(entry, capabilities);
    pthread_mutex_unlock(&catalog->lock);
    return changed;
}

void catalog_learn_capabilities(struct catalog *catalog, const struct snapshot *snapshot,
                                const struct config_source *source,
                                const struct mcp_capabilities *capabilities)
{
    char *line = memory_format("Upstream capabilities: tasks=%s sse=%s",
                               capabilities->tasks ? "true" : "false",
                               capabilities->task_status ? "true" : "false");
    log_info(line, LOG_TEXT("source", source->id));
    free(line);
    if (catalog_set_capabilities(catalog, source, capabilities))
        catalog_announce_all(catalog, snapshot);
}

static void show_health(struct str source, const struct source_entry *entry)
{
    metrics_set(METRIC_UPSTREAM_HEALTH, entry->reachable, METRIC_LABELS(source, STR("healthy")));
    metrics_set(METRIC_UPSTREAM_HEALTH, !entry->reachable, METRIC_LABELS(source, STR("unhealthy")));
}

void server_status_show(struct catalog *catalog)
{
    pthread_mutex_lock(&catalog->lock);
    size_t position = 0;
    struct str source;
    void *value;
    metrics_reset(METRIC_UPSTREAM_HEALTH);
    while (map_next(catalog->sources, &position, &source, &value)) {
        const struct source_entry *entry = value;
        if (entry->tried && entry->url)
            show_health(source, entry);
    }
    pthread_mutex_unlock(&catalog->lock);
}

static enum catalog_change change_of(struct source_entry *entry, bool reachable)
{
    bool is_first = !entry->tried, was = entry->reachable, had = entry->was_reachable;
    entry->tried = true;
    entry->reachable = reachable;
    entry->was_reachable = had || reachable;
    if (reachable && (is_first || !was))
        entry->connected_ms = clock_now_ms();
    if (!reachable)
        return was && !is_first ? CATALOG_DISCONNECTED : CATALOG_UNCHANGED;
    if (!is_first && was)
        return CATALOG_UNCHANGED;
    return had ? CATALOG_RECONNECTED : CATALOG_CONNECTED;
}

/* A server that comes and goes is said to be away once a minute, and to be reached once after each
 * of these. One that stays away meanwhile is said so by a later attempt. */
static bool is_news(struct source_entry *entry, bool reachable)
{
    int64_t now_ms = clock_monotonic_ms();
    if (entry->is_said_away != reachable ||
        (!reachable && entry->away_said_ms != 0 && now_ms - entry->away_said_ms < AWAY_EVERY_MS))
        return false;
    entry->is_said_away = !reachable;
    if (!reachable)
        entry->away_said_ms = now_ms;
    return true;
}

/* `*is_said`: it is to stand in the log. */
static enum catalog_change set_reachable(struct catalog *catalog, struct str source, bool reachable,
                                         bool *is_said)
{
    pthread_mutex_lock(&catalog->lock);
    struct source_entry *entry = catalog_source(catalog, source);
    bool changed = !entry->tried || entry->reachable != reachable;
    *is_said = is_news(entry, reachable);
    enum catalog_change change = change_of(entry, reachable);
    if (change == CATALOG_RECONNECTED)
        catalog_source_changed(entry);
    if (changed && entry->url)
        show_health(source, entry);
    pthread_mutex_unlock(&catalog->lock);
    return change;
}

enum catalog_change catalog_set_reachable(struct catalog *catalog, struct str source,
                                          bool reachable)
{
    bool is_said;
    return set_reachable(catalog, source, reachable, &is_said);
}

void server_status_observe(struct catalog *catalog, const struct server_observer *observer)
{
    catalog->observer = *observer;
}

void server_status_note(struct catalog *catalog, struct str source, bool reachable)
{
    const struct server_observer *observer = &catalog->observer;
    bool is_said;
    enum catalog_change change = set_reachable(catalog, source, reachable, &is_said);
    if (is_said && reachable)
        log_info("The server is reached", LOG_STR("source", source));
    else if (is_said)
        log_warn("The server cannot be reached", LOG_STR("source", source));
    if (change != CATALOG_UNCHANGED && observer->changed)
        observer->changed(observer->context, source, change);
}

bool catalog_is_reachable(struct catalog *catalog, struct str source, int64_t *since_ms)
{
    pthread_mutex_lock(&catalog->lock);
    struct source_entry *entry = map_get(catalog->sources, source);
    bool reachable = !entry || entry->reachable;
    *since_ms = entry ? entry->connected_ms : 0;
    pthread_mutex_unlock(&catalog->lock);
    return reachable;
}

bool catalog_all_reachable(struct catalog *catalog)
{
    bool all = true;
    pthread_mutex_lock(&catalog->lock);
    size_t position = 0;
    void *value;
    while (map_next(catalog->sources, &position, NULL, &value))
        all = all && ((struct source_entry *)value)->reachable;
    pthread_mutex_unlock(&catalog->lock);
    return all;
}
