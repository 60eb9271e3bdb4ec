/* The life of a span. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "span_internal.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/random.h"
#include "taskgate/telemetry/span.h"

/* The samplers of OpenTelemetry's environment variables. */

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

#define NS_PER_MS UINT64_C(1000000)

bool telemetry_is_on;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 * NS_PER_MS + (uint64_t)now.tv_nsec;
}

/* All zeros is no id (W3C §3.2.2). */
static void make_id(unsigned char *id, size_t count)
{
    unsigned char sum = 0;
    do {
        random_bytes(id, count);
        for (size_t i = 0; i < count; i++)
            sum |= id[i];
    } while (!sum);
}

void span_id_make(unsigned char id[SPAN_ID_BYTES])
{
    make_id(id, SPAN_ID_BYTES);
}

static void span_copy_text(char **field, struct str text)
{
    free(*field);
    *field = memory_copy_str(text);
}

/* OTLP's texts are UTF-8. A header may bring anything. */
static struct str fit(struct str text, size_t most)
{
    return str_utf8_cut(str_slice(text.bytes, str_utf8_length(text)), most);
}

static void span_rename(struct span *span, struct str name);

struct span *span_start(enum span_kind kind, struct str name, const struct span_parent *parent)
{
    struct span *span = memory_alloc(sizeof *span);
    list_init(&span->node);
    span->kind = kind;
    if (parent->context) {
        memcpy(span->context.trace_id, parent->context->trace_id, TRACE_ID_BYTES);
        memcpy(span->parent_id, parent->context->span_id, SPAN_ID_BYTES);
        span->has_parent = true;
        span->is_parent_remote = parent->is_remote;
        if (tracestate_is_fit(parent->state))
            span_copy_text(&span->state, parent->state);
    } else {
        make_id(span->context.trace_id, TRACE_ID_BYTES);
    }
    make_id(span->context.span_id, SPAN_ID_BYTES);
    if (!sampler_takes(span->context.trace_id, parent))
        return span;
    span->context.flags = TRACE_SAMPLED;
    span->started_us = clock_monotonic_us();
    span->start_ns = now_ns();
    span_rename(span, name);
    return span;
}

struct span *span_start_child(enum span_kind kind, struct str name, const struct span *parent)
{
    const struct span_parent of = {.context = &parent->context, .state = span_state(parent)};
    return span_start(kind, name, &of);
}

bool span_is_sampled(const struct span *span)
{
    return span && trace_context_is_sampled(&span->context);
}

void span_backdate(struct span *span, int64_t ago_ms)
{
    if (!span_is_sampled(span) || ago_ms <= 0)
        return;
    span->start_ns -= (uint64_t)ago_ms * NS_PER_MS;
    span->started_us -= ago_ms * 1000;
}

void span_set_times(struct span *span, int64_t from_ms, int64_t to_ms)
{
    if (!span_is_sampled(span))
        return;
    span->start_ns = (uint64_t)from_ms * NS_PER_MS;
    span->end_ns = (uint64_t)(to_ms < from_ms ? from_ms : to_ms) * NS_PER_MS;
    span->has_end = true;
}

void span_set_id(struct span *span, const unsigned char id[SPAN_ID_BYTES])
{
    if (span)
        memcpy(span->context.span_id, id, SPAN_ID_BYTES);
}

static void span_rename(struct span *span, struct str name)
{
    if (span_is_sampled(span))
        span_copy_text(&span->name, fit(name, SPAN_NAME_MOST_BYTES));
}

void span_set_text(struct span *span, enum span_attribute attribute, struct str value)
{
    if (!span_is_sampled(span) || value.length == 0)
        return;
    ASSERT_NUMBERS(attribute, <, ATTRIBUTE_COUNT);
    struct span_value *to = &span->values[attribute];
    struct str cut = fit(value, SPAN_TEXT_MOST_BYTES);
    span_copy_text(&to->text, cut);
    to->length = cut.length;
    to->is_set = true;
}

void span_set_number(struct span *span, enum span_attribute attribute, int64_t value)
{
    if (!span_is_sampled(span))
        return;
    ASSERT_NUMBERS(attribute, <, ATTRIBUTE_COUNT);
    struct span_value *to = &span->values[attribute];
    free(to->text);
    *to = (struct span_value){.number = value, .is_set = true};
}

void span_add_link(struct span *span, const struct trace_context *to)
{
    if (span_is_sampled(span) && span->link_count < SPAN_MOST_LINKS)
        span->links[span->link_count++] = *to;
}

void span_fail(struct span *span, struct str type, struct str message)
{
    if (!span_is_sampled(span))
        return;
    span->is_failed = true;
    span_set_text(span, ATTRIBUTE_ERROR_TYPE, type);
    if (message.length > 0)
        span_copy_text(&span->message, fit(message, SPAN_TEXT_MOST_BYTES));
}

const struct trace_context *span_context(const struct span *span)
{
    return span ? &span->context : NULL;
}

struct str span_state(const struct span *span)
{
    return span ? str_from(span->state) : STR_EMPTY;
}

void span_drop(struct span *span)
{
    span_destroy(span);
}

void span_end(struct span *span)
{
    if (!span)
        return;
    if (!span_is_sampled(span)) {
        span_destroy(span);
        return;
    }
    /* The wall clock may have been set meanwhile. */
    if (!span->has_end)
        span->end_ns = span->start_ns + (uint64_t)(clock_monotonic_us() - span->started_us) * 1000;
    exporter_take(span);
}
