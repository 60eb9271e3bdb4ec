/* What is known of each source's upstream, in one table behind one lock. */
#include "catalog_internal.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/json/canonical.h"

#define KEPT_RAW_BYTES ((size_t)2048) /* a tool with more text is digested each time it comes */
/* What is remembered of one source; tools beyond it are judged and relayed all the same. */
#define SOURCE_TOOLS 20000
#define TOOL_NAME_BYTES 1024
#define LOOK_AGAIN_MS 5000
#define FETCH_AGAIN_MS 1000

struct tool_entry {
    char *name;
    struct catalog_tool tool;
    char *raw; /* what tool.digest is of, byte for byte; NULL when that is too long to keep */
    size_t raw_length;
    bool announced; /* `annotation` has been logged */
    bool visible;
    bool gone;     /* the last whole list was without it */
    uint64_t seen; /* as source_entry.seen when a list last had it */
    enum policy_annotation annotation;
};

struct catalog *catalog_create(void)
{
    struct catalog *catalog = memory_alloc(sizeof *catalog);
    pthread_mutex_init(&catalog->lock, NULL);
    catalog->sources = map_create();
    return catalog;
}

static void tool_destroy(void *context)
{
    struct tool_entry *entry = context;
    free(entry->raw);
    free(entry->name);
    free(entry);
}

static void source_destroy(void *context)
{
    struct source_entry *entry = context;
    map_destroy(entry->tools, tool_destroy);
    free(entry->url);
    free(entry);
}

void catalog_destroy(struct catalog *catalog)
{
    if (!catalog)
        return;
    map_destroy(catalog->sources, source_destroy);
    pthread_mutex_destroy(&catalog->lock);
    free(catalog);
}

struct source_entry *catalog_source(struct catalog *catalog, struct str source)
{
    struct source_entry *entry = map_get(catalog->sources, source);
    if (!entry) {
        entry = memory_alloc(sizeof *entry);
        entry->tools = map_create();
        entry->reachable = true;
        map_put(catalog->sources, source, entry);
    }
    return entry;
}

struct source_entry *catalog_present_source(struct catalog *catalog,
                                            const struct config_source *source)
{
    struct source_entry *entry = catalog_source(catalog, str_from(source->id));
    if (!entry->url)
        entry->url = memory_copy_text(source->url);
    return strcmp(entry->url, source->url) == 0 ? entry : NULL;
}

void catalog_find_tool(struct catalog *catalog, struct str source, struct str name,
                       struct catalog_tool *tool)
{
    *tool = (struct catalog_tool){.known = false};
    pthread_mutex_lock(&catalog->lock);
    struct source_entry *entry = map_get(catalog->sources, source);
    struct tool_entry *found = entry ? map_get(entry->tools, name) : NULL;
    if (found)
        *tool = found->tool;
    pthread_mutex_unlock(&catalog->lock);
}

/* ---- announcing ---- */

static void publish_counts(const struct catalog *catalog)
{
    for (int i = 0; i < 3; i++) {
        const char *name = policy_annotation_name((enum policy_annotation)i);
        metrics_set(METRIC_TOOLS_BY_ANNOTATION, (double)catalog->counts[i],
                    METRIC_LABELS(str_from(name)));
    }
}

/* The seed's INFO line, verbatim (seed 002 F-002.5). */
static void log_annotation(const char *tool, const struct policy_decision *decision,
                           bool upstream_tasks, enum policy_annotation annotation,
                           const char *source, bool is_discovery)
{
    const char *announced = policy_annotation_name(annotation);
    const char *detail = decision->action != ACTION_FORWARD ? ""
                         : upstream_tasks                   ? ", upstream_tasks=true"
                                                            : ", upstream_tasks=false";
    if (is_discovery) {
        char *discovery = memory_format("New tool discovered: %s, annotation=%s", tool, announced);
        log_warn(discovery, LOG_TEXT("source", source));
        free(discovery);
    }
    char *line = memory_format("Tool annotation: %s -> %s (yaml_action=%s%s)", tool, announced,
                               config_action_name(decision->action), detail);
    log_info(line, LOG_TEXT("source", source));
    free(line);
}

static bool is_counted(const struct tool_entry *tool)
{
    return tool->announced && tool->visible && !tool->gone;
}

/* Under the lock. What the tool is to be announced as; logs and counts what has changed. */
static void announce(struct catalog *catalog, const struct snapshot *snapshot,
                     const struct config_source *source, const struct source_entry *entry,
                     struct tool_entry *tool, bool is_discovery)
{
    struct policy_request request = {source, str_from(tool->name), STR_EMPTY};
    struct policy_decision decision;
    policy_decide(snapshot->policy, &request, &decision);
    bool upstream_tasks = entry->capabilities.tasks;
    bool visible = policy_is_visible(snapshot->policy, source, request.name);
    enum policy_annotation annotation =
        policy_annotate(&decision, upstream_tasks, tool->tool.has_own, tool->tool.own);
    if (tool->announced && tool->visible == visible && tool->annotation == annotation)
        return;
    if (is_counted(tool))
        catalog->counts[tool->annotation]--;
    if (visible || !tool->announced)
        log_annotation(tool->name, &decision, upstream_tasks, annotation, source->id, is_discovery);
    tool->announced = true;
    tool->visible = visible;
    tool->annotation = annotation;
    if (is_counted(tool))
        catalog->counts[annotation]++;
}

/* Under the lock. A tool that has gone stays known, for upstream may still run it, but is not
 * counted. */
