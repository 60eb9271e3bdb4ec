/* The lists of each owner, page by page. */
#include <stdlib.h>
#include <string.h>

#include "definition_watch.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/json/canonical.h"
#include "taskgate/mcp/definition.h"
#include "tool_catalog_internal.h"
#include "tools_found.h"

/* The tools of the catalogue as definitions that are pinned. */

static void write_text(const struct definition_item *item, struct buffer *out)
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
                                          items,  count,           write_text};
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

#define TOOL_NAME_BYTES 1024
/* All definitions and lists; beyond it the longest unseen owner is forgotten, too. */
#define MOST_BYTES ((size_t)128 * 1024 * 1024)

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
static void append(struct catalog_page *page, struct known_tool *tool)
{
    if (page->count == page->room) {
        page->room = page->room ? 2 * page->room : 16;
        page->tools = memory_grow_array(page->tools, page->room, sizeof(struct known_tool *));
    }
    page->tools[page->count++] = tool;
}

/* Lists mostly bring the same definitions as before; only new ones are digested. */
static struct known_tool *tools_by_owner_obtain(struct catalog_page *page,
                                                const struct mcp_tool *tool)
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
        append(page, tools_by_owner_obtain(page, tool));
    return true;
}

/* Under the lock. The tools of `page` come behind those of `pages`. */
static void move_tools(struct catalog_page *pages, const struct catalog_page *page)
{
    for (size_t i = 0; i < page->count && pages->count < LIST_TOOLS_MOST; i++)
        append(pages, known_tool_ref(page->tools[i]));
}

/* ---- owners ---- */

struct told *told_find(const struct source_entry *entry, struct str owner)
{
    return owner.length > 0 ? map_get(entry->told, owner) : entry->own;
}

static size_t size_of(const struct told *told)
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
        catalog->told_bytes += size_of(told);
    } else {
        entry->own = told;
    }
    return told;
}

/* The last owner of the list takes it out of the views. */
static void tools_by_owner_release(struct catalog *catalog, struct source_entry *entry,
                                   struct tool_list *list)
{
    if (list && list->references == 1)
        views_remove_list(catalog, entry, list);
    tool_list_unref(catalog->tools, entry->lists, list);
}

static void tools_by_owner_told_destroy(struct catalog *catalog, struct told *told)
{
    tools_found_renew();
    tools_by_owner_release(catalog, told->source, told->list);
    if (told->building)
        page_destroy(told->building);
    free(told);
}

static void told_forget(struct catalog *catalog, struct told *told)
{
    map_remove(told->source->told, str_slice(told->owner, told->owner_length));
    list_remove(&told->node);
    catalog->told_count--;
    catalog->told_bytes -= size_of(told);
    tools_by_owner_told_destroy(catalog, told);
}

void told_forget_all(struct catalog *catalog, struct source_entry *entry)
{
    LIST_FOR_EACH_SAFE (node, next, &catalog->recent) {
        struct told *told = LIST_ENTRY(node, struct told, node);
        if (told->source == entry)
            told_forget(catalog, told);
    }
    if (entry->own)
        tools_by_owner_told_destroy(catalog, entry->own);
    entry->own = NULL;
    tools_by_owner_release(catalog, entry, entry->whole);
    entry->whole = NULL;
}

static size_t tools_by_owner_bytes_of(const struct catalog *catalog)
{
    return catalog->told_bytes + known_tools_bytes(catalog->tools);
}

static struct told *longest_unseen(struct catalog *catalog)
{
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what was forgotten is in no list */
    return LIST_ENTRY(catalog->recent.next, struct told, node);
}

/* The owner that has just got something is the last to be forgotten. */
static void tools_by_owner_make_room(struct catalog *catalog, int64_t limit)
{
    size_t most = (size_t)(limit > 0 ? limit : 1);
    while (catalog->told_count > most) {
        told_forget(catalog, longest_unseen(catalog));
        metrics_count(METRIC_LIMITS_REACHED, STR("sessions"));
    }
    while (tools_by_owner_bytes_of(catalog) > MOST_BYTES && catalog->told_count > 1)
        told_forget(catalog, longest_unseen(catalog));
}

size_t catalog_bytes(struct catalog *catalog)
{
    pthread_mutex_lock(&catalog->lock);
    size_t bytes = tools_by_owner_bytes_of(catalog);
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
static bool is_same(const struct tool_list *list, const struct catalog_page *page)
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
    if (!is_whole || !is_same(old, page))
        list =
            tool_list_intern(catalog->tools, entry->lists, list_with(catalog, old, page, is_whole));
    else if (list == old_whole)
        return; /* as most lists are: what was told before */
    else
        list->references++;
    bool is_new = list->references == 1;
    told->list = list;
    tools_found_renew();
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
    tools_by_owner_release(catalog, entry, old_whole);
    tools_by_owner_release(catalog, entry, old);
    if (is_new || told == entry->own)
        views_announce(catalog, reader->snapshot, reader->source, entry, list);
    views_publish_counts(catalog);
}

/* Keeps the pages of a list of several until the last one. True when the list is whole: in
 * `told->building`, or in `page` where there is but one. */
static bool gather(struct told *told, const struct catalog_page *page, bool is_first, bool is_last)
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
    bool is_whole = gather(told, page, is_first, is_last);
    if (reader->owner.length > 0) {
        list_remove(&told->node);
        list_append(&catalog->recent, &told->node);
    }
    put_list(catalog, reader, told, is_whole && told->building ? told->building : page, is_whole);
    if (is_whole) {
        if (told->epoch != reader->epoch)
            tools_found_renew();
        told->epoch = reader->epoch;
        entry->filled = true;
    }
    if (is_whole && told->building) {
        page_destroy(told->building);
        told->building = NULL;
    }
    tools_by_owner_make_room(catalog, reader->snapshot->config->limits.sessions);
}

void catalog_show_page(struct catalog *catalog, const struct catalog_reader *reader,
                       const struct catalog_page *page, bool is_first, bool is_last)
{
    pthread_mutex_lock(&catalog->lock);
    struct source_entry *entry = catalog_present_source(catalog, reader->source);
    if (entry)
        put_page(catalog, reader, entry, page, is_first, is_last);
    pthread_mutex_unlock(&catalog->lock);
}

void catalog_put_page(struct catalog *catalog, const struct catalog_reader *reader,
                      struct catalog_page *page, bool is_first, bool is_last)
{
    catalog_show_page(catalog, reader, page, is_first, is_last);
    catalog_page_destroy(page);
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

bool catalog_has_parameters(void)
{
    return known_tools_have_parameters();
}

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
