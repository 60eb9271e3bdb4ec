/* Telemetry: ThoughtGate's block (V-TEL-…) and OpenTelemetry's variables, which win over it. */
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "taskgate/core/memory.h"
#include "validate.h"

#define TRACES_PATH "/v1/traces"
#define SWITCH "THOUGHTGATE_TELEMETRY_ENABLED"

static bool is_text(const struct node *node)
{
    return node && node->kind == NODE_TEXT && !node_is_null(node);
}

/* An empty variable counts as unset, as OpenTelemetry has it. Without telemetry those of other
 * programs are not looked at. */
static const char *variable(const struct draft *draft, const char *name)
{
    const char *value = draft->environment(name);
    bool counts = draft->config->telemetry.is_on || strcmp(name, SWITCH) == 0;
    return counts && value && *value ? value : NULL;
}

/* OpenTelemetry's specification wants a warning, and the variable ignored. */
static void warn(const struct draft *draft, const char *name, const char *hint, const char *what)
{
    problems_warning(draft->report.problems, (struct place){.file = name}, NULL, hint, "%s", what);
}

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
    const char *value = variable(draft, SWITCH);
    bool is_on;
    if (value && parse_bool(str_trim(str_from(value)), &is_on))
        telemetry->is_on = is_on;
    else if (value)
        warn(draft, SWITCH, "write true or false",
             "this is no truth value, the variable is ignored");
}

static void apply_endpoint(const struct draft *draft, struct config_telemetry *telemetry)
{
    static const char name[] = "OTEL_EXPORTER_OTLP_ENDPOINT";
    const char *value = variable(draft, name);
    struct error error;
    if (value && !check_url(str_from(value), &error)) {
        problems_error(draft->report.problems, (struct place){.file = name},
                       "telemetry.otlp.endpoint", NULL, "V-TEL-002 %s", error.message);
    } else if (value) {
        free(telemetry->url);
        telemetry->url = memory_copy_text(value);
    }
}

/* A collector has one path for each signal. */
static void add_path(struct config_telemetry *telemetry)
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
    static const char name[] = "OTEL_EXPORTER_OTLP_PROTOCOL";
    const struct node *otlp = node_get(node_get(draft->root, "telemetry"), "otlp");
    const struct node *node = node_get(otlp, "protocol");
    const char *value = variable(draft, name);
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
        warn(draft, name, "it may be http/protobuf, http/json",
             "this protocol is not spoken, the variable is ignored");
}

/* ---- headers and attributes ---- */

/* Takes over the value. */
static void add_pair(struct config_pair **pairs, size_t *count, char *name, char *value)
{
    *pairs = memory_grow_array(*pairs, *count + 1, sizeof **pairs);
    (*pairs)[(*count)++] = (struct config_pair){name, value};
}

static void take_map(const struct node *map, struct config_pair **pairs, size_t *count)
{
    for (size_t i = 0; map && map->kind == NODE_MAPPING && i < map->count; i++) {
        if (map->values[i]->kind == NODE_TEXT)
            add_pair(pairs, count, memory_copy_text(map->keys[i]->text),
                     memory_copy_text(map->values[i]->text));
    }
}

