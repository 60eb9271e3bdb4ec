/* The catalogue: one table behind one lock. */
#include "tool_catalog.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "definition_watch.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/list.h"
#include "taskgate/core/log.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/json/canonical.h"
#include "taskgate/mcp/definition.h"

#define LOOKS 64
#define LOOK_AGAIN_MS 5000
#define FETCH_AGAIN_MS 1000
#define FAULTS_EVERY_MS INT64_C(3600000)
#define STREAM_AGAIN_MS 60000
#define AWAY_EVERY_MS INT64_C(60000)
#define TOOL_NAME_BYTES 1024
/* All definitions and lists; beyond it the longest unseen owner is forgotten, too. */
#define MOST_BYTES ((size_t)128 * 1024 * 1024)

/* When an owner's call last fetched the list, by the owner's hash. Each owner fetches for itself,
 * because a server may tell a stranger nothing. Past the bound the oldest entry is forgotten, and
 * its owner fetches again. */
struct look {
    uint64_t owner;
    int64_t at_ms; /* monotonic; 0: never */
};

/* The list of one owner. */
struct told {
    struct list node; /* in catalog.recent; of the gateway's own in none */
    struct source_entry *source;
    struct tool_list *list;        /* NULL: nothing yet */
    struct catalog_page *building; /* the pages so far of a list that goes on; NULL */
    uint64_t epoch;                /* of the last whole list; 0: there was none */
    size_t owner_length;
    char owner[];
};

struct source_entry {
    char *url;         /* of the server that all this is of; NULL when the configuration lacks it */
    struct map *told;  /* owner -> struct told, but for the gateway's own */
    struct told *own;  /* the gateway's own; NULL until its list came */
    struct map *lists; /* the different ones of them all */
    struct map *views; /* name -> struct tool_view, of the tools of them all */
    struct tool_list *whole; /* the last whole list of anybody, for what is counted; or NULL */
    uint64_t epoch;          /* catalog_epoch() */
    bool filled;
    bool stale;                            /* filled, and upstream may have other tools now */
    bool fetching;                         /* the gateway itself fetches it now */
    int64_t fetched_ms;                    /* monotonic: when that last began */
    int64_t fault_ms[CATALOG_FAULT_COUNT]; /* monotonic: when it was last complained of; 0: never */
    int64_t no_stream_ms; /* monotonic: when GET was last answered with 405; 0: never */
    struct look looks[LOOKS];
    unsigned next_look;
    bool has_capabilities, has_seen_tasks;
    struct mcp_capabilities capabilities;
    bool reachable; /* when last tried */
    bool tried;
    bool was_reachable;   /* at some time */
    int64_t connected_ms; /* wall clock: since when it is reachable */
    bool is_said_away;    /* the log's last word on it */
    int64_t away_said_ms; /* monotonic; 0: never */
};

struct catalog {
    pthread_mutex_t lock; /* first: a test holds it */
    struct map *sources;
    struct known_tools *tools;
    struct server_observer observer;
    struct definition_watch *watch; /* or NULL */
    struct list recent;             /* struct told.node, the longest unseen first */
    size_t told_count, told_bytes;
    long counts[3];             /* visible tools by annotation */
    atomic_bool has_seen_tasks; /* of any source, be it gone */
};

/* ---- what each thread has found lately ---- */

/* So that calls of known tools take no lock. An entry holds until a catalogue of the process
 * changes, and for a second at most, because the catalogue must see now and then that an owner is
 * still there. */
#define FOUND_SLOTS 64
#define FOUND_TEXT_BYTES 256
#define FOUND_HOLDS_MS 1000

/* Of all catalogues, and never 0. */
static _Atomic(uint64_t) found_version = 1;

static _Thread_local struct found {
    const struct catalog *catalog;
    uint64_t version; /* 0: the slot is free */
    int64_t until_ms; /* monotonic */
    size_t lengths[3];
    char text[FOUND_TEXT_BYTES]; /* source, owner, name, one after the other */
    struct catalog_tool tool;
    bool is_of_source; /* it has `has_seen_tasks`, else `tool` */
    bool has_seen_tasks;
} found_slots[FOUND_SLOTS];

/* The catalogue has changed. Under its lock. */
static void found_renew(void)
{
    atomic_fetch_add_explicit(&found_version, 1, memory_order_release);
}

uint64_t catalog_version(void)
{
    return atomic_load_explicit(&found_version, memory_order_acquire);
}

/* Names that share a slot only cost another look, so the hash need not be strong. */
static size_t mix_text(size_t mixed, struct str text)
{
    mixed = mixed * 31 + text.length;
    if (text.length > 0)
        mixed = mixed * 31 + (unsigned char)text.bytes[0] +
                (size_t)(unsigned char)text.bytes[text.length - 1] * 7 +
                (size_t)(unsigned char)text.bytes[text.length / 2] * 13;
    return mixed;
}

