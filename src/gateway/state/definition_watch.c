/* News for the store, a part at a time, and its answers. */
#include "definition_watch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/loop/loop.h"
#include "taskgate/mcp/definition.h"
#include "taskgate/policy/pins.h"
#include "taskgate/store/definitions.h"

#include "skill_files.h"

/* Definitions that one call tells the store of. */
#define MOST_AT_ONCE 500
#define PAGE 500
#define LOADING_ROUND_MS 100
#define LOADING_MOST_MS 2000

/* A source's definitions of a kind are told to the store by one call at a time: a server that
 * changes all of its names each second makes no queue. */
struct watched {
    struct {
        bool is_under_way;
        bool again;           /* something was left out, or has failed */
        uint64_t seen;        /* hash of the last entries; 0: none, or they are to be given again */
        uint64_t given_again; /* how often `seen` was cleared */
    } kinds[DEFINITION_KINDS];
    char id[];
};

struct definition_watch {
    uint32_t magic; /* DEFINITION_WATCH_MAGIC */
    struct store *store;
    struct loop *loop; /* NULL before the start */
    definition_watch_again again;
    void *context;
    bool is_asking; /* for a page */
    bool is_loaded;
    bool is_stale;        /* changes were missed: what was loaded is to be read anew */
    bool has_failed;      /* a page of it, since the process started */
    int64_t loaded_until; /* the last sequence */
    pthread_mutex_t lock;
    struct map *sources; /* id -> struct watched; those of the configurations */
    struct skill_files *skill_files;
};

#define DEFINITION_WATCH_MAGIC 0x47444501

static struct definition_watch *watch_from(void *context)
{
    return MAGIC_CAST(struct definition_watch, DEFINITION_WATCH_MAGIC, context);
}

struct definition_watch *definition_watch_create(struct store *store)
{
    struct definition_watch *watch = memory_alloc(sizeof *watch);
    MAGIC_SET(watch, DEFINITION_WATCH_MAGIC);
    watch->store = store;
    watch->sources = map_create();
    watch->skill_files = skill_files_create();
    pthread_mutex_init(&watch->lock, NULL);
    pins_begin();
    return watch;
}

void definition_watch_destroy(struct definition_watch *watch)
{
    if (!watch)
        return;
    pins_end();
    map_destroy(watch->sources, free);
    skill_files_destroy(watch->skill_files);
    pthread_mutex_destroy(&watch->lock);
    MAGIC_CLEAR(watch);
    free(watch);
}

struct skill_files *definition_watch_skill_files(const struct definition_watch *watch)
{
    return watch->skill_files;
}

/* ---- from the store ---- */

static bool put(const struct store_definition *row, bool is_answer)
{
    struct pin_name name = {.source = str_from(row->source), .name = str_from(row->name)};
    const struct pin_row pin = {row->digest, row->accepted, row->difference, row->flags};
    return !definition_kind_parse(str_from(row->kind), &name.kind) ||
           pins_put(&name, &pin, is_answer);
}

static void definition_watch_load(struct definition_watch *watch);

static void definition_watch_on_page(void *context, const struct store_reply *reply)
{
    struct definition_watch *watch = watch_from(context);
    watch->is_asking = false;
    if (reply->status != STORE_OK) {
        watch->has_failed = true;
        return; /* definition_watch_retry() goes on */
    }
    for (size_t i = 0; i < reply->definition_count; i++)
        put(&reply->definitions[i], false);
    if (reply->definition_count > 0)
        watch->loaded_until = reply->definitions[reply->definition_count - 1].sequence;
    if (watch->is_stale)
        watch->loaded_until = 0;
    if (reply->has_more || watch->is_stale) {
        watch->is_stale = false;
        definition_watch_load(watch);
        return;
    }
    watch->is_loaded = true;
    pins_loaded();
}

static void definition_watch_load(struct definition_watch *watch)
{
    if (watch->is_asking)
        return;
    watch->is_asking = true;
    const struct store_definition_query query = {.after_sequence = watch->loaded_until,
                                                 .limit = PAGE};
    store_definition_list(watch->store, &query,
                          (struct store_call){watch->loop, definition_watch_on_page, watch});
}

static void on_row(void *context, const struct store_reply *reply)
{
    (void)context;
    if (reply->status == STORE_OK)
        put(&reply->definitions[0], false);
}

