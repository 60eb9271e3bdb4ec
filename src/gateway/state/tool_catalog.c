/* The catalogue: one table behind one lock. */
#include "tool_catalog_internal.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"
#include "tools_found.h"

#define FAULTS_EVERY_MS INT64_C(3600000)
#define STREAM_AGAIN_MS 60000

#define LOOK_AGAIN_MS 5000
#define FETCH_AGAIN_MS 1000

struct catalog *catalog_create(void)
{
    struct catalog *catalog = memory_alloc(sizeof *catalog);
    tools_found_renew(); /* another one may have been where this is */
    pthread_mutex_init(&catalog->lock, NULL);
    catalog->sources = map_create();
    catalog->tools = known_tools_create();
    list_init(&catalog->recent);
    return catalog;
}

/* Under the lock. */
static void source_finish(struct catalog *catalog, struct source_entry *entry)
{
    told_forget_all(catalog, entry);
    map_destroy(entry->told, NULL);
    map_destroy(entry->lists, NULL);
    map_destroy(entry->views, NULL);
    free(entry->url);
}

void catalog_destroy(struct catalog *catalog)
{
    size_t position = 0;
    void *entry;
    if (!catalog)
        return;
    while (map_next(catalog->sources, &position, NULL, &entry))
        source_finish(catalog, entry);
    map_destroy(catalog->sources, free);
    known_tools_destroy(catalog->tools);
    pthread_mutex_destroy(&catalog->lock);
    free(catalog);
}

/* ---- what is known of a tool ---- */

/* Under the lock. Also counts the owner as seen. */
static void find(struct catalog *catalog, const struct source_entry *entry, struct str owner,
                 struct str name, struct catalog_tool *tool)
{
    struct told *told = told_find(entry, owner);
    const struct tool_list_item *item =
        told ? tool_list_find(told->list, name, str_hash(name)) : NULL;
    if (told && owner.length > 0) {
        list_remove(&told->node);
        list_append(&catalog->recent, &told->node);
    }
    if (item) {
        *tool = item->tool->facts;
        tool->word = CATALOG_TOLD;
    } else {
        views_find(entry, name, tool);
    }
    tool->known = tool->word != CATALOG_UNKNOWN;
    tool->has_list = told && told->epoch > 0;
    tool->is_current = told && told->epoch == entry->epoch;
}

void catalog_find_tool(struct catalog *catalog, struct str source, struct str owner,
                       struct str name, struct catalog_tool *tool)
{
    const struct tools_asked asked = {catalog, source, owner, name};
    if (tools_found_get(&asked, tool))
        return;
    *tool = (struct catalog_tool){.word = CATALOG_UNKNOWN};
    pthread_mutex_lock(&catalog->lock);
    uint64_t version = tools_found_version();
    const struct source_entry *entry = map_get(catalog->sources, source);
    if (entry)
        find(catalog, entry, owner, name, tool);
    pthread_mutex_unlock(&catalog->lock);
    tools_found_keep(&asked, version, tool);
}

/* ---- fetching ---- */

enum catalog_fetch catalog_begin_fetch(struct catalog *catalog, const struct config_source *source,
                                       int64_t now_ms)
{
    enum catalog_fetch fetch = CATALOG_FETCH_NOW;
    pthread_mutex_lock(&catalog->lock);
    struct source_entry *entry = catalog_present_source(catalog, source);
    if (!entry || (entry->filled && !entry->stale)) {
        fetch = CATALOG_FETCH_NONE;
    } else if (entry->fetching || (entry->stale && now_ms - entry->fetched_ms < FETCH_AGAIN_MS)) {
        fetch = CATALOG_FETCH_LATER;
    } else {
        entry->fetching = true;
        entry->stale = false; /* a change from now on makes it stale again */
        entry->fetched_ms = now_ms;
    }
    pthread_mutex_unlock(&catalog->lock);
    return fetch;
}

void catalog_end_fetch(struct catalog *catalog, const struct config_source *source, bool complete)
{
    pthread_mutex_lock(&catalog->lock);
    struct source_entry *entry = catalog_present_source(catalog, source);
    if (entry) {
        entry->fetching = false;
        entry->filled = entry->filled || complete;
        entry->stale = entry->stale || !complete;
    }
    pthread_mutex_unlock(&catalog->lock);
}

bool catalog_fault_is_due(struct catalog *catalog, const struct config_source *source,
                          enum catalog_fault fault, int64_t now_ms)
{
    pthread_mutex_lock(&catalog->lock);
    struct source_entry *entry = catalog_source(catalog, str_from(source->id));
    int64_t *said_ms = &entry->fault_ms[fault];
    bool is_due = *said_ms == 0 || now_ms - *said_ms >= FAULTS_EVERY_MS;
    if (is_due)
        *said_ms = now_ms;
    pthread_mutex_unlock(&catalog->lock);
    return is_due;
}