static struct found *found_slot(const struct catalog_asked *asked, bool is_of_source)
{
    size_t mixed = mix_text(mix_text(mix_text(0, asked->source), asked->owner), asked->name);
    return &found_slots[(mixed + is_of_source) % FOUND_SLOTS];
}

/* NULL when this thread must look into the catalogue. */
static const struct found *found_get(const struct catalog *catalog,
                                     const struct catalog_asked *asked, bool is_of_source)
{
    const struct str texts[] = {asked->source, asked->owner, asked->name};
    const struct found *found = found_slot(asked, is_of_source);
    const char *at = found->text;
    if (found->version != catalog_version() || found->catalog != catalog ||
        found->is_of_source != is_of_source)
        return NULL;
    for (size_t i = 0; i < 3; i++) {
        if (!str_equal(texts[i], str_slice(at, found->lengths[i])))
            return NULL;
        at += found->lengths[i];
    }
    return found->until_ms > clock_monotonic_ms() ? found : NULL;
}

/* `version` is the one under the lock while the answer was read, which the caller fills in. NULL:
 * the name is too long to be kept. */
static struct found *found_keep(const struct catalog *catalog, const struct catalog_asked *asked,
                                bool is_of_source, uint64_t version)
{
    const struct str texts[] = {asked->source, asked->owner, asked->name};
    struct found *found = found_slot(asked, is_of_source);
    size_t length = 0;
    found->version = 0;
    for (size_t i = 0; i < 3; i++) {
        if (texts[i].length > FOUND_TEXT_BYTES - length)
            return NULL;
        if (texts[i].length > 0)
            memcpy(found->text + length, texts[i].bytes, texts[i].length);
        found->lengths[i] = texts[i].length;
        length += texts[i].length;
    }
    found->catalog = catalog;
    found->is_of_source = is_of_source;
    found->version = version;
    found->until_ms = clock_monotonic_ms() + FOUND_HOLDS_MS;
    return found;
}

/* ---- sources ---- */

static void source_entry_init(struct source_entry *entry, uint64_t epoch)
{
    *entry = (struct source_entry){
        .told = map_create(),
        .lists = map_create(),
        .views = map_create(),
        .epoch = epoch,
        .reachable = true,
    };
}

static struct source_entry *source_of_catalog(struct catalog *catalog, struct str source)
{
    struct source_entry *entry = map_get(catalog->sources, source);
    if (!entry) {
        entry = memory_alloc(sizeof *entry);
        source_entry_init(entry, 1);
        map_put(catalog->sources, source, entry);
    }
    return entry;
}

/* NULL for an answer of the source's server before a reload. */
static struct source_entry *present_source(struct catalog *catalog,
                                           const struct config_source *source)
{
    struct source_entry *entry = source_of_catalog(catalog, str_from(source->id));
    if (!entry->url)
        entry->url = memory_copy_text(source->url);
    return strcmp(entry->url, source->url) == 0 ? entry : NULL;
}

/* ---- a source's tools over all owners: for those without a list, the log and the gauge ---- */

/* One definition of the tool, and how many of the source's different lists have it. */
struct variant {
    const struct known_tool *tool; /* the lists hold it */
    size_t lists;
};

struct tool_view {
    char *name;
    uint64_t hash;
    struct variant *variants;
    size_t variant_count;
    bool is_discovery; /* came after the source's first whole list */
    bool announced;    /* `annotation` has been logged */
    bool visible;
    bool gone; /* the last whole list was without it */
    enum policy_annotation annotation;
};

/* ---- which lists have it ---- */

static struct tool_view *obtain_view(struct source_entry *entry, const struct known_tool *tool)
{
    struct tool_view *view = map_get(entry->views, known_tool_name(tool));
    if (view)
        return view;
    view = memory_alloc(sizeof *view);
    view->name = memory_copy_str(known_tool_name(tool));
    view->hash = tool->hash;
    view->is_discovery = entry->filled;
    map_put(entry->views, known_tool_name(tool), view);
    return view;
}

static struct variant *find_variant(const struct tool_view *view, const struct known_tool *tool)
{
    for (size_t i = 0; i < view->variant_count; i++) {
        if (view->variants[i].tool == tool)
            return &view->variants[i];
    }
    return NULL;
}

/* The first owner has got this list. */
static void views_add_list(struct source_entry *entry, const struct tool_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct known_tool *tool = list->items[i].tool;
        struct tool_view *view = obtain_view(entry, tool);
        struct variant *variant = find_variant(view, tool);
        if (!variant) {
            view->variants =
                memory_grow_array(view->variants, view->variant_count + 1, sizeof *view->variants);
            variant = &view->variants[view->variant_count++];
            *variant = (struct variant){.tool = tool};
        }
        variant->lists++;
    }
}