static void definition_watch_on_change(void *context, struct str id)
{
    struct definition_watch *watch = watch_from(context);
    if (str_equal(id, STR(STORE_DEFINITION_ID_PREFIX))) {
        watch->is_loaded = false; /* definition_watch_retry() goes on if it fails */
        watch->is_stale = watch->is_asking;
        watch->loaded_until = 0;
        definition_watch_load(watch);
        return;
    }
    store_definition_get(watch->store, id, (struct store_call){watch->loop, on_row, watch});
}

/* The first call is to find what was accepted. A database that hangs does not keep the process from
 * its other work: what it has not told yet is not accepted. */
static void definition_watch_wait_for_load(const struct definition_watch *watch)
{
    int64_t until_ms = clock_monotonic_ms() + LOADING_MOST_MS;
    while (!watch->is_loaded && !watch->has_failed && clock_monotonic_ms() < until_ms)
        loop_run_once(watch->loop, LOADING_ROUND_MS);
    if (!watch->is_loaded)
        log_warn("Definitions are not read yet: until they are, each counts as changed");
}

void definition_watch_start(struct definition_watch *watch, struct loop *loop,
                            definition_watch_again again, void *context)
{
    watch->loop = loop;
    watch->again = again;
    watch->context = context;
    store_observe_ids(watch->store, STORE_DEFINITION, loop, definition_watch_on_change, watch);
    definition_watch_load(watch);
    definition_watch_wait_for_load(watch);
}

/* ---- to the store ---- */

/* One list that is told. */
struct telling {
    struct definition_watch *watch;
    struct watched *watched;
    enum definition_kind kind;
    bool may_tell;
    struct store_definition *items;
    size_t count;
    bool is_cut;
};

/* Under the lock. */
static struct watched *watched_of(struct definition_watch *watch, struct str source)
{
    struct watched *watched = map_get(watch->sources, source);
    if (!watched) {
        watched = memory_alloc(sizeof *watched + source.length + 1);
        if (source.length > 0)
            memcpy(watched->id, source.bytes, source.length);
        map_put(watch->sources, source, watched);
    }
    return watched;
}

static void begin(struct telling *telling, struct definition_watch *watch,
                  const struct definition_items *list)
{
    *telling = (struct telling){.watch = watch, .kind = list->kind};
    if (!watch)
        return;
    pthread_mutex_lock(&watch->lock);
    struct watched *watched = telling->watched = watched_of(watch, str_from(list->source->id));
    bool *is_under_way = &watched->kinds[list->kind].is_under_way;
    telling->may_tell = watch->loop && !*is_under_way;
    *is_under_way = *is_under_way || telling->may_tell;
    pthread_mutex_unlock(&watch->lock);
}

static void add(struct telling *telling, const struct definition_items *list,
                const struct definition_item *item, unsigned flags)
{
    OWNED_BUFFER(text);
    if (!telling->may_tell || telling->count == MOST_AT_ONCE) {
        telling->is_cut = true;
        return;
    }
    ASSERT_NUMBERS(telling->count, <, MOST_AT_ONCE);
    if (!telling->items)
        telling->items = memory_alloc_array(MOST_AT_ONCE, sizeof *telling->items);
    list->write_text(item, &text);
    telling->items[telling->count++] = (struct store_definition){
        .source = memory_copy_text(list->source->id),
        .kind = memory_copy_text(definition_kind_name(list->kind)),
        .name = memory_copy_str(item->name),
        .digest = memory_copy_text(item->digest),
        .text = memory_copy_str(str_utf8_cut(buffer_str(&text), STORE_DEFINITION_TEXT_BYTES)),
        .flags = flags,
    };
}

struct told_call {
    struct definition_watch *watch;
    struct watched *watched;
    enum definition_kind kind;
};

/* Under the lock. Only tools are known here to be given again; others come with their next list. */
static void note_again(struct watched *watched, enum definition_kind kind)
{
    watched->kinds[kind].again = true;
    watched->kinds[kind].seen = 0;
    watched->kinds[kind].given_again++;
}