static void set_gone(struct catalog *catalog, struct tool_entry *tool, bool gone)
{
    if (is_counted(tool))
        catalog->counts[tool->annotation]--;
    tool->gone = gone;
    if (is_counted(tool))
        catalog->counts[tool->annotation]++;
}

/* Lists mostly bring the same bytes as before, and so the same digest. Other bytes are
 * digested anew, were they of equal meaning. */
static bool find_digest(struct catalog *catalog, struct str source, const struct mcp_tool *tool,
                        char digest[DIGEST_HEX_BYTES])
{
    pthread_mutex_lock(&catalog->lock);
    const struct tool_entry *known = map_get(catalog_source(catalog, source)->tools, tool->name);
    bool is_same =
        known && known->raw && str_equal(str_slice(known->raw, known->raw_length), tool->raw);
    if (is_same)
        memcpy(digest, known->tool.digest, DIGEST_HEX_BYTES);
    pthread_mutex_unlock(&catalog->lock);
    return is_same;
}

static void keep_raw(struct tool_entry *entry, struct str raw)
{
    if (entry->raw && str_equal(str_slice(entry->raw, entry->raw_length), raw))
        return;
    free(entry->raw);
    entry->raw = raw.length <= KEPT_RAW_BYTES ? memory_copy_str(raw) : NULL;
    entry->raw_length = raw.length;
}

void catalog_put_tool(struct catalog *catalog, const struct snapshot *snapshot,
                      const struct config_source *source, const struct mcp_tool *tool)
{
    char digest[DIGEST_HEX_BYTES];
    if (!find_digest(catalog, str_from(source->id), tool, digest))
        canonical_digest(tool->raw, digest);
    pthread_mutex_lock(&catalog->lock);
    struct source_entry *entry = catalog_present_source(catalog, source);
    struct tool_entry *known = entry ? map_get(entry->tools, tool->name) : NULL;
    bool is_discovery = !known && entry && entry->filled;
    bool fits =
        entry && tool->name.length <= TOOL_NAME_BYTES && map_count(entry->tools) < SOURCE_TOOLS;
    if (!known && !fits) {
        pthread_mutex_unlock(&catalog->lock);
        return;
    }
    if (!known) {
        known = memory_alloc(sizeof *known);
        known->name = memory_copy_str(tool->name);
        map_put(entry->tools, tool->name, known);
    }
    known->tool = (struct catalog_tool){.known = true,
                                        .has_own = tool->has_own,
                                        .own = tool->own,
                                        .has_output_schema = tool->has_output_schema,
                                        .hints = tool->hints};
    memcpy(known->tool.digest, digest, sizeof digest);
    keep_raw(known, tool->raw);
    known->seen = ++entry->seen;
    set_gone(catalog, known, false);
    announce(catalog, snapshot, source, entry, known, is_discovery);
    publish_counts(catalog);
    pthread_mutex_unlock(&catalog->lock);
}

void catalog_begin_list(struct catalog *catalog, const struct config_source *source,
                        struct str reader)
{
    uint64_t hash = str_hash(reader);
    pthread_mutex_lock(&catalog->lock);
    struct source_entry *entry = catalog_present_source(catalog, source);
    if (entry) {
        entry->reader = hash;
        entry->read_from = entry->seen;
    }
    pthread_mutex_unlock(&catalog->lock);
}

void catalog_end_list(struct catalog *catalog, const struct config_source *source,
                      struct str reader)
{
    uint64_t hash = str_hash(reader);
    size_t position = 0;
    void *value;
    pthread_mutex_lock(&catalog->lock);
    struct source_entry *entry = catalog_present_source(catalog, source);
    while (entry && entry->reader == hash && map_next(entry->tools, &position, NULL, &value)) {
        struct tool_entry *tool = value;
        if (tool->seen <= entry->read_from)
            set_gone(catalog, tool, true);
    }
    publish_counts(catalog);
    pthread_mutex_unlock(&catalog->lock);
}

void catalog_filled(struct catalog *catalog, const struct config_source *source)
{
    pthread_mutex_lock(&catalog->lock);
    struct source_entry *entry = catalog_present_source(catalog, source);
    if (entry)
        entry->filled = true;
    pthread_mutex_unlock(&catalog->lock);
}

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
        entry->stale = false; /* what happens from now on makes it stale again */
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

void catalog_set_stale(struct catalog *catalog, struct str source)
{
    pthread_mutex_lock(&catalog->lock);
    catalog_source(catalog, source)->stale = true;
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

/* Under the lock. Nothing of it is known any more. */
static void forget_server(struct catalog *catalog, struct source_entry *entry)
{
    size_t position = 0;
    void *value;
    while (map_next(entry->tools, &position, NULL, &value)) {
        const struct tool_entry *tool = value;
        if (is_counted(tool))
            catalog->counts[tool->annotation]--;
    }
    map_destroy(entry->tools, tool_destroy);
    free(entry->url);
    *entry = (struct source_entry){.tools = map_create(), .reachable = true};
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
    publish_counts(catalog);
    pthread_mutex_unlock(&catalog->lock);
}

void catalog_announce_all(struct catalog *catalog, const struct snapshot *snapshot)
{
    pthread_mutex_lock(&catalog->lock);
    size_t position = 0;
    struct str id;
    void *value;
    while (map_next(catalog->sources, &position, &id, &value)) {
        const struct source_entry *entry = value;
        const struct config_source *source = config_source_find(snapshot->config, id);
        size_t at = 0;
        void *tool;
        while (source && map_next(entry->tools, &at, NULL, &tool))
            announce(catalog, snapshot, source, entry, tool, false);
    }
    publish_counts(catalog);
    pthread_mutex_unlock(&catalog->lock);
}
