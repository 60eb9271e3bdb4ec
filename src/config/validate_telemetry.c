/* Telemetry: ThoughtGate's block (V-TEL-…) and OpenTelemetry's variables, which win over it. */
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "taskgate/config/telemetry.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "validate.h"

/* One item of NAME=VALUE,NAME=VALUE with its value percent-decoded (W3C Baggage); false: it cannot
 * be read. The texts are the callee's to copy. */
typedef bool (*otel_pair_fn)(void *context, struct str name, struct str value);

/* OpenTelemetry's variables: their forms, the switches, the numbers. */

/* The value of a setting, and the variable that has given it: that of traces alone, which wins, or
 * that of all signals. Either may be NULL. NULL where neither is set, and without telemetry: then
 * OpenTelemetry's variables are those of other programs. */
static const char *setting(const struct draft *draft, const char *of_traces, const char *of_all,
                           const char **name)
{
    const char *value = draft_variable(draft, of_traces);
    *name = value ? of_traces : of_all;
    if (!draft->config->telemetry.is_on)
        return NULL;
    return value ? value : draft_variable(draft, of_all);
}

static void otel_warn(const struct draft *draft, const char *name, const char *hint,
                      const char *what)
{
    problems_warning(draft->report.problems, (struct place){.file = name}, NULL, hint, "%s", what);
}

/* ---- switches ---- */

/* "All values other than true are false", and those that are not false get a warning. */
static bool is_disabled(const struct draft *draft)
{
    static const char name[] = "OTEL_SDK_DISABLED";
    struct str value = str_trim(str_from(draft_variable(draft, name)));
    if (str_equal_ignore_case(value, STR("true")))
        return true;
    if (value.length > 0 && !str_equal_ignore_case(value, STR("false")))
        otel_warn(draft, name, "write true or false",
                  "this is no truth value, the variable is ignored");
    return false;
}

/* A list of exporters, of which there is one here. */
static bool exports_nothing(const struct draft *draft)
{
    static const char name[] = "OTEL_TRACES_EXPORTER";
    struct str rest = str_from(draft_variable(draft, name)), item;
    bool has_otlp = false, has_none = false, has_other = false;
    while (rest.length > 0) {
        str_cut(rest, ',', &item, &rest);
        item = str_trim(item);
        has_otlp |= str_equal(item, STR("otlp"));
        has_none |= str_equal(item, STR("none"));
        has_other |= !str_equal(item, STR("otlp")) && !str_equal(item, STR("none"));
    }
    if (has_other)
        otel_warn(draft, name, "it may be otlp, none",
                  "this exporter does not exist, it is left out");
    return has_none && !has_otlp;
}

/* Whether the variables switch off what the file has switched on. */
static bool otel_is_off(const struct draft *draft)
{
    bool is_off = is_disabled(draft);
    return exports_nothing(draft) || is_off;
}

/* ---- lists ---- */

static void validate_telemetry_decode(struct str text, struct buffer *out)
{
    while (text.length > 0) {
        size_t taken = 1;
        char c = text.bytes[0];
        int high = c == '%' && text.length > 2 ? str_hex_digit(text.bytes[1]) : -1;
        int low = high >= 0 ? str_hex_digit(text.bytes[2]) : -1;
        if (low >= 0) {
            c = (char)(unsigned char)(high * 16 + low);
            taken = 3;
        }
        buffer_append_char(out, c);
        text = str_slice(text.bytes + taken, text.length - taken);
    }
}

/* Calls `take` with each item. false: one of them could not be read, or was refused; the others
 * were taken. */
static bool otel_pairs(struct str list, otel_pair_fn take, void *context)
{
    struct str item, name, value;
    bool are_read = true;
    while (list.length > 0) {
        str_cut(list, ',', &item, &list);
        if (str_trim(item).length == 0)
            continue;
        OWNED_BUFFER(decoded);
        bool has_value = str_cut(item, '=', &name, &value);
        validate_telemetry_decode(str_trim(value), &decoded);
        are_read &= has_value && take(context, str_trim(name), buffer_str(&decoded));
    }
    return are_read;
}

/* ---- numbers ---- */

struct number {
    const char *of_traces, *of_all;
    size_t offset; /* of an int64_t in struct config_telemetry */
    int64_t least, most;
    const char *hint;
};

#define AT(member) offsetof(struct config_telemetry, member)
#define MS_MAX (INT64_C(365) * 24 * 3600 * 1000)
#define MS_HINT "write a number of milliseconds, from 100 on"
#define COUNT_HINT "write a number of spans, from 1 on"

