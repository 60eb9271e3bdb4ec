/* Verdicts by source. */
#include "source_eras.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/log.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"

#define LEGACY_HOLDS_MS 600000
#define MODERN_HOLDS_MS 5000 /* at least, whatever the server answers */
#define ASKING_MS 5000       /* so long the others go by the older verdict */

struct verdict {
    bool is_known, serves;
    int64_t at_ms;
};

struct entry {
    char *url; /* of the server that the verdicts are about */
    struct verdict legacy, modern;
    bool is_doubted;
    enum source_tasks tasks; /* as announced last */
    bool knows_directories, reads_directories;
    int64_t asked_ms;
    unsigned told; /* the last word in the log; 0: nothing */
};

struct source_eras {
    pthread_mutex_t lock;
    atomic_bool has_modern_alone; /* some server was found to be; stays true */
    atomic_ullong edition;        /* another one with each verdict, in no other table either */
    struct map *entries;          /* source id -> struct entry */
};

/* The verdict that this thread found last, as long as nothing is learnt: most calls need no lock
 * then. */
#define LAST_BYTES 256
static _Thread_local struct {
    unsigned long long edition; /* 0: nothing */
    int64_t until_ms;
    unsigned served;
    char id[LAST_BYTES], url[LAST_BYTES];
} last_found;

static void begin_edition(struct source_eras *eras)
{
    static atomic_ullong editions;
    atomic_store(&eras->edition, atomic_fetch_add(&editions, 1) + 1);
}

struct source_eras *source_eras_create(void)
{
    struct source_eras *eras = memory_alloc(sizeof *eras);
    pthread_mutex_init(&eras->lock, NULL);
    eras->entries = map_create();
    begin_edition(eras);
    return eras;
}

static void destroy(void *value)
{
    struct entry *entry = value;
    free(entry->url);
    free(entry);
}

void source_eras_destroy(struct source_eras *eras)
{
    if (!eras)
        return;
    map_destroy(eras->entries, destroy);
    pthread_mutex_destroy(&eras->lock);
    free(eras);
}

/* Under the lock. A source whose server is another one now begins anew. */
static struct entry *source_eras_entry_of(struct source_eras *eras,
                                          const struct config_source *source)
{
    struct entry *entry = map_get(eras->entries, str_from(source->id));
    if (!entry) {
        entry = memory_alloc(sizeof *entry);
        *entry = (struct entry){.url = NULL};
        map_put(eras->entries, str_from(source->id), entry);
    }
    if (entry->url && strcmp(entry->url, source->url) == 0)
        return entry;
    free(entry->url);
    *entry = (struct entry){.url = memory_copy_text(source->url)};
    begin_edition(eras);
    return entry;
}

static unsigned served_by(const struct entry *entry)
{
    unsigned legacy = !entry->legacy.is_known || entry->legacy.serves ? CONFIG_ERA_LEGACY : 0;
    return legacy | (entry->modern.serves ? CONFIG_ERA_MODERN : 0);
}

static bool is_settled(const struct entry *entry, int64_t now_ms)
{
    const struct verdict *modern = &entry->modern;
    if (!modern->is_known)
        return false;
    return modern->serves ? !entry->is_doubted : now_ms - modern->at_ms < LEGACY_HOLDS_MS;
}

static bool is_last_found(struct source_eras *eras, const struct config_source *source,
                          int64_t now_ms)
{
    return last_found.edition == atomic_load(&eras->edition) && now_ms < last_found.until_ms &&
           strcmp(last_found.id, source->id) == 0 && strcmp(last_found.url, source->url) == 0;
}

/* Under the lock: the verdict is settled. */
static void keep_found(struct source_eras *eras, const struct config_source *source,
                       const struct entry *entry)
{
    if (strlen(source->id) >= LAST_BYTES || strlen(source->url) >= LAST_BYTES)
        return;
    stpcpy(last_found.id, source->id);
    stpcpy(last_found.url, source->url);
    last_found.edition = atomic_load(&eras->edition);
    last_found.served = served_by(entry);
    last_found.until_ms = entry->modern.serves ? INT64_MAX : entry->modern.at_ms + LEGACY_HOLDS_MS;
}

bool source_eras_find(struct source_eras *eras, const struct config_source *source, int64_t now_ms,
                      unsigned *served)
{
    *served = source->eras;
    if (source->eras != CONFIG_ERA_AUTO)
        return true;
    if (is_last_found(eras, source, now_ms)) {
        *served = last_found.served;
        return true;
    }
    pthread_mutex_lock(&eras->lock);
    struct entry *entry = source_eras_entry_of(eras, source);
    bool settled = is_settled(entry, now_ms);
    *served = served_by(entry);
    if (settled)
        keep_found(eras, source, entry);
    if (!settled && entry->modern.is_known) {
        settled = entry->asked_ms > 0 && now_ms - entry->asked_ms < ASKING_MS;
        if (!settled)
            entry->asked_ms = now_ms;
    }
    pthread_mutex_unlock(&eras->lock);
    return settled;
}

