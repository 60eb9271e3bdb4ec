/* Switching telemetry on and off. */
#include "taskgate/telemetry/telemetry.h"

#include "taskgate/core/assert.h"
#include "taskgate/core/log.h"
#include "taskgate/upstream/upstream.h"

#include "exporter.h"
#include "span_internal.h"

/* Of the process. */
static struct {
    struct exporter *exporter;
    struct config *config; /* the settings in force */
} telemetry;

bool telemetry_start(const struct config *config, struct error *error)
{
    const struct config_telemetry *settings = &config->telemetry;
    if (!settings->is_on)
        return true;
    if (!upstream_prepare(settings->url, error))
        return false;
    ASSERT(!telemetry.exporter);
    telemetry.exporter = exporter_create(settings, error);
    if (!telemetry.exporter)
        return false;
    telemetry.config = config_ref((struct config *)config);
    sampler_configure(settings->sampler, settings->sample_rate);
    telemetry_is_on = true;
    log_info("Traces are exported", LOG_TEXT("endpoint", settings->origin));
    return true;
}

void telemetry_stop(int64_t until_ms)
{
    telemetry_is_on = false;
    exporter_destroy(telemetry.exporter, until_ms);
    config_unref(telemetry.config);
    telemetry.exporter = NULL;
    telemetry.config = NULL;
}