static void take_headers(const struct draft *draft, const struct node *map,
                         struct config_telemetry *telemetry)
{
    struct error error;
    for (size_t i = 0; map && map->kind == NODE_MAPPING && i < map->count; i++) {
        if (!check_header_name(str_from(map->keys[i]->text), &error) ||
            (is_text(map->values[i]) &&
             !check_header_value(str_from(map->values[i]->text), &error))) {
            char *path = document_join("telemetry.otlp.headers", map->keys[i]->text);
            report_error(&draft->report, map->keys[i], path, NULL, "%s", error.message);
            free(path);
        }
    }
    take_map(map, &telemetry->headers, &telemetry->header_count);
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Percent-encoded, as in W3C Baggage. */
static char *decode(struct str text)
{
    struct buffer out = {0};
    while (text.length > 0) {
        size_t taken = 1;
        char c = text.bytes[0];
        int high = c == '%' && text.length > 2 ? digit_of(text.bytes[1]) : -1;
        int low = high >= 0 ? digit_of(text.bytes[2]) : -1;
        if (low >= 0) {
            c = (char)(unsigned char)(high * 16 + low);
            taken = 3;
        }
        buffer_append_char(&out, c);
        text = str_slice(text.bytes + taken, text.length - taken);
    }
    char *decoded = memory_copy_str(buffer_str(&out));
    buffer_finish(&out);
    return decoded;
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

static void apply_headers(const struct draft *draft, struct config_telemetry *telemetry)
{
    static const char variable_name[] = "OTEL_EXPORTER_OTLP_HEADERS";
    struct str rest = str_from(variable(draft, variable_name)), item, name, value;
    struct error error;
    if (rest.length > 0)
        forget_headers(telemetry);
    while (rest.length > 0) {
        str_cut(rest, ',', &item, &rest);
        if (str_trim(item).length == 0)
            continue;
        bool has_value = str_cut(item, '=', &name, &value);
        char *decoded = decode(str_trim(value));
        if (!has_value || !check_header_name(str_trim(name), &error) ||
            !check_header_value(str_from(decoded), &error)) {
            warn(draft, variable_name, "write NAME=VALUE,NAME=VALUE",
                 "a header cannot be read, and is left out");
            free(decoded);
        } else {
            add_pair(&telemetry->headers, &telemetry->header_count, memory_copy_str(str_trim(name)),
                     decoded);
        }
    }
}

/* ---- sampling ---- */

static void apply_sampler(const struct draft *draft, struct config_telemetry *telemetry)
{
    static const char name[] = "OTEL_TRACES_SAMPLER";
    static const char *const names[] = {[SAMPLER_ON] = "always_on",
                                        [SAMPLER_OFF] = "always_off",
                                        [SAMPLER_RATIO] = "traceidratio",
                                        [SAMPLER_PARENT_ON] = "parentbased_always_on",
                                        [SAMPLER_PARENT_OFF] = "parentbased_always_off",
                                        [SAMPLER_PARENT_RATIO] = "parentbased_traceidratio"};
    const char *value = variable(draft, name);
    for (size_t i = 0; value && i < sizeof names / sizeof *names; i++) {
        if (strcmp(value, names[i]) == 0) {
            telemetry->sampler = (enum config_sampler)i;
            return;
        }
    }
    if (value)
        warn(draft, name, "it may be always_on, always_off, traceidratio, or parentbased_…",
             "this sampler does not exist, the variable is ignored");
}

static void validate_sampling(const struct draft *draft, struct config_telemetry *telemetry)
{
    static const char argument[] = "OTEL_TRACES_SAMPLER_ARG";
    const struct node *sampling = node_get(node_get(draft->root, "telemetry"), "sampling");
    const struct node *rate = node_get(sampling, "success_sample_rate");
    const struct node *strategy = node_get(sampling, "strategy");
    const char *value = variable(draft, argument);
    telemetry->sampler = SAMPLER_PARENT_RATIO;
    telemetry->sample_rate = 1;
    if (is_text(rate))
        read_rate(rate->text, &telemetry->sample_rate); /* a bad one was reported */
    if (is_text(strategy) && strcmp(strategy->text, "tail") == 0)
        report_warning(&draft->report, strategy, "telemetry.sampling.strategy", NULL,
                       "tail is left to the collector; head is used");
    apply_sampler(draft, telemetry);
    if (value && !read_rate(value, &telemetry->sample_rate))
        warn(draft, argument, "write a number from 0 to 1",
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
    if (!draft->is_shadow) {
        apply_switch(draft, telemetry);
        apply_endpoint(draft, telemetry);
    }
    if (telemetry->url) {
        telemetry->origin = origin_of(str_from(telemetry->url));
        add_path(telemetry);
    }
    apply_protocol(draft, telemetry);
    take_headers(draft, node_get(node_get(block, "otlp"), "headers"), telemetry);
    apply_headers(draft, telemetry);
    take_map(node_get(block, "resource"), &telemetry->resource, &telemetry->resource_count);
    validate_sampling(draft, telemetry);
    validate_batch(draft, telemetry);
}
