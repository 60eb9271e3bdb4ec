/* The table of environment variables. A new variable is a new row. */
#include "environment.h"

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
