/* Environment variables, applied over the file. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "config_private.h"
#include "environment.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

/* The table of environment variables. A new variable is a new row. */

#define AT(member)                                                                                 \
    .offset = offsetof(struct config, member), .size = sizeof(((struct config *)NULL)->member)
#define RANGE(low, high) .minimum = (low), .maximum = (high)
#define SECOND INT64_C(1000)
#define YEAR (SECOND * 365 * 24 * 3600)
/* clang-format off */
const struct variable environment_table[] = {
    {VARIABLE_ELSEWHERE, {{"THOUGHTGATE_CONFIG", 0}}, .help = "Path of the configuration file."},
    {VARIABLE_ELSEWHERE, {{"THOUGHTGATE_ADMIN_TOKEN", 0}}, .help = "A token named `admin`, of an approver and auditor."},
    {VARIABLE_ELSEWHERE, {{"THOUGHTGATE_POLICY_FILE", 0}}, .sets = "cedar.policies", .help = "A file of Cedar policies. If nothing names one, `/etc/thoughtgate/policies.cedar` is read if it exists."},
    {VARIABLE_ELSEWHERE, {{"THOUGHTGATE_POLICIES", 0}}, .sets = "cedar.policies", .help = "Cedar policies themselves; `THOUGHTGATE_POLICY_FILE` wins over it."},
    {VARIABLE_ELSEWHERE, {{"THOUGHTGATE_UPSTREAM_CLIENT", 0}}, .default_text = "auto", .help = "With `curl` libcurl sends every call. With `auto` it sends only those that are not plain http."},
    {VARIABLE_ELSEWHERE, {{"RUST_LOG", 0}}, .default_text = "info", .help = "The least level that is logged: `debug`, `info`, `warn` or `error`. Anything else counts as `info`."},
    {VARIABLE_UPSTREAM, {{"THOUGHTGATE_UPSTREAM", 0}}, .sets = "sources[].url", .help = "URL of the only source. With several sources it is an error."},

    {VARIABLE_NUMBER, {{"THOUGHTGATE_OUTBOUND_PORT", 1}}, AT(proxy_port), RANGE(0, 65535), .default_text = "7467", .help = "Port of the proxy; 0 lets the system choose."},
    {VARIABLE_NUMBER, {{"THOUGHTGATE_ADMIN_PORT", 1}}, AT(admin_port), RANGE(0, 65535), .default_text = "7469", .help = "Port of the admin endpoint; 0 lets the system choose."},
    {VARIABLE_ADDRESS, {{"THOUGHTGATE_ADMIN_BIND", 0}}, AT(admin_bind), .default_text = "127.0.0.1", .help = "Address of the admin endpoint."},

    {VARIABLE_TEXT, {{"THOUGHTGATE_STORE_PATH", 0}}, AT(store_path), .sets = "store.path", .help = "Path of the database."},
    {VARIABLE_ELSEWHERE, {{"THOUGHTGATE_STORE_URL", 0}}, .sets = "store.url", .help = "URL of a PostgreSQL database. It wins over `store.path` and its variable, too."},
    {VARIABLE_ELSEWHERE, {{"HOSTNAME", 0}}, .help = "Name of the replica where `replica.id` gives none."},

    {VARIABLE_NUMBER, {{"THOUGHTGATE_TASK_DEFAULT_TTL_MS", 1}, {"THOUGHTGATE_TASK_DEFAULT_TTL_SECS", SECOND}, {"THOUGHTGATE_DEFAULT_TASK_TTL_SECS", SECOND}},
     AT(times.task_default_ttl_ms), RANGE(1, YEAR), .default_text = "600000", .help = "Lifetime of a task that asks for none."},
    {VARIABLE_NUMBER, {{"THOUGHTGATE_TASK_MAX_TTL_MS", 1}, {"THOUGHTGATE_TASK_MAX_TTL_SECS", SECOND}, {"THOUGHTGATE_MAX_TASK_TTL_SECS", SECOND}},
     AT(times.task_max_ttl_ms), RANGE(1, YEAR), .default_text = "86400000", .help = "Longest lifetime; longer ones are cut to it."},
    {VARIABLE_FORCE_REQUIRED, {{"THOUGHTGATE_TASK_FORCE_REQUIRED", 0}}, AT(force_required), .sets = "task_annotation_overrides.force_required", .help = "Tool names with commas between them. They are added to those of the file."},
    {VARIABLE_NUMBER, {{"THOUGHTGATE_TASK_MAX_PENDING_PER_PRINCIPAL", 1}}, AT(limits.pending_per_principal), RANGE(1, INT32_MAX), .sets = "limits.pending_per_principal", .help = "Undecided tasks of one owner."},
    {VARIABLE_NUMBER, {{"THOUGHTGATE_TASK_MAX_PENDING_GLOBAL", 1}}, AT(limits.pending_total), RANGE(1, INT32_MAX), .sets = "limits.pending_total", .help = "Undecided tasks of all owners."},

    {VARIABLE_NUMBER, {{"THOUGHTGATE_APPROVAL_TIMEOUT_SECS", SECOND}, {"THOUGHTGATE_DEFAULT_APPROVAL_TIMEOUT_SECS", SECOND}},
     AT(times.approval_timeout_ms), RANGE(5 * SECOND, YEAR), .rule = "V-015", .default_text = "600", .help = "Timeout of workflows that set none."},
    {VARIABLE_NUMBER, {{"THOUGHTGATE_APPROVAL_VALIDITY_SECS", SECOND}}, AT(times.approval_validity_ms), RANGE(SECOND, YEAR), .default_text = "300", .help = "The time within which an approved call must be executed."},
    {VARIABLE_NUMBER, {{"THOUGHTGATE_EXECUTION_TIMEOUT_SECS", SECOND}}, AT(times.execution_timeout_ms), RANGE(SECOND, YEAR), .default_text = "3600", .help = "Silence allowed while an approved call is executed."},

    {VARIABLE_NUMBER, {{"THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS", SECOND}}, AT(times.sync_forward_timeout_ms), RANGE(SECOND, YEAR), .default_text = "60", .help = "Silence allowed in a forwarded call."},
    {VARIABLE_NUMBER, {{"THOUGHTGATE_UPSTREAM_CONNECT_TIMEOUT_SECS", SECOND}}, AT(times.connect_timeout_ms), RANGE(SECOND, 3600 * SECOND), .default_text = "5", .help = "Time to connect to a server."},
    {VARIABLE_NUMBER, {{"THOUGHTGATE_TOOLS_FETCH_TIMEOUT_MS", 1}}, AT(times.tools_fetch_timeout_ms), RANGE(1, YEAR), .default_text = "30000", .help = "Time to fetch the whole list of tools."},
    {VARIABLE_NUMBER, {{"THOUGHTGATE_TOOLS_MAX_PAGES", 1}}, AT(times.tools_max_pages), RANGE(1, 1000000), .default_text = "100", .help = "The most pages of that list that are fetched. A cursor that comes a second time ends the list before."},

    {VARIABLE_NUMBER, {{"THOUGHTGATE_MAX_REQUEST_BODY_BYTES", 1}}, AT(limits.body_bytes), RANGE(1, INT64_C(1) << 30), .sets = "limits.body_bytes", .help = "Size of a request."},
    {VARIABLE_NUMBER, {{"THOUGHTGATE_RATE_LIMIT_RPS", 1}}, AT(limits.requests_per_second), RANGE(0, INT32_MAX), .sets = "limits.requests_per_second", .help = "Requests per second from one client address; 0 means no limit."},
    {VARIABLE_NUMBER, {{"THOUGHTGATE_SHUTDOWN_TIMEOUT_SECS", SECOND}}, AT(times.shutdown_timeout_ms), RANGE(SECOND, YEAR), .default_text = "30", .help = "Time within which the process ends after SIGTERM."},
    {VARIABLE_NUMBER, {{"THOUGHTGATE_DRAIN_TIMEOUT_SECS", SECOND}}, AT(times.drain_timeout_ms), RANGE(0, YEAR), .default_text = "25", .help = "Part of that time in which requests under way may finish."},
    {VARIABLE_NUMBER, {{"THOUGHTGATE_SHUTDOWN_LINGER_SECS", SECOND}}, AT(times.linger_ms), RANGE(0, YEAR), .default_text = "0", .help = "Time before these two, after SIGTERM, in which `/ready` is 503 and all is served as before, each connection up to its next answer. A second SIGTERM ends it."},

    {VARIABLE_ELSEWHERE, {{"THOUGHTGATE_SLACK_BOT_TOKEN", 0}}, .help = "Token of a `destination` of the type `slack` that names no variable."},
    {VARIABLE_TEXT, {{"THOUGHTGATE_SLACK_CHANNEL", 0}}, AT(slack.channel), .help = "Channel of such a destination that names none."},
    {VARIABLE_TEXT, {{"THOUGHTGATE_SLACK_APPROVE_REACTION", 0}}, AT(slack.approve_reaction), .default_text = "+1", .help = "Emoji that approves in Slack."},
    {VARIABLE_TEXT, {{"THOUGHTGATE_SLACK_REJECT_REACTION", 0}}, AT(slack.reject_reaction), .default_text = "-1", .help = "Emoji that rejects in Slack."},
    {VARIABLE_NUMBER, {{"THOUGHTGATE_APPROVAL_POLL_INTERVAL_SECS", SECOND}}, AT(slack.poll_ms), RANGE(SECOND, 3600 * SECOND), .default_text = "5", .help = "Seconds between two looks at the reactions in Slack."},
    {VARIABLE_NUMBER, {{"THOUGHTGATE_SLACK_RATE_LIMIT_PER_SEC", 1}}, AT(slack.requests_per_second), RANGE(1, 100), .default_text = "1", .help = "Requests a second that ask Slack for reactions, for each token."},

    {VARIABLE_ELSEWHERE, {{"THOUGHTGATE_TELEMETRY_ENABLED", 0}}, .sets = "telemetry.enabled", .help = "`true` or `false`."},
    {VARIABLE_ELSEWHERE, {{"OTEL_SDK_DISABLED", 0}}, .default_text = "false", .help = "`true` switches telemetry off, whatever else switches it on."},
    {VARIABLE_ELSEWHERE, {{"OTEL_TRACES_EXPORTER", 0}}, .default_text = "otlp", .help = "`none` switches telemetry off."},
    {VARIABLE_ELSEWHERE, {{"OTEL_EXPORTER_OTLP_ENDPOINT", 0}}, .sets = "telemetry.otlp.endpoint", .help = "URL of the collector."},
    {VARIABLE_ELSEWHERE, {{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", 0}}, .sets = "telemetry.otlp.endpoint", .help = "The same, and it wins; no path is added."},
    {VARIABLE_ELSEWHERE, {{"OTEL_EXPORTER_OTLP_PROTOCOL", 0}}, .sets = "telemetry.otlp.protocol", .help = "`http/protobuf` or `http/json`."},
    {VARIABLE_ELSEWHERE, {{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", 0}}, .sets = "telemetry.otlp.protocol", .help = "The same, and it wins."},
    {VARIABLE_ELSEWHERE, {{"OTEL_EXPORTER_OTLP_HEADERS", 0}}, .sets = "telemetry.otlp.headers", .help = "Headers, such as `authorization=Bearer%20TOKEN,x-team=a`, with the values percent-encoded. They replace those of the file."},
    {VARIABLE_ELSEWHERE, {{"OTEL_EXPORTER_OTLP_TRACES_HEADERS", 0}}, .sets = "telemetry.otlp.headers", .help = "The same, and it wins."},
    {VARIABLE_ELSEWHERE, {{"OTEL_EXPORTER_OTLP_TIMEOUT", 0}}, .sets = "telemetry.batch.export_timeout_ms", .help = "Milliseconds that a request to the collector may take."},
    {VARIABLE_ELSEWHERE, {{"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", 0}}, .sets = "telemetry.batch.export_timeout_ms", .help = "The same, and it wins."},
    {VARIABLE_ELSEWHERE, {{"OTEL_EXPORTER_OTLP_CERTIFICATE", 0}}, .sets = "telemetry.otlp.tls.ca", .help = "File with the authorities of a collector behind https, in PEM."},
    {VARIABLE_ELSEWHERE, {{"OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", 0}}, .sets = "telemetry.otlp.tls.ca", .help = "The same, and it wins."},
    {VARIABLE_ELSEWHERE, {{"OTEL_EXPORTER_OTLP_COMPRESSION", 0}}, .default_text = "none", .help = "Only `none`: requests are not compressed. Anything else is a warning."},
    {VARIABLE_ELSEWHERE, {{"OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", 0}}, .default_text = "none", .help = "The same, and it wins."},
    {VARIABLE_ELSEWHERE, {{"OTEL_BSP_SCHEDULE_DELAY", 0}}, .sets = "telemetry.batch.scheduled_delay_ms", .help = "Milliseconds that a span waits for others at most."},
    {VARIABLE_ELSEWHERE, {{"OTEL_BSP_MAX_QUEUE_SIZE", 0}}, .sets = "telemetry.batch.max_queue_size", .help = "Spans that may wait."},
    {VARIABLE_ELSEWHERE, {{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 0}}, .sets = "telemetry.batch.max_export_batch_size", .help = "Spans sent at once."},
    {VARIABLE_ELSEWHERE, {{"OTEL_RESOURCE_ATTRIBUTES", 0}}, .sets = "telemetry.resource", .help = "Resource attributes, such as `deployment.environment=test,team=a%20b`, with the values percent-encoded. They are added to those of the file."},
    {VARIABLE_ELSEWHERE, {{"OTEL_SERVICE_NAME", 0}}, .default_text = "taskgate", .help = "The resource attribute `service.name`. It wins over `telemetry.resource` and over `OTEL_RESOURCE_ATTRIBUTES`."},
    {VARIABLE_ELSEWHERE, {{"OTEL_TRACES_SAMPLER", 0}}, .default_text = "parentbased_traceidratio", .help = "`always_on`, `always_off`, `traceidratio`, or one of these with `parentbased_` before it: then a client that has begun a trace decides on it."},
    {VARIABLE_ELSEWHERE, {{"OTEL_TRACES_SAMPLER_ARG", 0}}, .sets = "telemetry.sampling.success_sample_rate", .help = "The share of the samplers `traceidratio`, from 0 to 1."},
    {VARIABLE_ELSEWHERE, {{"K8S_NAMESPACE", 0}}, .help = "The resource attribute `k8s.namespace.name`."},
    {VARIABLE_ELSEWHERE, {{"POD_NAME", 0}}, .help = "The resource attribute `k8s.pod.name`."},
    {VARIABLE_ELSEWHERE, {{"NODE_NAME", 0}}, .help = "The resource attribute `k8s.node.name`."},
    {VARIABLE_ELSEWHERE, {{"HOSTNAME", 0}}, .help = "The resource attribute `host.name`."},

    {VARIABLE_REFUSED, {{"THOUGHTGATE_PROFILE", 0}}, .allowed = "production prod", .help = "Only `production`: a development profile would switch approval off."},
    {VARIABLE_REFUSED, {{"THOUGHTGATE_DEV_MODE", 0}}, .allowed = "false 0 no off", .help = "Only `false`: it would switch approval off."},
    {VARIABLE_REFUSED, {{"THOUGHTGATE_MOCK_AUTO_APPROVE", 0}}, .allowed = "false 0 no off", .help = "Only `false`: it would switch approval off."},
    {VARIABLE_REFUSED, {{"THOUGHTGATE_APPROVAL_ADAPTER", 0}}, .allowed = "admin slack", .help = "Not `mock`: it would switch approval off. `slack` changes nothing: workflows name it as their destination."},
    {VARIABLE_REFUSED, {{"THOUGHTGATE_ON_TIMEOUT", 0}}, .allowed = "deny", .help = "Only `deny`: a call without a decision is never executed."},

    {VARIABLE_WITHOUT_EFFECT, {{"THOUGHTGATE_UPSTREAM_TIMEOUT_SECS", 0}}, .help = "use THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS"},
    {VARIABLE_WITHOUT_EFFECT, {{"THOUGHTGATE_RATE_LIMIT_BURST", 0}}, .help = "the rate limit has no burst of its own"},
};
/* clang-format on */
const size_t environment_count = sizeof environment_table / sizeof *environment_table;

/* The spelling that is set and comes first, or MAX_SPELLINGS. */
static size_t find_spelling(const struct draft *draft, const struct variable *variable)
{
    for (size_t i = 0; i < MAX_SPELLINGS && variable->spellings[i].name; i++) {
        if (draft_variable(draft, variable->spellings[i].name))
            return i;
    }
    return MAX_SPELLINGS;
}

static void environment_complain(const struct draft *draft, const char *name, const char *key,
                                 const char *hint, const char *message)
{
    struct place place = {.file = name};
    problems_error(draft->report.problems, place, key, hint, "%s", message);
}

static void environment_warn(const struct draft *draft, const char *name, const char *key,
                             const char *hint, const char *message)
{
    struct place place = {.file = name};
    problems_warning(draft->report.problems, place, key, hint, "%s", message);
}

static void store_number(const struct draft *draft, const struct variable *variable, int64_t value)
{
    char *target = (char *)draft->config + variable->offset;
    uint16_t port = (uint16_t)value;
    if (variable->size == sizeof port)
        memcpy(target, &port, sizeof port);
    else
        memcpy(target, &value, sizeof value);
}

static void refuse_range(const struct draft *draft, const struct variable *variable,
                         size_t spelling)
{
    int64_t factor = variable->spellings[spelling].factor;
    const char *rule = variable->rule ? variable->rule : "";
    OWNED char *message =
        memory_format("%s%smust be from %" PRId64 " to %" PRId64, rule, *rule ? " " : "",
                      (variable->minimum + factor - 1) / factor, variable->maximum / factor);
    environment_complain(draft, variable->spellings[spelling].name, variable->sets, NULL, message);
}

static void apply_number(const struct draft *draft, const struct variable *variable)
{
    size_t spelling = find_spelling(draft, variable);
    uint64_t number;
    int64_t value;
    if (variable->default_text && str_to_u64(str_from(variable->default_text), &number))
        store_number(draft, variable, (int64_t)number * variable->spellings[0].factor);
    if (spelling == MAX_SPELLINGS)
        return;
    const char *name = variable->spellings[spelling].name;
    for (size_t i = spelling + 1; i < MAX_SPELLINGS && variable->spellings[i].name; i++) {
        OWNED char *message = memory_format("%s is set as well and wins", name);
        if (draft_variable(draft, variable->spellings[i].name))
            environment_warn(draft, variable->spellings[i].name, variable->sets, NULL, message);
    }
    if (!str_to_u64(str_trim(str_from(draft_variable(draft, name))), &number)) {
        environment_warn(draft, name, variable->sets, NULL,
                         "this is no whole number, the variable is ignored");
        return;
    }
    bool is_huge =
        number > INT64_MAX ||
        __builtin_mul_overflow((int64_t)number, variable->spellings[spelling].factor, &value);
    if (is_huge || value < variable->minimum || value > variable->maximum)
        refuse_range(draft, variable, spelling);
    else
        store_number(draft, variable, value);
}

static void apply_address(const struct draft *draft, const struct variable *variable)
{
    const char *value = draft_variable(draft, variable->spellings[0].name);
    struct error error;
    if (value && !check_address(str_from(value), &error))
        environment_complain(draft, variable->spellings[0].name, variable->sets, NULL,
                             error.message);
    char *copy = memory_copy_text(value ? value : variable->default_text);
    memcpy((char *)draft->config + variable->offset, &copy, sizeof copy);
}

static void apply_text(const struct draft *draft, const struct variable *variable)
{
    const char *value = draft_variable(draft, variable->spellings[0].name);
    char *text;
    if (!value)
        value = variable->default_text;
    if (!value)
        return;
    memcpy(&text, (char *)draft->config + variable->offset, sizeof text);
    free(text);
    text = memory_copy_text(value);
    memcpy((char *)draft->config + variable->offset, &text, sizeof text);
}

static void apply_force_required(const struct draft *draft, const struct variable *variable)
{
    struct config_strings *names = &draft->config->force_required;
    struct str name, rest = str_from(draft_variable(draft, variable->spellings[0].name));
    while (rest.length) {
        str_cut(rest, ',', &name, &rest);
        name = str_trim(name);
        OWNED char *text = memory_copy_str(name);
        if (*text && !config_strings_have(names, text))
            config_strings_add(names, name);
    }
}

static void apply_upstream(const struct draft *draft, const struct variable *variable)
{
    const char *name = variable->spellings[0].name, *value = draft_variable(draft, name);
    struct config *config = draft->config;
    struct error error;
    if (!value)
        return;
    if (config->source_count > 1) {
        environment_complain(
            draft, name, variable->sets, "unset it, and write each url into the file",
            "there are several sources, and this replaces the url of a single one");
    } else if (!check_url(str_from(value), &error)) {
        OWNED char *message = memory_format("V-008 %s", error.message);
        environment_complain(draft, name, variable->sets, NULL, message);
    } else if (config->source_count == 1) {
        free(config->sources[0].url);
        config->sources[0].url = memory_copy_text(value);
    }
}

static void apply_refused(const struct draft *draft, const struct variable *variable)
{
    const char *name = variable->spellings[0].name;
    struct str value = str_trim(str_from(draft_variable(draft, name)));
    struct str candidate, rest = str_from(variable->allowed);
    if (value.length == 0)
        return;
    do {
        str_cut(rest, ' ', &candidate, &rest);
        if (str_equal_ignore_case(candidate, value))
            return;
    } while (rest.length);
    OWNED char *text = memory_copy_str(value);
    OWNED char *quoted = problems_quote(text);
    OWNED char *message =
        memory_format("%s is refused: nothing in the environment may switch approval off", quoted);
    environment_complain(draft, name, NULL, "unset it", message);
}

/* Whether the variable that fills `offset` of the configuration is set. */
static bool is_set(const struct draft *draft, size_t offset)
{
    for (size_t i = 0; i < environment_count; i++) {
        const struct variable *variable = &environment_table[i];
        if (variable->kind == VARIABLE_NUMBER && variable->offset == offset)
            return find_spelling(draft, variable) < MAX_SPELLINGS;
    }
    return false;
}

/* Two numbers that must not cross. If only one was set, the other's default gives way. */
static void check_invariants(const struct draft *draft)
{
    struct config *config = draft->config;
    struct config_times *times = &config->times;
    if (times->task_default_ttl_ms > times->task_max_ttl_ms) {
        if (!is_set(draft, offsetof(struct config, times.task_default_ttl_ms)))
            times->task_default_ttl_ms = times->task_max_ttl_ms;
        else if (!is_set(draft, offsetof(struct config, times.task_max_ttl_ms)))
            times->task_max_ttl_ms = times->task_default_ttl_ms;
        else
            environment_complain(draft, "THOUGHTGATE_TASK_DEFAULT_TTL_MS", NULL, NULL,
                                 "must not be above THOUGHTGATE_TASK_MAX_TTL_MS");
    }
    if (times->approval_timeout_ms > times->task_max_ttl_ms &&
        is_set(draft, offsetof(struct config, times.approval_timeout_ms)))
        environment_warn(
            draft, "THOUGHTGATE_APPROVAL_TIMEOUT_SECS", NULL,
            "set THOUGHTGATE_TASK_MAX_TTL_MS higher",
            "a human has no longer than THOUGHTGATE_TASK_MAX_TTL_MS, the longest life of a task");
    bool drain_is_set = is_set(draft, offsetof(struct config, times.drain_timeout_ms));
    if (drain_is_set && times->drain_timeout_ms >= times->shutdown_timeout_ms)
        environment_complain(draft, "THOUGHTGATE_DRAIN_TIMEOUT_SECS", NULL, NULL,
                             "must be below THOUGHTGATE_SHUTDOWN_TIMEOUT_SECS");
    else if (times->drain_timeout_ms >= times->shutdown_timeout_ms)
        times->drain_timeout_ms = times->shutdown_timeout_ms - 1000;
    if (config->proxy_port == config->admin_port && config->proxy_port != 0)
        environment_complain(draft, "THOUGHTGATE_ADMIN_PORT", NULL, NULL,
                             "must not be the proxy's port (THOUGHTGATE_OUTBOUND_PORT)");
}

void environment_apply(const struct draft *draft)
{
    for (size_t i = 0; i < environment_count; i++) {
        const struct variable *variable = &environment_table[i];
        switch (variable->kind) {
        case VARIABLE_NUMBER:
            apply_number(draft, variable);
            break;
        case VARIABLE_ADDRESS:
            apply_address(draft, variable);
            break;
        case VARIABLE_TEXT:
            apply_text(draft, variable);
            break;
        case VARIABLE_FORCE_REQUIRED:
            apply_force_required(draft, variable);
            break;
        case VARIABLE_UPSTREAM:
            apply_upstream(draft, variable);
            break;
        case VARIABLE_REFUSED:
            apply_refused(draft, variable);
            break;
        case VARIABLE_WITHOUT_EFFECT:
            if (draft_variable(draft, variable->spellings[0].name))
                environment_warn(draft, variable->spellings[0].name, NULL, variable->help,
                                 "the variable has no effect");
            break;
        case VARIABLE_ELSEWHERE:
            break;
        }
    }
    check_invariants(draft);
}
