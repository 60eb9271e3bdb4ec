/* The tools of the catalogue as definitions that are pinned. */
#include <stdlib.h>

#include "definition_watch.h"
#include "taskgate/core/memory.h"
#include "tool_catalog_internal.h"

static void write_text(const struct definition_item *item, struct buffer *out)
{
    known_tool_write_text(item->of, out);
}

void tool_pins_see(struct catalog *catalog, const struct config_source *source,
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