static bool is_counted(const struct tool_view *view)
{
    return view->announced && view->visible && !view->gone;
}

static void forget_view(struct catalog *catalog, struct source_entry *entry, struct tool_view *view,
                        struct str name)
{
    if (is_counted(view))
        catalog->counts[view->annotation]--;
    map_remove(entry->views, name);
    free(view->variants);
    free(view->name);
    free(view);
}

/* The last owner has lost it. */
static void views_remove_list(struct catalog *catalog, struct source_entry *entry,
                              const struct tool_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct known_tool *tool = list->items[i].tool;
        struct tool_view *view = map_get(entry->views, known_tool_name(tool));
        struct variant *variant = view ? find_variant(view, tool) : NULL;
        ASSERT(variant && variant->lists > 0);
        if (--variant->lists > 0)
            continue;
        *variant = view->variants[--view->variant_count];
        if (view->variant_count == 0)
            forget_view(catalog, entry, view, known_tool_name(tool));
    }
}

/* ---- what counts where there are several ---- */

/* `true` is the strict value of these hints, `false` that of the others. */
#define STRICT_WHEN_TRUE (1U << HINT_DESTRUCTIVE | 1U << HINT_OPEN_WORLD)

/* A missing hint is stricter than the mild value, and milder than the strict one. */
static struct policy_hints strictest_hints(struct policy_hints a, struct policy_hints b)
{
    struct policy_hints strictest = {0};
    for (unsigned bit = 1; bit < 1U << HINT_COUNT; bit <<= 1) {
        unsigned strict = bit & STRICT_WHEN_TRUE;
        bool a_is_strict = (a.given & bit) && (a.truth & bit) == strict;
        bool b_is_strict = (b.given & bit) && (b.truth & bit) == strict;
        if (a_is_strict || b_is_strict) {
            strictest.given |= bit;
            strictest.truth |= strict;
        } else if (a.given & b.given & bit) {
            strictest.given |= bit;
            strictest.truth |= a.truth & bit;
        }
    }
    return strictest;
}

static void add_strictest(struct catalog_tool *all, const struct catalog_tool *one)
{
    if (one->has_own && (!all->has_own || one->own > all->own))
        all->own = one->own;
    all->has_own = all->has_own || one->has_own;
    all->has_output_schema = all->has_output_schema || one->has_output_schema;
    all->hints = strictest_hints(all->hints, one->hints);
}

static struct catalog_tool strictest_of(const struct tool_view *view)
{
    ASSERT_NUMBERS(view->variant_count, >, 0);
    struct catalog_tool all = view->variants[0].tool->facts;
    for (size_t i = 1; i < view->variant_count; i++)
        add_strictest(&all, &view->variants[i].tool->facts);
    return all;
}

static const struct known_tool *gateways_tool(const struct source_entry *entry, struct str name,
                                              uint64_t hash)
{
    const struct tool_list_item *item =
        entry->own ? tool_list_find(entry->own->list, name, hash) : NULL;
    return item ? item->tool : NULL;
}

/* The tool for an owner that got no list; UNKNOWN when nobody got the tool. */
static void views_find(const struct source_entry *entry, struct str name, struct catalog_tool *tool)
{
    const struct tool_view *view = map_get(entry->views, name);
    *tool = (struct catalog_tool){.word = CATALOG_UNKNOWN};
    if (!view)
        return;
    const struct known_tool *own = gateways_tool(entry, name, view->hash);
    *tool = strictest_of(view);
    tool->word = own ? CATALOG_GATEWAYS : CATALOG_OTHERS;
    tool->digest[0] = tool->definition[0] = '\0';
    if (own) {
        memcpy(tool->digest, own->facts.digest, sizeof tool->digest);
        memcpy(tool->definition, own->facts.definition, sizeof tool->definition);
    }
}

/* ---- announcing ---- */

static void views_publish_counts(const struct catalog *catalog)
{
    for (int i = 0; i < 3; i++) {
        const char *name = policy_annotation_name((enum policy_annotation)i);
        metrics_set(METRIC_TOOLS_BY_ANNOTATION, (double)catalog->counts[i],
                    METRIC_LABELS(str_from(name)));
    }
}

/* The INFO line, in fixed words (behaviour 5.9). */
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

/* The announcement comes from the gateway's own view, so that the log does not have it anew with
 * each list of several users. */