static void on_told(void *context, const struct store_reply *reply)
{
    struct told_call *call = context;
    struct told_call told = *call;
    struct definition_watch *watch = told.watch;
    bool is_kept = reply->status == STORE_OK;
    free(call);
    for (size_t i = 0; i < reply->definition_count; i++)
        is_kept = put(&reply->definitions[i], true) && is_kept;
    pthread_mutex_lock(&watch->lock);
    ASSERT(told.watched->kinds[told.kind].is_under_way);
    told.watched->kinds[told.kind].is_under_way = false;
    bool was_cut = told.watched->kinds[told.kind].again && reply->status == STORE_OK;
    if (was_cut)
        told.watched->kinds[told.kind].again = false;
    else if (!is_kept)
        note_again(told.watched, told.kind);
    pthread_mutex_unlock(&watch->lock);
    if (was_cut && told.kind == DEFINITION_TOOL)
        watch->again(watch->context, str_from(told.watched->id));
}

static void end(struct telling *telling)
{
    struct definition_watch *watch = telling->watch;
    if (!watch)
        return;
    pthread_mutex_lock(&watch->lock);
    if (telling->is_cut)
        note_again(telling->watched, telling->kind);
    if (telling->may_tell && telling->count == 0)
        telling->watched->kinds[telling->kind].is_under_way = false;
    pthread_mutex_unlock(&watch->lock);
    if (telling->count == 0)
        return;
    struct told_call *told = memory_alloc(sizeof *told);
    *told = (struct told_call){watch, telling->watched, telling->kind};
    store_definitions_see(watch->store, telling->items, telling->count,
                          (struct store_call){watch->loop, on_told, told});
}

void definition_watch_retry(struct definition_watch *watch)
{
    size_t position = 0;
    void *value;
    if (!watch->is_loaded)
        definition_watch_load(watch);
    pthread_mutex_lock(&watch->lock);
    OWNED_BUFFER(ids);
    while (map_next(watch->sources, &position, NULL, &value)) {
        struct watched *watched = value;
        if (!watched->kinds[DEFINITION_TOOL].again || watched->kinds[DEFINITION_TOOL].is_under_way)
            continue;
        watched->kinds[DEFINITION_TOOL].again = false;
        buffer_append_format(&ids, "%s\n", watched->id);
    }
    pthread_mutex_unlock(&watch->lock);
    struct str id, rest = buffer_str(&ids);
    while (rest.length > 0) {
        str_cut(rest, '\n', &id, &rest);
        watch->again(watch->context, id);
    }
}

/* ---- lists ---- */

#define FULL_AGAIN_MS (INT64_C(3600) * 1000)

static void say_full(const struct config_source *source)
{
    static _Atomic(int64_t) said_ms; /* of any source: one line an hour */
    int64_t now_ms = clock_monotonic_ms(), before = said_ms;
    if (before == 0 || now_ms - before >= FULL_AGAIN_MS) {
        said_ms = now_ms;
        log_warn("Source defines more names than are kept: further ones count as changed",
                 LOG_TEXT("source", source->id), LOG_NUMBER("kept", DEFINITIONS_MOST));
    }
}

/* The names of a whole list. */
struct names {
    struct map *first;  /* name -> the item that has it first */
    struct map *folded; /* name as it looks -> the same */
    unsigned *of;       /* flags by the place of an item */
};

static void flag(const struct definition_items *list, struct names *names,
                 const struct definition_item *item, unsigned flag)
{
    ASSERT_NUMBERS(item - list->items, <, (ptrdiff_t)list->count);
    names->of[item - list->items] |= flag;
}

static void note_name(const struct definition_items *list, struct names *names,
                      const struct definition_item *item)
{
    OWNED_BUFFER(folded);
    const struct definition_item *first = map_get(names->first, item->name);
    if (first) {
        if (strcmp(first->digest, item->digest) != 0)
            flag(list, names, first, FLAGGED(DUPLICATE));
        return;
    }
    map_put(names->first, item->name, (void *)item);
    mcp_definition_fold_name(&folded, item->name);
    const struct definition_item *alike = map_get(names->folded, buffer_str(&folded));
    if (alike) {
        flag(list, names, alike, FLAGGED(LOOKALIKE));
        flag(list, names, item, FLAGGED(LOOKALIKE));
    } else {
        map_put(names->folded, buffer_str(&folded), (void *)item);
    }
}

