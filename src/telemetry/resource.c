/* The resource's attributes: the first that names one sets it. */
#include "resource.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"
#include "taskgate/core/random.h"

#define SERVICE_NAME "taskgate"

static const char *process_environment(const char *name)
{
    return getenv(name);
}

static bool has(const struct resource *resource, const char *name)
{
    for (size_t i = 0; i < resource->count; i++) {
        if (strcmp(resource->items[i].name, name) == 0)
            return true;
    }
    return false;
}

static void add(struct resource *resource, const char *name, const char *value)
{
    if (!value || !*value || !str_is_utf8(str_from(value)) || has(resource, name))
        return;
    resource->items =
        memory_grow_array(resource->items, resource->count + 1, sizeof *resource->items);
    resource->items[resource->count++] =
        (struct config_pair){memory_copy_text(name), memory_copy_text(value)};
}

void resource_init(struct resource *resource, const struct config_telemetry *telemetry,
                   config_getenv environment)
{
    /* Kubernetes' downward API gives these, under the names that ThoughtGate reads. */
    static const char *const places[][2] = {{"k8s.namespace.name", "K8S_NAMESPACE"},
                                            {"k8s.pod.name", "POD_NAME"},
                                            {"k8s.node.name", "NODE_NAME"},
                                            {"host.name", "HOSTNAME"}};
    char instance[RANDOM_UUID_BYTES];
    if (!environment)
        environment = process_environment;
    *resource = (struct resource){0};
    add(resource, "service.name", environment("OTEL_SERVICE_NAME"));
    for (size_t i = 0; i < telemetry->resource_count; i++)
        add(resource, telemetry->resource[i].name, telemetry->resource[i].value);
    add(resource, "service.name", SERVICE_NAME);
    add(resource, "service.version", TASKGATE_VERSION);
    random_uuid(instance);
    add(resource, "service.instance.id", instance);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        add(resource, places[i][0], environment(places[i][1]));
}

void resource_finish(struct resource *resource)
{
    for (size_t i = 0; i < resource->count; i++) {
        free(resource->items[i].name);
        free(resource->items[i].value);
    }
    free(resource->items);
    *resource = (struct resource){0};
}