static void announce_view(struct catalog *catalog, const struct snapshot *snapshot,
                          const struct config_source *source, const struct source_entry *entry,
                          struct tool_view *view)
{
    struct policy_request request = {source, str_from(view->name), STR_EMPTY};
    struct policy_decision decision;
    const struct known_tool *own = gateways_tool(entry, request.name, view->hash);
    const struct catalog_tool tool = own ? own->facts : strictest_of(view);
    policy_decide(snapshot->policy, &request, &decision);
    bool upstream_tasks = entry->capabilities.tasks;
    bool visible = policy_is_visible(snapshot->policy, source, request.name);
    enum policy_annotation annotation =
        policy_annotate(&decision, upstream_tasks, tool.has_own, tool.own);
    if (view->announced && view->visible == visible && view->annotation == annotation)
        return;
    if (is_counted(view))
        catalog->counts[view->annotation]--;
    if (visible || !view->announced)
        log_annotation(view->name, &decision, upstream_tasks, annotation, source->id,
                       view->is_discovery && !view->announced);
    view->announced = true;
    view->visible = visible;
    view->annotation = annotation;
    if (is_counted(view))
        catalog->counts[annotation]++;
}

/* Logs and counts the announcements of the list's tools, if they are new. */
static void views_announce(struct catalog *catalog, const struct snapshot *snapshot,
                           const struct config_source *source, struct source_entry *entry,
                           const struct tool_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        announce_view(catalog, snapshot, source, entry,
                      map_get(entry->views, known_tool_name(list->items[i].tool)));
}

static void views_announce_all(struct catalog *catalog, const struct snapshot *snapshot,
                               const struct config_source *source, struct source_entry *entry)
{
    size_t position = 0;
    void *view;
    while (map_next(entry->views, &position, NULL, &view))
        announce_view(catalog, snapshot, source, entry, view);
}

static void set_gone(struct catalog *catalog, struct tool_view *view, bool gone)
{
    if (is_counted(view))
        catalog->counts[view->annotation]--;
    view->gone = gone;
    if (is_counted(view))
        catalog->counts[view->annotation]++;
}

/* For the gauge: the tool is there. */
static void views_see(struct catalog *catalog, struct source_entry *entry,
                      const struct known_tool *tool)
{
    set_gone(catalog, map_get(entry->views, known_tool_name(tool)), false);
}

/* Of a whole list its tools alone are. */
static void views_see_whole(struct catalog *catalog, struct source_entry *entry,
                            const struct tool_list *list)
{
    size_t position = 0;
    struct str name;
    void *value;
    while (map_next(entry->views, &position, &name, &value)) {
        struct tool_view *view = value;
        const struct tool_list_item *item = tool_list_find(list, name, view->hash);
        set_gone(catalog, view, !item || item->gone);
    }
}

/* ---- the lists of each owner, page by page ---- */

/* The tools of the catalogue as definitions that are pinned. */

static void write_tool_text(const struct definition_item *item, struct buffer *out)
{
    known_tool_write_text(item->of, out);
}

/* Pins tools in the order of their list, or of a part of it. */
static void tool_pins_see(struct catalog *catalog, const struct config_source *source,
                          struct known_tool *const *tools, size_t count, bool is_whole)
{
    struct definition_item *items = memory_alloc_array(count + 1, sizeof *items);
    for (size_t i = 0; i < count; i++)
        items[i] = (struct definition_item){known_tool_name(tools[i]), tools[i]->facts.definition,
                                            tools[i]->flags, tools[i]};
    const struct definition_items list = {source, DEFINITION_TOOL, is_whole,
                                          items,  count,           write_tool_text};
    definition_watch_see(catalog->watch, &list);
    free(items);
}

void catalog_set_watch(struct catalog *catalog, struct definition_watch *watch)
{
    catalog->watch = watch;
}

/* Under the lock. */
static void see_again(struct catalog *catalog, const struct config_source *source,
                      const struct tool_list *list)
{
    struct known_tool **tools = memory_alloc_array(list->count + 1, sizeof(struct known_tool *));
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (!list->items[i].gone)
            tools[count++] = list->items[i].tool;
    }
    tool_pins_see(catalog, source, tools, count, false);
    free(tools);
}

void catalog_pin_again(struct catalog *catalog, struct str id)
{
    struct snapshot *snapshot = snapshot_current();
    const struct config_source *source = config_source_find(snapshot->config, id);
    pthread_mutex_lock(&catalog->lock);
    const struct source_entry *entry = map_get(catalog->sources, id);
    const struct tool_list *list = entry && entry->own ? entry->own->list : NULL;
    if (entry && entry->whole)
        list = entry->whole;
    if (source && list)
        see_again(catalog, source, list);
    pthread_mutex_unlock(&catalog->lock);
    snapshot_unref(snapshot);
}

struct catalog_page {
    struct catalog *catalog;
    struct known_tool **tools; /* counted */
    size_t count, room;
    struct buffer key; /* room for one */
};

/* ---- pages ---- */

