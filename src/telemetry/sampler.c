/* The samplers of OpenTelemetry's environment variables. */
#include "sampler.h"

/* Written before there are other threads. */
static struct {
    bool follows_parents;
    uint64_t bound; /* of 63 bits of a trace id: those below it are kept */
    bool takes_all;
} sampler;

void sampler_configure(enum config_sampler kind, double ratio)
{
    sampler.follows_parents =
        kind == SAMPLER_PARENT_ON || kind == SAMPLER_PARENT_OFF || kind == SAMPLER_PARENT_RATIO;
    bool by_ratio = kind == SAMPLER_RATIO || kind == SAMPLER_PARENT_RATIO;
    bool is_on = kind == SAMPLER_ON || kind == SAMPLER_PARENT_ON;
    sampler.takes_all = is_on || (by_ratio && ratio >= 1);
    sampler.bound = by_ratio && ratio > 0 && ratio < 1 ? (uint64_t)(ratio * 0x1p63) : 0;
}

/* The same for all processes with this ratio: the last bytes of the id are its random ones. */
static bool is_below_bound(const unsigned char trace_id[TRACE_ID_BYTES])
{
    uint64_t number = 0;
    for (size_t i = TRACE_ID_BYTES - sizeof number; i < TRACE_ID_BYTES; i++)
        number = number << 8 | trace_id[i];
    return number >> 1 < sampler.bound;
}

bool sampler_takes(const unsigned char trace_id[TRACE_ID_BYTES], const struct span_parent *parent)
{
    if (parent->context && (sampler.follows_parents || !parent->is_remote))
        return trace_context_is_sampled(parent->context);
    return sampler.takes_all || is_below_bound(trace_id);
}