bool source_eras_lacks_sessions(struct source_eras *eras, const struct config_source *source)
{
    if (source->eras != CONFIG_ERA_AUTO)
        return source->eras == CONFIG_ERA_MODERN;
    if (!atomic_load_explicit(&eras->has_modern_alone, memory_order_relaxed))
        return false;
    pthread_mutex_lock(&eras->lock);
    bool is_alone = served_by(source_eras_entry_of(eras, source)) == CONFIG_ERA_MODERN;
    pthread_mutex_unlock(&eras->lock);
    return is_alone;
}

static unsigned served_now(struct source_eras *eras, const struct config_source *source,
                           int64_t now_ms)
{
    unsigned served;
    source_eras_find(eras, source, now_ms, &served);
    return served;
}

bool source_eras_has_sessions(struct source_eras *eras, const struct config_source *source,
                              int64_t now_ms)
{
    return served_now(eras, source, now_ms) & CONFIG_ERA_LEGACY;
}

bool source_eras_bridge_down(struct source_eras *eras, const struct config_source *source,
                             int64_t now_ms)
{
    return (source->bridge & BRIDGE_MODERN) &&
           !(served_now(eras, source, now_ms) & CONFIG_ERA_MODERN);
}

bool source_eras_serves_modern(struct source_eras *eras, const struct config_source *source,
                               int64_t now_ms)
{
    return (served_now(eras, source, now_ms) & CONFIG_ERA_MODERN) ||
           (source->bridge & BRIDGE_MODERN);
}

static const char *source_eras_name_of(unsigned served)
{
    static const char *const names[] = {"none", "legacy", "modern", "both"};
    ASSERT_NUMBERS(served, <, sizeof names / sizeof *names);
    return names[served];
}

void source_eras_note(struct source_eras *eras, const struct config_source *source,
                      enum config_era era, bool serves, int64_t now_ms)
{
    unsigned news = 0;
    pthread_mutex_lock(&eras->lock);
    struct entry *entry = source_eras_entry_of(eras, source);
    struct verdict *verdict = era == CONFIG_ERA_MODERN ? &entry->modern : &entry->legacy;
    *verdict = (struct verdict){true, serves, now_ms};
    if (era == CONFIG_ERA_MODERN)
        entry->is_doubted = false;
    begin_edition(eras);
    if (served_by(entry) == CONFIG_ERA_MODERN)
        atomic_store_explicit(&eras->has_modern_alone, true, memory_order_relaxed);
    if (entry->legacy.is_known && entry->modern.is_known && entry->told != served_by(entry))
        news = entry->told = served_by(entry);
    pthread_mutex_unlock(&eras->lock);
    if (news)
        log_info("The protocol of the server is known", LOG_TEXT("source", source->id),
                 LOG_TEXT("era", source_eras_name_of(source->eras ? source->eras : news)));
}

void source_eras_doubt(struct source_eras *eras, const struct config_source *source, int64_t now_ms)
{
    pthread_mutex_lock(&eras->lock);
    struct entry *entry = source_eras_entry_of(eras, source);
    if (entry->modern.serves && now_ms - entry->modern.at_ms >= MODERN_HOLDS_MS)
        entry->is_doubted = true;
    begin_edition(eras);
    pthread_mutex_unlock(&eras->lock);
}

void source_eras_note_tasks(struct source_eras *eras, const struct config_source *source,
                            bool makes_tasks)
{
    pthread_mutex_lock(&eras->lock);
    source_eras_entry_of(eras, source)->tasks =
        makes_tasks ? SOURCE_MAKES_TASKS : SOURCE_LACKS_TASKS;
    pthread_mutex_unlock(&eras->lock);
}

enum source_tasks source_eras_tasks(struct source_eras *eras, const struct config_source *source)
{
    pthread_mutex_lock(&eras->lock);
    enum source_tasks tasks = source_eras_entry_of(eras, source)->tasks;
    pthread_mutex_unlock(&eras->lock);
    return tasks;
}

void source_eras_note_directories(struct source_eras *eras, const struct config_source *source,
                                  bool reads)
{
    pthread_mutex_lock(&eras->lock);
    struct entry *entry = source_eras_entry_of(eras, source);
    entry->knows_directories = true;
    entry->reads_directories = reads;
    pthread_mutex_unlock(&eras->lock);
}

bool source_eras_find_directories(struct source_eras *eras, const struct config_source *source,
                                  bool *reads)
{
    pthread_mutex_lock(&eras->lock);
    const struct entry *entry = source_eras_entry_of(eras, source);
    bool is_known = entry->knows_directories;
    *reads = entry->reads_directories;
    pthread_mutex_unlock(&eras->lock);
    return is_known;
}