struct catalog_page *catalog_page_create(struct catalog *catalog)
{
    struct catalog_page *page = memory_alloc(sizeof *page);
    page->catalog = catalog;
    return page;
}

/* Under the lock. */
static void page_destroy(struct catalog_page *page)
{
    for (size_t i = 0; i < page->count; i++)
        known_tool_unref(page->catalog->tools, page->tools[i]);
    buffer_finish(&page->key);
    free(page->tools);
    free(page);
}

void catalog_page_destroy(struct catalog_page *page)
{
    if (!page)
        return;
    struct catalog *catalog = page->catalog;
    pthread_mutex_lock(&catalog->lock);
    page_destroy(page);
    pthread_mutex_unlock(&catalog->lock);
}

size_t catalog_page_bytes(const struct catalog_page *page)
{
    size_t bytes = sizeof *page + page->key.capacity + page->room * sizeof(struct known_tool *);
    for (size_t i = 0; i < page->count; i++)
        bytes += known_tool_bytes(page->tools[i]);
    return bytes;
}

/* Takes the reference over. */
static void page_append(struct catalog_page *page, struct known_tool *tool)
{
    if (page->count == page->room) {
        page->room = page->room ? 2 * page->room : 16;
        page->tools = memory_grow_array(page->tools, page->room, sizeof(struct known_tool *));
    }
    page->tools[page->count++] = tool;
}

/* Lists mostly bring the same definitions as before; only new ones are digested. */
static struct known_tool *obtain_tool(struct catalog_page *page, const struct mcp_tool *tool)
{
    struct catalog *catalog = page->catalog;
    char digest[DIGEST_HEX_BYTES];
    buffer_clear(&page->key);
    known_tool_write_key(&page->key, tool);
    struct str key = buffer_str(&page->key);
    pthread_mutex_lock(&catalog->lock);
    struct known_tool *known = known_tool_find(catalog->tools, key);
    pthread_mutex_unlock(&catalog->lock);
    if (!known) {
        struct mcp_definition definition;
        canonical_digest(tool->raw, digest);
        mcp_definition_read(&definition, DEFINITION_TOOL, tool->raw);
        pthread_mutex_lock(&catalog->lock);
        known = known_tool_obtain(catalog->tools, key, tool, digest, &definition);
        pthread_mutex_unlock(&catalog->lock);
        mcp_definition_finish(&definition);
    }
    return known;
}

bool catalog_page_add(void *context, const struct mcp_tool *tool, enum policy_annotation *announce)
{
    struct catalog_page *page = context;
    if (tool->name.length <= TOOL_NAME_BYTES && page->count < LIST_TOOLS_MOST)
        page_append(page, obtain_tool(page, tool));
    return true;
}

/* Under the lock. The tools of `page` come behind those of `pages`. */
static void move_tools(struct catalog_page *pages, const struct catalog_page *page)
{
    for (size_t i = 0; i < page->count && pages->count < LIST_TOOLS_MOST; i++)
        page_append(pages, known_tool_ref(page->tools[i]));
}

/* ---- owners ---- */

/* NULL: the owner got nothing. */
static struct told *told_find(const struct source_entry *entry, struct str owner)
{
    return owner.length > 0 ? map_get(entry->told, owner) : entry->own;
}

static size_t size_of_told(const struct told *told)
{
    return sizeof *told + 2 * told->owner_length;
}

static struct told *obtain_told(struct catalog *catalog, struct source_entry *entry,
                                struct str owner)
{
    struct told *told = told_find(entry, owner);
    if (told)
        return told;
    told = memory_alloc(sizeof *told + owner.length);
    told->source = entry;
    told->owner_length = owner.length;
    memcpy(told->owner, owner.length > 0 ? owner.bytes : "", owner.length);
    list_init(&told->node);
    if (owner.length > 0) {
        map_put(entry->told, owner, told);
        catalog->told_count++;
        catalog->told_bytes += size_of_told(told);
    } else {
        entry->own = told;
    }
    return told;
}

/* The last owner of the list takes it out of the views. */
static void release_list(struct catalog *catalog, struct source_entry *entry,
                         struct tool_list *list)
{
    if (list && list->references == 1)
        views_remove_list(catalog, entry, list);
    tool_list_unref(catalog->tools, entry->lists, list);
}

static void told_destroy(struct catalog *catalog, struct told *told)
{
    found_renew();
    release_list(catalog, told->source, told->list);
    if (told->building)
        page_destroy(told->building);
    free(told);
}

static void told_forget(struct catalog *catalog, struct told *told)
{
    ASSERT(told != told->source->own);
    ASSERT_NUMBERS(catalog->told_count, >, 0);
    map_remove(told->source->told, str_slice(told->owner, told->owner_length));
    list_remove(&told->node);
    catalog->told_count--;
    catalog->told_bytes -= size_of_told(told);
    told_destroy(catalog, told);
}

