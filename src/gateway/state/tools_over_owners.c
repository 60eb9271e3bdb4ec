/* A source's tools over all owners: for owners that got no list, for the log and for the gauge. */
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "tool_catalog_internal.h"

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

static struct tool_view *tools_over_owners_obtain(struct source_entry *entry,
                                                  const struct known_tool *tool)
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

void views_add_list(struct source_entry *entry, const struct tool_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct known_tool *tool = list->items[i].tool;
        struct tool_view *view = tools_over_owners_obtain(entry, tool);
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

static void tools_over_owners_forget(struct catalog *catalog, struct source_entry *entry,
                                     struct tool_view *view, struct str name)
{
    if (is_counted(view))
        catalog->counts[view->annotation]--;
    map_remove(entry->views, name);
    free(view->variants);
    free(view->name);
    free(view);
}

void views_remove_list(struct catalog *catalog, struct source_entry *entry,
                       const struct tool_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct known_tool *tool = list->items[i].tool;
        struct tool_view *view = map_get(entry->views, known_tool_name(tool));
        struct variant *variant = find_variant(view, tool);
        if (--variant->lists > 0)
            continue;
        *variant = view->variants[--view->variant_count];
        if (view->variant_count == 0)
            tools_over_owners_forget(catalog, entry, view, known_tool_name(tool));
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
    struct catalog_tool all = view->variants[0].tool->facts;
    for (size_t i = 1; i < view->variant_count; i++)
        add_strictest(&all, &view->variants[i].tool->facts);
    return all;
}

static const struct known_tool *gateways(const struct source_entry *entry, struct str name,
                                         uint64_t hash)
{
    const struct tool_list_item *item =
        entry->own ? tool_list_find(entry->own->list, name, hash) : NULL;
    return item ? item->tool : NULL;
}

void views_find(const struct source_entry *entry, struct str name, struct catalog_tool *tool)
{
    const struct tool_view *view = map_get(entry->views, name);
    *tool = (struct catalog_tool){.word = CATALOG_UNKNOWN};
    if (!view)
        return;
    const struct known_tool *own = gateways(entry, name, view->hash);
    *tool = strictest_of(view);
    tool->word = own ? CATALOG_GATEWAYS : CATALOG_OTHERS;
    tool->digest[0] = tool->definition[0] = '\0';
    if (own) {
        memcpy(tool->digest, own->facts.digest, sizeof tool->digest);
        memcpy(tool->definition, own->facts.definition, sizeof tool->definition);
    }
}

/* ---- announcing ---- */

void views_publish_counts(const struct catalog *catalog)
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
static void announce(struct catalog *catalog, const struct snapshot *snapshot,
                     const struct config_source *source, const struct source_entry *entry,
                     struct tool_view *view)
{
    struct policy_request request = {source, str_from(view->name), STR_EMPTY};
    struct policy_decision decision;
    const struct known_tool *own = gateways(entry, request.name, view->hash);
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

void views_announce(struct catalog *catalog, const struct snapshot *snapshot,
                    const struct config_source *source, struct source_entry *entry,
                    const struct tool_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        announce(catalog, snapshot, source, entry,
                 map_get(entry->views, known_tool_name(list->items[i].tool)));
}

void views_announce_all(struct catalog *catalog, const struct snapshot *snapshot,
                        const struct config_source *source, struct source_entry *entry)
{
    size_t position = 0;
    void *view;
    while (map_next(entry->views, &position, NULL, &view))
        announce(catalog, snapshot, source, entry, view);
}

static void set_gone(struct catalog *catalog, struct tool_view *view, bool gone)
{
    if (is_counted(view))
        catalog->counts[view->annotation]--;
    view->gone = gone;
    if (is_counted(view))
        catalog->counts[view->annotation]++;
}

void views_see(struct catalog *catalog, struct source_entry *entry, const struct known_tool *tool)
{
    set_gone(catalog, map_get(entry->views, known_tool_name(tool)), false);
}

void views_see_whole(struct catalog *catalog, struct source_entry *entry,
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
