/* The entry of each source in the catalogue. */
#include <string.h>

#include "taskgate/core/memory.h"
#include "tool_catalog_internal.h"

void catalog_source_init(struct source_entry *entry, uint64_t epoch)
{
    *entry = (struct source_entry){
        .told = map_create(),
        .lists = map_create(),
        .views = map_create(),
        .epoch = epoch,
        .reachable = true,
    };
}

struct source_entry *catalog_source(struct catalog *catalog, struct str source)
{
    struct source_entry *entry = map_get(catalog->sources, source);
    if (!entry) {
        entry = memory_alloc(sizeof *entry);
        catalog_source_init(entry, 1);
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
