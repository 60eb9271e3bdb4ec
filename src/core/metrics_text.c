/* The text of metrics for Prometheus, and the table as Markdown. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metrics_internal.h"
#include "taskgate/core/markdown.h"

#define PREFIX "thoughtgate_"

static const char *const kind_names[] = {"counter", "gauge", "histogram"};

static void append_escaped(struct buffer *out, struct str value, bool in_quotes)
{
    for (size_t i = 0; i < value.length; i++) {
        char c = value.bytes[i];
        if (c == '\n')
            buffer_append(out, STR("\\n"));
        else if (c == '\\' || (c == '"' && in_quotes))
            buffer_append_format(out, "\\%c", c);
        else
            buffer_append_char(out, c);
    }
}

static void append_number(struct buffer *out, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.15g", value);
    if (isnan(value))
        buffer_append(out, STR("NaN"));
    else if (isinf(value))
        buffer_append_text(out, value > 0 ? "+Inf" : "-Inf");
    else if (value > -1e15 && value < 1e15 && value == (double)(int64_t)value)
        buffer_append_format(out, "%.0f", value);
    else if (strtod(text, NULL) == value)
        buffer_append_text(out, text); /* 0.1 and not 0.10000000000000001 */
    else
        buffer_append_format(out, "%.17g", value);
}

/* "{a="1",b="2"}", with `le` as one more label when it is not NULL; nothing without labels. */
static void append_labels(struct buffer *out, const struct series *series, const char *le)
{
    struct str name, value;
    struct str names = str_from(metrics_families[series->metric].labels);
    struct str values = str_slice(series->key + 1, series->key_length - 1);
    char before = '{';
    while (names.length > 0) {
        str_cut(names, ',', &name, &names);
        str_cut(values, KEY_SEPARATOR, &value, &values);
        buffer_append_format(out, "%c%.*s=\"", before, STR_ARGS(name));
        append_escaped(out, value, true);
        buffer_append_char(out, '"');
        before = ',';
    }
    if (le) {
        buffer_append_format(out, "%cle=\"%s\"", before, le);
        before = ',';
    }
    if (before == ',')
        buffer_append_char(out, '}');
}

static void append_sample(struct buffer *out, const struct series *series, const char *suffix,
                          const char *le, double value)
{
    buffer_append_format(out, PREFIX "%s%s", metrics_families[series->metric].name, suffix);
    append_labels(out, series, le);
    buffer_append_char(out, ' ');
    append_number(out, value);
    buffer_append_char(out, '\n');
}

static void append_histogram(struct buffer *out, const struct series *series, bool open_metrics)
{
    const struct family *family = &metrics_families[series->metric];
    uint64_t below = 0;
    for (size_t i = 0; i < family->bucket_count; i++) {
        struct buffer bound;
        buffer_init(&bound);
        append_number(&bound, family->buckets[i]);
        bool is_whole = !memchr(bound.bytes, '.', bound.length);
        if (open_metrics && is_whole) /* it wants a bound to look like a float */
            buffer_append(&bound, STR(".0"));
        char *le = buffer_take(&bound, NULL);
        below += series->bucket[i];
        append_sample(out, series, "_bucket", le, (double)below);
        free(le);
    }
    append_sample(out, series, "_bucket", "+Inf", (double)series->count);
    append_sample(out, series, "_sum", NULL, series->value);
    append_sample(out, series, "_count", NULL, (double)series->count);
}

/* In OpenMetrics a counter's family goes without the `_total` that its samples end in. */
static struct str family_name(const struct family *family, bool open_metrics)
{
    struct str name = str_from(family->name);
    if (open_metrics && family->kind == COUNTER)
        name.length -= sizeof "_total" - 1;
    return name;
}

static void append_heading(struct buffer *out, const struct family *family, bool open_metrics)
{
    struct str name = family_name(family, open_metrics);
    buffer_append_format(out, "# HELP " PREFIX "%.*s ", STR_ARGS(name));
    append_escaped(out, str_from(family->help), open_metrics);
    buffer_append_format(out, "\n# TYPE " PREFIX "%.*s %s\n", STR_ARGS(name),
                         kind_names[family->kind]);
}

void metrics_write(struct buffer *out, bool open_metrics)
{
    struct scrape scrape;
    metrics_scrape_take(&scrape);
    size_t next = 0;
    for (int metric = 0; metric < METRIC_COUNT; metric++) {
        append_heading(out, &metrics_families[metric], open_metrics);
        for (; next < scrape.count && (int)scrape.copies[next].metric == metric; next++) {
            if (metrics_families[metric].kind == HISTOGRAM)
                append_histogram(out, &scrape.copies[next], open_metrics);
            else
                append_sample(out, &scrape.copies[next], "", NULL, scrape.copies[next].value);
        }
    }
    if (open_metrics)
        buffer_append(out, STR("# EOF\n"));
    metrics_scrape_finish(&scrape);
}

void metrics_write_reference(struct buffer *out)
{
    struct buffer item;
    buffer_init(&item);
    for (int metric = 0; metric < METRIC_COUNT; metric++) {
        const struct family *family = &metrics_families[metric];
        buffer_clear(&item);
        buffer_append_format(&item, "`" PREFIX "%s` (%s", family->name, kind_names[family->kind]);
        struct str name, rest = str_from(family->labels);
        for (const char *before = "; "; rest.length > 0; before = ", ") {
            str_cut(rest, ',', &name, &rest);
            buffer_append_format(&item, "%s`%.*s`", before, STR_ARGS(name));
        }
        buffer_append_format(&item, "): %s", family->help);
        for (size_t i = 0; i < family->bucket_count; i++) {
            buffer_append_text(&item, i == 0 ? " Buckets: " : ", ");
            append_number(&item, family->buckets[i]);
        }
        markdown_append_item(out, buffer_str(&item));
    }
    buffer_finish(&item);
}