/* The bounds are those of the keys. */
static const struct number numbers[] = {
    {"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT", AT(export_timeout_ms), 100,
     MS_MAX, MS_HINT},
    {"OTEL_BSP_SCHEDULE_DELAY", NULL, AT(scheduled_delay_ms), 100, MS_MAX, MS_HINT},
    {"OTEL_BSP_MAX_QUEUE_SIZE", NULL, AT(max_queue_size), 1, INT32_MAX, COUNT_HINT},
    {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", NULL, AT(max_export_batch_size), 1, INT32_MAX, COUNT_HINT},
};

/* The numbers of the batches. */
static void otel_apply_numbers(const struct draft *draft, struct config_telemetry *telemetry)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const struct number *number = &numbers[i];
        const char *name, *value = setting(draft, number->of_traces, number->of_all, &name);
        int64_t wanted;
        if (!value)
            continue;
        if (parse_integer(str_trim(str_from(value)), &wanted) && wanted >= number->least &&
            wanted <= number->most)
            *(int64_t *)(void *)((char *)telemetry + number->offset) = wanted;
        else
            otel_warn(draft, name, number->hint,
                      "this number is out of range, the variable is ignored");
    }
}

#define TRACES_PATH "/v1/traces"
#define SWITCH "THOUGHTGATE_TELEMETRY_ENABLED"

static bool read_rate(const char *text, double *rate)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0 && value <= 1))
        return false;
    *rate = value;
    return true;
}

/* ---- on or off, and where to ---- */

static void apply_switch(const struct draft *draft, struct config_telemetry *telemetry)
{
    const char *value = draft_variable(draft, SWITCH);
    bool is_on;
    if (value && parse_bool(str_trim(str_from(value)), &is_on))
        telemetry->is_on = is_on;
    else if (value)
        otel_warn(draft, SWITCH, "write true or false",
                  "this is no truth value, the variable is ignored");
    if (telemetry->is_on && otel_is_off(draft))
        telemetry->is_on = false;
}

/* A collector has one path for each signal. */
static void validate_telemetry_add_path(struct config_telemetry *telemetry)
{
    struct str url = str_from(telemetry->url);
    if (str_ends_with(url, STR(TRACES_PATH)))
        return;
    while (str_ends_with(url, STR("/")))
        url.length--;
    char *whole = memory_format("%.*s" TRACES_PATH, STR_ARGS(url));
    free(telemetry->url);
    telemetry->url = whole;
}