static void see(struct telling *telling, const struct definition_items *list,
                const struct definition_item *item, unsigned flags)
{
    const struct pin_name name = {str_from(list->source->id), list->kind, item->name};
    const unsigned of_lists = FLAGGED(LOOKALIKE) | FLAGGED(DUPLICATE);
    if (!list->is_whole) /* these of the last whole list stay */
        flags |= pins_flags(&name) & of_lists;
    switch (pins_see(&name, item->digest, flags)) {
    case PIN_FRESH:
        add(telling, list, item, flags);
        break;
    case PIN_FULL:
        say_full(list->source);
        break;
    case PIN_SAME:
        break;
    }
}

void definition_watch_see(struct definition_watch *watch, const struct definition_items *list)
{
    struct telling telling;
    struct names names;
    if (list->source->pins[list->kind] == PIN_OFF || list->count == 0)
        return;
    names.first = map_create();
    names.folded = map_create();
    names.of = memory_alloc_array(list->count, sizeof *names.of);
    for (size_t i = 0; i < list->count; i++)
        note_name(list, &names, &list->items[i]);
    begin(&telling, watch, list);
    for (size_t i = 0; i < list->count; i++) {
        const struct definition_item *item = &list->items[i];
        if (map_get(names.first, item->name) == item && pins_can_keep(item->name))
            see(&telling, list, item, item->flags | (list->is_whole ? names.of[i] : 0));
    }
    end(&telling);
    map_destroy(names.first, NULL);
    map_destroy(names.folded, NULL);
    free(names.of);
}

/* ---- entries as they are sent ---- */

struct entry {
    char *name;
    struct mcp_definition definition;
};

static void write_entry(const struct definition_item *item, struct buffer *out)
{
    const struct entry *entry = item->of;
    buffer_append(out, buffer_str(&entry->definition.text));
}

static void see_all(struct definition_watch *watch, const struct config_source *source,
                    enum definition_kind kind, struct str entries, bool is_whole)
{
    size_t most = json_count(entries), count = 0, position = 0;
    struct entry *read = memory_alloc_array(most + 1, sizeof *read);
    struct definition_item *items = memory_alloc_array(most + 1, sizeof *items);
    struct str entry;
    while (json_next_element(entries, &position, &entry)) {
        const char *key = kind == DEFINITION_SKILL ? "uri" : "name";
        OWNED_BUFFER(name);
        if (json_decode_string(json_member(entry, key), &name)) {
            struct mcp_definition *definition = &read[count].definition;
            mcp_definition_read(definition, kind, entry);
            size_t length;
            read[count].name = buffer_take(&name, &length);
            items[count] =
                (struct definition_item){str_slice(read[count].name, length), definition->digest,
                                         definition->flags, &read[count]};
            if (watch && kind == DEFINITION_SKILL)
                skill_files_put(watch->skill_files,
                                &(struct skill_entry){str_from(source->id), items[count].name,
                                                      definition->digest, entry});
            count++;
        }
    }
    const struct definition_items list = {source, kind, is_whole, items, count, write_entry};
    definition_watch_see(watch, &list);
    for (size_t i = 0; i < count; i++) {
        mcp_definition_finish(&read[i].definition);
        free(read[i].name);
    }
    free(read);
    free(items);
}

void definition_watch_see_entries(struct definition_watch *watch,
                                  const struct config_source *source, enum definition_kind kind,
                                  struct str entries, bool is_whole)
{
    if (source->pins[kind] == PIN_OFF || json_type(entries) != JSON_ARRAY)
        return;
    if (!watch) {
        see_all(watch, source, kind, entries, is_whole);
        return;
    }
    uint64_t hash = str_hash(entries);
    pthread_mutex_lock(&watch->lock);
    struct watched *watched = watched_of(watch, str_from(source->id));
    bool is_new = watched->kinds[kind].seen != hash;
    uint64_t given_again = watched->kinds[kind].given_again;
    pthread_mutex_unlock(&watch->lock);
    if (!is_new)
        return;
    see_all(watch, source, kind, entries, is_whole);
    /* Not before: another worker takes what was seen as pinned. */
    pthread_mutex_lock(&watch->lock);
    if (watched->kinds[kind].given_again == given_again)
        watched->kinds[kind].seen = hash;
    pthread_mutex_unlock(&watch->lock);
}