static void told_forget_all(struct catalog *catalog, struct source_entry *entry)
{
    LIST_FOR_EACH_SAFE (node, next, &catalog->recent) {
        struct told *told = LIST_ENTRY(node, struct told, node);
        if (told->source == entry)
            told_forget(catalog, told);
    }
    if (entry->own)
        told_destroy(catalog, entry->own);
    entry->own = NULL;
    release_list(catalog, entry, entry->whole);
    entry->whole = NULL;
}

static size_t bytes_of_lists(const struct catalog *catalog)
{
    return catalog->told_bytes + known_tools_bytes(catalog->tools);
}

static struct told *longest_unseen_told(struct catalog *catalog)
{
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what was forgotten is in no list */
    return LIST_ENTRY(catalog->recent.next, struct told, node);
}

/* The owner that has just got something is the last to be forgotten. */
static void make_told_room(struct catalog *catalog, int64_t limit)
{
    size_t most = (size_t)(limit > 0 ? limit : 1);
    while (catalog->told_count > most) {
        told_forget(catalog, longest_unseen_told(catalog));
        metrics_count(METRIC_LIMITS_REACHED, STR("sessions"));
    }
    while (bytes_of_lists(catalog) > MOST_BYTES && catalog->told_count > 1)
        told_forget(catalog, longest_unseen_told(catalog));
}

size_t catalog_bytes(struct catalog *catalog)
{
    pthread_mutex_lock(&catalog->lock);
    size_t bytes = bytes_of_lists(catalog);
    pthread_mutex_unlock(&catalog->lock);
    return bytes;
}

/* ---- a page that comes ---- */

/* Adds the page to what the owner knows. A whole list replaces the others. */
static struct tool_list *list_with(struct catalog *catalog, const struct tool_list *old,
                                   const struct catalog_page *page, bool is_whole)
{
    struct known_tools *tools = catalog->tools;
    size_t old_count = old ? old->count : 0;
    struct tool_list *list = tool_list_create(tools, old_count + page->count);
    for (size_t i = 0; i < page->count; i++)
        tool_list_put(tools, list, page->tools[i], false);
    for (size_t i = 0; i < old_count; i++) {
        const struct tool_list_item *item = &old->items[i];
        if (!tool_list_find(list, known_tool_name(item->tool), item->tool->hash))
            tool_list_put(tools, list, item->tool, is_whole || item->gone);
    }
    return list;
}

/* Whether the list is exactly the page: the owner got the same before. */
static bool is_same_list(const struct tool_list *list, const struct catalog_page *page)
{
    bool same = list && list->count == page->count;
    for (size_t i = 0; same && i < page->count; i++) {
        const struct known_tool *tool = page->tools[i];
        const struct tool_list_item *item = &list->items[i];
        if (item->tool != tool) /* another order */
            item = tool_list_find(list, known_tool_name(tool), tool->hash);
        same = item && item->tool == tool && !item->gone;
    }
    return same;
}

static void put_list(struct catalog *catalog, const struct catalog_reader *reader,
                     struct told *told, const struct catalog_page *page, bool is_whole)
{
    struct source_entry *entry = told->source;
    struct tool_list *old = told->list, *old_whole = entry->whole, *list = old;
    if (!is_whole || !is_same_list(old, page))
        list =
            tool_list_intern(catalog->tools, entry->lists, list_with(catalog, old, page, is_whole));
    else if (list == old_whole)
        return; /* as most lists are: what was told before */
    else
        list->references++;
    bool is_new = list->references == 1;
    told->list = list;
    found_renew();
    if (is_new)
        views_add_list(entry, list);
    for (size_t i = 0; !is_whole && i < page->count; i++)
        views_see(catalog, entry, page->tools[i]);
    if (!is_whole || list != entry->whole)
        tool_pins_see(catalog, reader->source, page->tools, page->count, is_whole);
    if (is_whole && list != entry->whole)
        views_see_whole(catalog, entry, list);
    if (is_whole)
        list->references++;
    entry->whole = is_whole ? list : NULL;
    release_list(catalog, entry, old_whole);
    release_list(catalog, entry, old);
    if (is_new || told == entry->own)
        views_announce(catalog, reader->snapshot, reader->source, entry, list);
    views_publish_counts(catalog);
}

/* Keeps the pages of a list of several until the last one. True when the list is whole: in
 * `told->building`, or in `page` where there is but one. */
static bool gather_pages(struct told *told, const struct catalog_page *page, bool is_first,
                         bool is_last)
{
    if (is_first) {
        if (told->building)
            page_destroy(told->building);
        told->building = is_last ? NULL : catalog_page_create(page->catalog);
    }
    if (told->building)
        move_tools(told->building, page);
    return is_last && (is_first || told->building);
}

