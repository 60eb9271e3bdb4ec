/* Counters of each method, tool and source, in a few slots for each thread. */
#include "call_counters.h"

#include <string.h>

#include "taskgate/core/metrics.h"

#define SLOTS 64
#define TEXT_BYTES 128

/* The key of a slot. A slot gives way to another method or text at its place. */
struct subject {
    const struct mcp_method *method;
    size_t length; /* 1 + that of the text; 0: the slot is free */
    char text[TEXT_BYTES];
};

static _Thread_local struct method_counters {
    const struct mcp_method *method;
    struct metrics_handle payload;
} of_methods[32];

static _Thread_local struct tool_counters {
    struct subject subject;
    struct metrics_handle successes, errors, duration;
} of_tools[SLOTS];

static _Thread_local struct source_counters {
    struct subject subject;
    int status;
    char text[STR_U64_BYTES]; /* of the status, */
    struct str word;          /* which is this part of it */
    struct metrics_handle requests, duration;
} of_sources[SLOTS];

static size_t place_of(const struct mcp_method *method, struct str text)
{
    size_t mixed = (size_t)method / sizeof *method * 31 + text.length;
    if (text.length > 0)
        mixed = mixed * 31 + (unsigned char)text.bytes[0] +
                (size_t)(unsigned char)text.bytes[text.length - 1] * 7 +
                (size_t)(unsigned char)text.bytes[text.length / 2] * 13;
    return mixed;
}

static bool is_of(const struct subject *subject, const struct mcp_method *method, struct str text)
{
    return subject->method == method && subject->length == text.length + 1 &&
           (text.length == 0 || memcmp(subject->text, text.bytes, text.length) == 0);
}

static void set_subject(struct subject *subject, const struct mcp_method *method, struct str text)
{
    subject->method = method;
    subject->length = text.length + 1;
    if (text.length > 0)
        memcpy(subject->text, text.bytes, text.length);
}

void call_counters_came(const struct mcp_method *method, size_t body_bytes)
{
    size_t place = (size_t)method / sizeof *method;
    struct method_counters *counters =
        &of_methods[place % (sizeof of_methods / sizeof *of_methods)];
    if (counters->method != method)
        *counters = (struct method_counters){.method = method};
    metrics_observe_by(&counters->payload, METRIC_REQUEST_PAYLOAD, (double)body_bytes,
                       METRIC_LABELS(STR("inbound"), str_from(method->name)));
}

static struct str label_of(const struct counted_tool *tool)
{
    return tool->name.length == 0 || tool->is_listed(tool->context, tool->name)
               ? tool->name
               : STR("__unlisted__");
}

static struct tool_counters *slot_at(const struct mcp_method *method, struct str label)
{
    return &of_tools[place_of(method, label) % SLOTS];
}

/* The slot of the name's label: a name that is listed, or that of all others. NULL: there is none
 * for such a name. */
static struct tool_counters *slot_of(const struct mcp_method *method,
                                     const struct counted_tool *tool, struct str *label)
{
    struct tool_counters *counters = slot_at(method, tool->name);
    *label = tool->name;
    if (is_of(&counters->subject, method, *label))
        return counters;
    *label = label_of(tool);
    if (label->length > TEXT_BYTES)
        return NULL;
    counters = slot_at(method, *label);
    if (!is_of(&counters->subject, method, *label)) {
        memset(counters, 0, sizeof *counters);
        set_subject(&counters->subject, method, *label);
    }
    return counters;
}

void call_counters_answered(const struct mcp_method *method, const struct counted_tool *tool,
                            const char *outcome, int64_t elapsed_ms)
{
    struct str name = str_from(method ? method->name : "http"), word = str_from(outcome);
    struct str label;
    struct tool_counters *counters = slot_of(method, tool, &label);
    if (!counters) {
        metrics_count(METRIC_REQUESTS, name, label, word);
        metrics_observe(METRIC_REQUEST_DURATION, (double)elapsed_ms, METRIC_LABELS(name, label));
        return;
    }
    struct metrics_handle *requests =
        str_equal(word, STR("success")) ? &counters->successes : &counters->errors;
    metrics_add_by(requests, METRIC_REQUESTS, 1, METRIC_LABELS(name, label, word));
    metrics_observe_by(&counters->duration, METRIC_REQUEST_DURATION, (double)elapsed_ms,
                       METRIC_LABELS(name, label));
}

void call_counters_upstream(struct str source, int status, int64_t elapsed_ms)
{
    struct source_counters *counters =
        &of_sources[(place_of(NULL, source) + (size_t)status) % SLOTS];
    if (source.length > TEXT_BYTES) {
        char text[STR_U64_BYTES];
        metrics_count(METRIC_UPSTREAM_REQUESTS, source, str_from_u64((uint64_t)status, text));
        metrics_observe(METRIC_UPSTREAM_DURATION, (double)elapsed_ms, METRIC_LABELS(source));
        return;
    }
    if (counters->status != status || !is_of(&counters->subject, NULL, source)) {
        memset(counters, 0, sizeof *counters);
        set_subject(&counters->subject, NULL, source);
        counters->status = status;
        counters->word = str_from_u64((uint64_t)status, counters->text);
    }
    metrics_add_by(&counters->requests, METRIC_UPSTREAM_REQUESTS, 1,
                   METRIC_LABELS(source, counters->word));
    metrics_observe_by(&counters->duration, METRIC_UPSTREAM_DURATION, (double)elapsed_ms,
                       METRIC_LABELS(source));
}
