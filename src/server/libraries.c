/* Loads the libraries of a configuration before a loop needs them. */
#include "libraries.h"

#include "taskgate/upstream/upstream.h"

bool libraries_load(const struct config *config, struct error *error)
{
    for (size_t i = 0; i < config->source_count; i++) {
        if (!upstream_prepare(config->sources[i].url, error))
            return false;
    }
    for (size_t i = 0; i < config->notify_count; i++) {
        if (!upstream_prepare(config->notify[i].url, error))
            return false;
    }
    if (config->oidc.is_on && !upstream_prepare(config->oidc.issuer, error))
        return false;
    return true;
}