static void put_page(struct catalog *catalog, const struct catalog_reader *reader,
                     struct source_entry *entry, const struct catalog_page *page, bool is_first,
                     bool is_last)
{
    struct told *told = obtain_told(catalog, entry, reader->owner);
    bool is_whole = gather_pages(told, page, is_first, is_last);
    if (reader->owner.length > 0) {
        list_remove(&told->node);
        list_append(&catalog->recent, &told->node);
    }
    put_list(catalog, reader, told, is_whole && told->building ? told->building : page, is_whole);
    if (is_whole) {
        if (told->epoch != reader->epoch)
            found_renew();
        told->epoch = reader->epoch;
        entry->filled = true;
    }
    if (is_whole && told->building) {
        page_destroy(told->building);
        told->building = NULL;
    }
    make_told_room(catalog, reader->snapshot->config->limits.sessions);
}

void catalog_put_page(struct catalog *catalog, const struct catalog_reader *reader,
                      const struct catalog_page *page, bool is_first, bool is_last)
{
    pthread_mutex_lock(&catalog->lock);
    struct source_entry *entry = present_source(catalog, reader->source);
    if (entry)
        put_page(catalog, reader, entry, page, is_first, is_last);
    pthread_mutex_unlock(&catalog->lock);
}

/* ---- words for people ---- */

/* Under the lock. NULL when the owner was not told of the tool. */
static const struct tool_list_item *find_told(const struct catalog *catalog, struct str source,
                                              struct str owner, struct str name)
{
    const struct source_entry *entry = map_get(catalog->sources, source);
    const struct told *told = entry ? told_find(entry, owner) : NULL;
    return told ? tool_list_find(told->list, name, str_hash(name)) : NULL;
}

bool catalog_describe_tool(struct catalog *catalog, const struct catalog_asked *asked,
                           const char *digest, struct buffer *out)
{
    pthread_mutex_lock(&catalog->lock);
    const struct tool_list_item *item =
        find_told(catalog, asked->source, asked->owner, asked->name);
    bool is_listed = item && !item->gone;
    if (is_listed && *item->tool->described && strcmp(item->tool->facts.digest, digest) == 0) {
        bool is_first = out->length > 0 && out->bytes[out->length - 1] == '{';
        buffer_append_text(out, item->tool->described + (is_first ? 1 : 0)); /* the comma */
    }
    pthread_mutex_unlock(&catalog->lock);
    return is_listed;
}

/* ---- what its arguments must be ---- */

char *catalog_copy_input_schema(struct catalog *catalog, struct str source, struct str owner,
                                struct str name, const char *digest)
{
    const struct str readers[] = {owner, CATALOG_GATEWAY};
    char *copy = NULL;
    pthread_mutex_lock(&catalog->lock);
    for (size_t i = 0; !copy && i < sizeof readers / sizeof *readers; i++) {
        const struct tool_list_item *item = find_told(catalog, source, readers[i], name);
        if (item && strcmp(item->tool->facts.digest, digest) == 0 &&
            known_tool_input_schema(item->tool).length > 0)
            copy = memory_copy_str(known_tool_input_schema(item->tool));
    }
    pthread_mutex_unlock(&catalog->lock);
    return copy;
}

/* ---- arguments that headers repeat ---- */

struct known_tool *catalog_hold_parameters(struct catalog *catalog, struct str source,
                                           struct str owner, struct str name)
{
    struct known_tool *held = NULL;
    pthread_mutex_lock(&catalog->lock);
    const struct tool_list_item *item = find_told(catalog, source, owner, name);
    if (item && item->tool->parameters)
        held = known_tool_ref(item->tool);
    pthread_mutex_unlock(&catalog->lock);
    return held;
}

const struct parameter_headers *catalog_parameters(const struct known_tool *held)
{
    return held->parameters;
}

void catalog_release_parameters(struct catalog *catalog, struct known_tool *held)
{
    pthread_mutex_lock(&catalog->lock);
    known_tool_unref(catalog->tools, held);
    pthread_mutex_unlock(&catalog->lock);
}

/* ---- the catalogue ---- */

struct catalog *catalog_create(void)
{
    struct catalog *catalog = memory_alloc(sizeof *catalog);
    found_renew(); /* another one may have been where this is */
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
static void find_for_owner(struct catalog *catalog, const struct source_entry *entry,
                           struct str owner, struct str name, struct catalog_tool *tool)
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
    const struct catalog_asked asked = {source, owner, name};
    const struct found *known = found_get(catalog, &asked, false);
    if (known) {
        *tool = known->tool;
        return;
    }
    *tool = (struct catalog_tool){.word = CATALOG_UNKNOWN};
    pthread_mutex_lock(&catalog->lock);
    uint64_t version = catalog_version();
    const struct source_entry *entry = map_get(catalog->sources, source);
    if (entry)
        find_for_owner(catalog, entry, owner, name, tool);
    pthread_mutex_unlock(&catalog->lock);
    struct found *found = found_keep(catalog, &asked, false, version);
    if (found)
        found->tool = *tool;
}