/* The URL of traces alone is used as it is. */
static void apply_endpoint(const struct draft *draft, struct config_telemetry *telemetry)
{
    const char *name = NULL, *value = draft->is_shadow
                                          ? NULL
                                          : setting(draft, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                                                    "OTEL_EXPORTER_OTLP_ENDPOINT", &name);
    struct error error;
    if (value && !check_url(str_from(value), &error)) {
        problems_error(draft->report.problems, (struct place){.file = name},
                       "telemetry.otlp.endpoint", NULL, "V-TEL-002 %s", error.message);
        value = NULL;
    }
    if (value) {
        free(telemetry->url);
        telemetry->url = memory_copy_text(value);
    }
    if (telemetry->url && !(value && strcmp(name, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == 0))
        validate_telemetry_add_path(telemetry);
}

/* The URL without path and credentials, for the log. */
static char *origin_of(struct str url)
{
    struct str scheme, rest, authority, path, user, host;
    str_cut(url, ':', &scheme, &rest);
    rest = str_slice(rest.bytes + 2, rest.length - 2); /* behind "//" */
    str_cut(rest, '/', &authority, &path);
    while (str_cut(authority, '@', &user, &host))
        authority = host;
    return memory_format("%.*s://%.*s", STR_ARGS(scheme), STR_ARGS(authority));
}

static void apply_protocol(const struct draft *draft, struct config_telemetry *telemetry)
{
    const struct node *otlp = node_get(node_get(draft->root, "telemetry"), "otlp");
    const struct node *node = node_get(otlp, "protocol");
    const char *name, *value = setting(draft, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
                                       "OTEL_EXPORTER_OTLP_PROTOCOL", &name);
    if (telemetry->protocol == OTLP_GRPC && node)
        report_warning(&draft->report, node, "telemetry.otlp.protocol", NULL,
                       "grpc is not spoken; http/protobuf is used");
    if (telemetry->protocol == OTLP_GRPC)
        telemetry->protocol = OTLP_PROTOBUF;
    if (!value)
        return;
    if (strcmp(value, "http/json") == 0)
        telemetry->protocol = OTLP_JSON;
    else if (strcmp(value, "http/protobuf") == 0)
        telemetry->protocol = OTLP_PROTOBUF;
    else
        otel_warn(draft, name, "it may be http/protobuf, http/json",
                  "this protocol is not spoken, the variable is ignored");
}

static void apply_compression(const struct draft *draft)
{
    const char *name, *value = setting(draft, "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION",
                                       "OTEL_EXPORTER_OTLP_COMPRESSION", &name);
    if (value && strcmp(value, "none") != 0)
        otel_warn(draft, name, "it may be none",
                  "requests are not compressed, the variable is ignored");
}

/* A collector without TLS shows no certificate. */
static void apply_certificate(const struct draft *draft, struct config_telemetry *telemetry)
{
    const char *name, *value = setting(draft, "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",
                                       "OTEL_EXPORTER_OTLP_CERTIFICATE", &name);
    if (!value || !telemetry->origin ||
        !str_starts_with(str_from(telemetry->origin), STR("https:")))
        return;
    free(telemetry->tls_ca);
    telemetry->tls_ca = memory_copy_text(value);
    telemetry->tls_ca_variable = name;
}

/* ---- headers and attributes ---- */

/* Takes over the value. */
static void validate_telemetry_add_pair(struct config_pair **pairs, size_t *count, char *name,
                                        char *value)
{
    *pairs = memory_grow_array(*pairs, *count + 1, sizeof **pairs);
    (*pairs)[(*count)++] = (struct config_pair){name, value};
}

static void take_map(const struct node *map, struct config_pair **pairs, size_t *count)
{
    for (size_t i = 0; map && map->kind == NODE_MAPPING && i < map->count; i++) {
        if (map->values[i]->kind == NODE_TEXT)
            validate_telemetry_add_pair(pairs, count, memory_copy_text(map->keys[i]->text),
                                        memory_copy_text(map->values[i]->text));
    }
}

static void validate_telemetry_take_headers(const struct draft *draft, const struct node *map,
                                            struct config_telemetry *telemetry)
{
    struct error error;
    for (size_t i = 0; map && map->kind == NODE_MAPPING && i < map->count; i++) {
        if (!check_header_name(str_from(map->keys[i]->text), &error) ||
            (node_text(map->values[i]) &&
             !check_header_value(str_from(map->values[i]->text), &error))) {
            OWNED char *path = document_join("telemetry.otlp.headers", map->keys[i]->text);
            report_error(&draft->report, map->keys[i], path, NULL, "%s", error.message);
        }
    }
    take_map(map, &telemetry->headers, &telemetry->header_count);
}

static void forget_headers(struct config_telemetry *telemetry)
{
    for (size_t i = 0; i < telemetry->header_count; i++) {
        free(telemetry->headers[i].name);
        explicit_bzero(telemetry->headers[i].value, strlen(telemetry->headers[i].value));
        free(telemetry->headers[i].value);
    }
    telemetry->header_count = 0;
}

static bool take_header(void *context, struct str name, struct str value)
{
    struct config_telemetry *telemetry = context;
    struct error error;
    if (!check_header_name(name, &error) || !check_header_value(value, &error))
        return false;
    validate_telemetry_add_pair(&telemetry->headers, &telemetry->header_count,
                                memory_copy_str(name), memory_copy_str(value));
    return true;
}

static void apply_headers(const struct draft *draft, struct config_telemetry *telemetry)
{
    const char *name, *value = setting(draft, "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
                                       "OTEL_EXPORTER_OTLP_HEADERS", &name);
    if (!value)
        return;
    forget_headers(telemetry);
    if (!otel_pairs(str_from(value), take_header, telemetry))
        otel_warn(draft, name, "write NAME=VALUE,NAME=VALUE",
                  "a header cannot be read, and is left out");
}

static bool check_attribute(void *context, struct str name, struct str value)
{
    (void)context;
    return name.length > 0 && str_is_utf8(name) && str_is_utf8(value);
}

/* The variable wins over the attribute of the same name. */
static bool take_attribute(void *context, struct str name, struct str value)
{
    struct config_telemetry *telemetry = context;
    for (size_t i = 0; i < telemetry->resource_count; i++) {
        struct config_pair *pair = &telemetry->resource[i];
        if (str_equal(str_from(pair->name), name)) {
            free(pair->value);
            pair->value = memory_copy_str(value);
            return true;
        }
    }
    validate_telemetry_add_pair(&telemetry->resource, &telemetry->resource_count,
                                memory_copy_str(name), memory_copy_str(value));
    return true;
}

/* "In case of any error the entire value SHOULD be discarded." */
static void apply_resource(const struct draft *draft, struct config_telemetry *telemetry)
{
    const char *name, *value = setting(draft, NULL, "OTEL_RESOURCE_ATTRIBUTES", &name);
    if (!value)
        return;
    if (otel_pairs(str_from(value), check_attribute, NULL))
        otel_pairs(str_from(value), take_attribute, telemetry);
    else
        otel_warn(draft, name, "write NAME=VALUE,NAME=VALUE, with the values percent-encoded",
                  "an attribute cannot be read, the variable is ignored");
}

/* ---- sampling ---- */

static void apply_sampler(const struct draft *draft, struct config_telemetry *telemetry)
{
    static const char *const names[] = {[SAMPLER_ON] = "always_on",
                                        [SAMPLER_OFF] = "always_off",
                                        [SAMPLER_RATIO] = "traceidratio",
                                        [SAMPLER_PARENT_ON] = "parentbased_always_on",
                                        [SAMPLER_PARENT_OFF] = "parentbased_always_off",
                                        [SAMPLER_PARENT_RATIO] = "parentbased_traceidratio"};
    const char *name, *value = setting(draft, "OTEL_TRACES_SAMPLER", NULL, &name);
    for (size_t i = 0; value && i < sizeof names / sizeof *names; i++) {
        if (strcmp(value, names[i]) == 0) {
            telemetry->sampler = (enum config_sampler)i;
            return;
        }
    }
    if (value)
        otel_warn(draft, name, "it may be always_on, always_off, traceidratio, or parentbased_…",
                  "this sampler does not exist, the variable is ignored");
}

static void validate_sampling(const struct draft *draft, struct config_telemetry *telemetry)
{
    const struct node *sampling = node_get(node_get(draft->root, "telemetry"), "sampling");
    const struct node *rate = node_get(sampling, "success_sample_rate");
    const struct node *strategy = node_get(sampling, "strategy");
    const char *name, *value = setting(draft, "OTEL_TRACES_SAMPLER_ARG", NULL, &name);
    telemetry->sampler = SAMPLER_PARENT_RATIO;
    telemetry->sample_rate = 1;
    if (node_text(rate))
        read_rate(rate->text, &telemetry->sample_rate); /* a bad one was reported */
    if (node_text(strategy) && strcmp(strategy->text, "tail") == 0)
        report_warning(&draft->report, strategy, "telemetry.sampling.strategy", NULL,
                       "tail is left to the collector; head is used");
    apply_sampler(draft, telemetry);
    if (value && !read_rate(value, &telemetry->sample_rate))
        otel_warn(draft, name, "write a number from 0 to 1",
                  "this is no share, the variable is ignored");
}

static void validate_batch(const struct draft *draft, const struct config_telemetry *telemetry)
{
    const struct node *batch = node_get(node_get(draft->root, "telemetry"), "batch");
    const struct node *queue_node = node_get(batch, "max_queue_size");
    const struct node *export_node = node_get(batch, "max_export_batch_size");
    bool are_numbers = telemetry->max_queue_size > 0 && telemetry->max_export_batch_size > 0;
    if (are_numbers && telemetry->max_export_batch_size > telemetry->max_queue_size)
        report_error(&draft->report, export_node ? export_node : queue_node,
                     "telemetry.batch.max_export_batch_size", "lower it, or raise max_queue_size",
                     "V-TEL-007 must not be above max_queue_size (%lld)",
                     (long long)telemetry->max_queue_size);
}

/* A shadow exports nothing. */
void validate_telemetry(const struct draft *draft)
{
    struct config_telemetry *telemetry = &draft->config->telemetry;
    const struct node *block = node_get(draft->root, "telemetry");
    if (!draft->is_shadow)
        apply_switch(draft, telemetry);
    apply_endpoint(draft, telemetry);
    if (telemetry->url)
        telemetry->origin = origin_of(str_from(telemetry->url));
    apply_protocol(draft, telemetry);
    apply_compression(draft);
    apply_certificate(draft, telemetry);
    validate_telemetry_take_headers(draft, node_get(node_get(block, "otlp"), "headers"), telemetry);
    apply_headers(draft, telemetry);
    take_map(node_get(block, "resource"), &telemetry->resource, &telemetry->resource_count);
    apply_resource(draft, telemetry);
    otel_apply_numbers(draft, telemetry);
    validate_sampling(draft, telemetry);
    validate_batch(draft, telemetry);
}