void catalog_note_stream(struct catalog *catalog, const struct config_source *source, int status,
                         int64_t now_ms)
{
    pthread_mutex_lock(&catalog->lock);
    struct source_entry *entry = catalog_present_source(catalog, source);
    if (entry)
        entry->no_stream_ms = status == 405 ? now_ms : 0;
    pthread_mutex_unlock(&catalog->lock);
}

bool catalog_lacks_stream(struct catalog *catalog, const struct config_source *source,
                          int64_t now_ms)
{
    pthread_mutex_lock(&catalog->lock);
    const struct source_entry *entry = catalog_present_source(catalog, source);
    bool lacks =
        entry && entry->no_stream_ms != 0 && now_ms - entry->no_stream_ms < STREAM_AGAIN_MS;
    pthread_mutex_unlock(&catalog->lock);
    return lacks;
}

void catalog_source_changed(struct source_entry *entry)
{
    entry->stale = true;
    entry->epoch++;
    tools_found_renew();
}

uint64_t catalog_epoch(struct catalog *catalog, struct str source)
{
    pthread_mutex_lock(&catalog->lock);
    uint64_t epoch = catalog_source(catalog, source)->epoch;
    pthread_mutex_unlock(&catalog->lock);
    return epoch;
}

void catalog_set_stale(struct catalog *catalog, struct str source)
{
    pthread_mutex_lock(&catalog->lock);
    catalog_source_changed(catalog_source(catalog, source));
    pthread_mutex_unlock(&catalog->lock);
}

bool catalog_look_is_due(struct catalog *catalog, struct str source, struct str owner,
                         int64_t now_ms)
{
    bool due = true;
    uint64_t hash = str_hash(owner);
    pthread_mutex_lock(&catalog->lock);
    const struct source_entry *entry = catalog_source(catalog, source);
    for (size_t i = 0; i < LOOKS; i++) {
        const struct look *look = &entry->looks[i];
        if (look->at_ms > 0 && look->owner == hash && now_ms - look->at_ms < LOOK_AGAIN_MS)
            due = false;
    }
    pthread_mutex_unlock(&catalog->lock);
    return due;
}

void catalog_looked(struct catalog *catalog, struct str source, struct str owner, int64_t now_ms)
{
    pthread_mutex_lock(&catalog->lock);
    struct source_entry *entry = catalog_source(catalog, source);
    entry->looks[entry->next_look++ % LOOKS] = (struct look){str_hash(owner), now_ms};
    pthread_mutex_unlock(&catalog->lock);
}

bool catalog_is_filled(struct catalog *catalog, struct str source)
{
    pthread_mutex_lock(&catalog->lock);
    struct source_entry *entry = map_get(catalog->sources, source);
    bool filled = entry && entry->filled;
    pthread_mutex_unlock(&catalog->lock);
    return filled;
}

/* ---- the configuration ---- */

/* Under the lock. Forgets all that is known of the source. */
static void forget_server(struct catalog *catalog, struct source_entry *entry)
{
    uint64_t epoch = entry->epoch + 1;
    source_finish(catalog, entry);
    catalog_source_init(entry, epoch);
    tools_found_renew();
}

void catalog_reconfigure(struct catalog *catalog, const struct config *config)
{
    pthread_mutex_lock(&catalog->lock);
    size_t position = 0;
    struct str id;
    void *value;
    while (map_next(catalog->sources, &position, &id, &value)) {
        struct source_entry *entry = value;
        const struct config_source *source = config_source_find(config, id);
        if (!source || (entry->url && strcmp(entry->url, source->url) != 0))
            forget_server(catalog, entry);
    }
    for (size_t i = 0; i < config->source_count; i++)
        catalog_present_source(catalog, &config->sources[i]);
    views_publish_counts(catalog);
    pthread_mutex_unlock(&catalog->lock);
}

void catalog_announce_all(struct catalog *catalog, const struct snapshot *snapshot)
{
    pthread_mutex_lock(&catalog->lock);
    size_t position = 0;
    struct str id;
    void *value;
    while (map_next(catalog->sources, &position, &id, &value)) {
        const struct config_source *source = config_source_find(snapshot->config, id);
        if (source)
            views_announce_all(catalog, snapshot, source, value);
    }
    views_publish_counts(catalog);
    pthread_mutex_unlock(&catalog->lock);
}