/* ---- fetching ---- */

enum catalog_fetch catalog_begin_fetch(struct catalog *catalog, const struct config_source *source,
                                       int64_t now_ms)
{
    enum catalog_fetch fetch = CATALOG_FETCH_NOW;
    pthread_mutex_lock(&catalog->lock);
    struct source_entry *entry = present_source(catalog, source);
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
    struct source_entry *entry = present_source(catalog, source);
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
    struct source_entry *entry = source_of_catalog(catalog, str_from(source->id));
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
    struct source_entry *entry = present_source(catalog, source);
    if (entry)
        entry->no_stream_ms = status == 405 ? now_ms : 0;
    pthread_mutex_unlock(&catalog->lock);
}

bool catalog_lacks_stream(struct catalog *catalog, const struct config_source *source,
                          int64_t now_ms)
{
    pthread_mutex_lock(&catalog->lock);
    const struct source_entry *entry = present_source(catalog, source);
    bool lacks =
        entry && entry->no_stream_ms != 0 && now_ms - entry->no_stream_ms < STREAM_AGAIN_MS;
    pthread_mutex_unlock(&catalog->lock);
    return lacks;
}

static void source_changed(struct source_entry *entry)
{
    entry->stale = true;
    entry->epoch++;
    found_renew();
}

uint64_t catalog_epoch(struct catalog *catalog, struct str source)
{
    pthread_mutex_lock(&catalog->lock);
    uint64_t epoch = source_of_catalog(catalog, source)->epoch;
    pthread_mutex_unlock(&catalog->lock);
    return epoch;
}

void catalog_set_stale(struct catalog *catalog, struct str source)
{
    pthread_mutex_lock(&catalog->lock);
    source_changed(source_of_catalog(catalog, source));
    pthread_mutex_unlock(&catalog->lock);
}

bool catalog_look_is_due(struct catalog *catalog, struct str source, struct str owner,
                         int64_t now_ms)
{
    bool due = true;
    uint64_t hash = str_hash(owner);
    pthread_mutex_lock(&catalog->lock);
    const struct source_entry *entry = source_of_catalog(catalog, source);
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
    struct source_entry *entry = source_of_catalog(catalog, source);
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
    source_entry_init(entry, epoch);
    found_renew();
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
        present_source(catalog, &config->sources[i]);
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

/* ---- what servers can do, and whether they answer ---- */

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
    const struct catalog_asked asked = {.source = source};
    if (!atomic_load_explicit(&catalog->has_seen_tasks, memory_order_acquire))
        return false; /* as nearly everywhere */
    const struct found *known = found_get(catalog, &asked, true);
    if (known)
        return known->has_seen_tasks;
    pthread_mutex_lock(&catalog->lock);
    uint64_t version = catalog_version();
    const struct source_entry *entry = map_get(catalog->sources, source);
    bool seen = entry && entry->has_seen_tasks;
    pthread_mutex_unlock(&catalog->lock);
    struct found *found = found_keep(catalog, &asked, true, version);
    if (found)
        found->has_seen_tasks = seen;
    return seen;
}

bool catalog_set_capabilities(struct catalog *catalog, const struct config_source *source,
                              const struct mcp_capabilities *capabilities)
{
    bool changed = false;
    pthread_mutex_lock(&catalog->lock);
    struct source_entry *entry = present_source(catalog, source);
    if (entry) {
        const struct mcp_capabilities *old = &entry->capabilities;
        changed = !entry->has_capabilities || old->tasks != capabilities->tasks ||
                  old->task_status != capabilities->task_status;
        if (capabilities->tasks && !entry->has_seen_tasks)
            found_renew();
        if (capabilities->tasks)
            atomic_store_explicit(&catalog->has_seen_tasks, true, memory_order_release);
        entry->has_capabilities = true;
        entry->has_seen_tasks = entry->has_seen_tasks || capabilities->tasks;
        entry->capabilities = *capabilities;
    }
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
    struct source_entry *entry = source_of_catalog(catalog, source);
    bool changed = !entry->tried || entry->reachable != reachable;
    *is_said = is_news(entry, reachable);
    enum catalog_change change = change_of(entry, reachable);
    if (change == CATALOG_RECONNECTED)
        source_changed(entry);
    if (changed && entry->url)
        show_health(source, entry);
    pthread_mutex_unlock(&catalog->lock);
    return change;
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
