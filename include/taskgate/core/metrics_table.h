/*
 * The table of metrics: METRIC_ROW(symbol, type, name without prefix, labels, help, buckets…).
 * Included many times; no guard on purpose. Labels are one string, comma-separated, "" for none;
 * buckets are a brace-free list of numbers, for histograms alone. A counter's name ends in
 * `_total`.
 */
/* clang-format off */
#ifndef METRIC_ROW
#error "define METRIC_ROW before including this table"
#endif
#define BUCKETS_REQUEST_MS 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 5000
#define BUCKETS_CEDAR_MS 0.01, 0.05, 0.1, 0.25, 0.5, 1, 5, 10
#define BUCKETS_UPSTREAM_MS 1, 5, 10, 25, 50, 100, 250, 500, 1000, 5000, 10000
#define BUCKETS_WAIT_S 1, 5, 10, 30, 60, 300, 900, 1800, 3600
#define BUCKETS_BYTES 128, 512, 1024, 4096, 16384, 65536, 262144, 1048576
METRIC_ROW(REQUESTS, COUNTER, "requests_total", "method,tool_name,status", "Requests by outcome: success or error.")
METRIC_ROW(DECISIONS, COUNTER, "decisions_total", "gate,outcome", "Decisions of each gate.")
METRIC_ROW(ERRORS, COUNTER, "errors_total", "error_type,method", "JSON-RPC errors that the gateway itself answers.")
METRIC_ROW(LIMITS_REACHED, COUNTER, "limits_reached_total", "limit", "Requests and tasks refused by a limit, by its key below `limits`. For connections: times that their limit was reached.")
METRIC_ROW(REPLICA_NEWS, COUNTER, "replica_news_total", "kind,outcome", "What replicas tell each other for their clients, by kind and outcome: sent or lost, to each of them; taken, from one of them.")
METRIC_ROW(RELAYED_REQUESTS, COUNTER, "relayed_requests_total", "outcome", "Requests to the replica where their session or task lives, by outcome: relayed; unreachable or refused, and handled here; lost with that replica; repeated here, because it was lost and may be handled twice; unsigned, of the port for replicas.")
METRIC_ROW(EXTENSIONS_HIDDEN, COUNTER, "extensions_hidden_total", "source", "Extensions of the protocol that a server offers and that are left out of its answers to `initialize` and `server/discover`.")
METRIC_ROW(HEADER_MISMATCHES, COUNTER, "header_mismatches_total", "header", "Modern requests refused because a header does not say what the body says.")
METRIC_ROW(APPROVAL_REQUESTS, COUNTER, "approval_requests_total", "channel,outcome", "Approvals asked for and decided.")
METRIC_ROW(VOTES, COUNTER, "votes_total", "workflow,verb", "Votes of operators that were counted, by verb: approve, reject or withdraw.")
METRIC_ROW(EMERGENCY_APPROVALS, COUNTER, "emergency_approvals_total", "", "Calls that one person alone has approved in an emergency.")
METRIC_ROW(TOKENS_REFUSED, COUNTER, "tokens_refused_total", "source,reason", "Requests refused for their access token.")
METRIC_ROW(OPERATORS_REFUSED, COUNTER, "operators_refused_total", "via,reason", "Requests to the admin port refused for their credentials: a token, a token of the issuer (oidc), the cookie of a session, or a certificate.")
METRIC_ROW(SIGN_INS, COUNTER, "sign_ins_total", "outcome", "Sign-ins of operators, by outcome: success, or why they were refused: malformed, state, provider, issuer, untrusted, no_role, unavailable, store or shutting_down.")
METRIC_ROW(UPSTREAM_REQUESTS, COUNTER, "upstream_requests_total", "target,status_code", "Calls to upstream servers.")
METRIC_ROW(TASKS_CREATED, COUNTER, "tasks_created_total", "task_type", "Tasks created: approval, accelerated or promoted.")
METRIC_ROW(TASKS_COMPLETED, COUNTER, "tasks_completed_total", "task_type,outcome", "Tasks that ended, by final state.")
METRIC_ROW(CEDAR_EVALUATIONS, COUNTER, "cedar_evaluations_total", "decision,policy_id", "Calls that Cedar policies decided: forward, approve or reject.")
METRIC_ROW(CEDAR_POLICY_ERRORS, COUNTER, "cedar_policy_errors_total", "policy,effect", "Policies that could not be evaluated.")
METRIC_ROW(CEDAR_RELOADS, COUNTER, "cedar_reload_total", "status", "Reloads of Cedar policies: success or error.")
METRIC_ROW(CONFIG_LOADS, COUNTER, "config_load_total", "status", "Configuration loads: success or error.")
METRIC_ROW(RULE_MATCHES, COUNTER, "rule_matches_total", "action", "Tool calls by the action that applied.")
METRIC_ROW(SHADOW_CALLS, COUNTER, "shadow_calls_total", "outcome", "Calls judged by the shadow configuration: same, different, error (a policy of the shadow could not be evaluated) or skipped (too many waited).")
METRIC_ROW(SHADOW_DIFFERENCES, COUNTER, "shadow_differences_total", "outcome,shadow_outcome", "Calls that the shadow configuration would treat differently, by the real outcome and the outcome under the shadow.")
METRIC_ROW(TASK_VALIDATION_ERRORS, COUNTER, "task_validation_errors_total", "error", "Calls refused for their task field: required or forbidden.")
METRIC_ROW(NOTIFIERS_FAILING, GAUGE, "notifiers_failing", "", "Endpoints of `notify` whose last attempt has failed.")
METRIC_ROW(SLACK_REQUESTS, COUNTER, "slack_requests_total", "method,outcome", "Requests that ask Slack for reactions or answer a press, by outcome: ok, limited or refused.")
METRIC_ROW(NOTIFIER_UP, GAUGE, "notifier_up", "notifier", "Whether the last attempt at an endpoint of `notify` has succeeded: 1 or 0.")
METRIC_ROW(NOTIFICATIONS, COUNTER, "notifications_total", "outcome", "Attempts to notify the operators' endpoints, by outcome: delivered, retried, given_up or dropped.")
METRIC_ROW(PSEUDO_CALLS, COUNTER, "pseudo_tool_calls_total", "tool", "Calls of the gateway's own tools.")
METRIC_ROW(PSEUDO_WAITS, COUNTER, "pseudo_waits_total", "kind,outcome", "Held calls of clients without tasks, by the end of the wait.")
METRIC_ROW(PSEUDO_CLIENTS, GAUGE, "pseudo_clients", "", "Clients without tasks for which events are kept.")
METRIC_ROW(TELEMETRY_DROPPED, COUNTER, "telemetry_dropped_total", "signal", "Spans that have not reached the collector, because the queue was full or the collector did not take them, by signal: traces.")
METRIC_ROW(TLS_HANDSHAKES, COUNTER, "tls_handshakes_total", "port,outcome", "TLS handshakes of each port (proxy, admin), by outcome: full, resumed, or the kind of failure: plain_http, version, certificate, refused (by the client), timeout, left, failed.")
METRIC_ROW(TOOLS_BY_ANNOTATION, GAUGE, "tools_by_annotation", "annotation", "Visible tools by announced taskSupport. Of each source the last complete list counts.")
METRIC_ROW(TASKS_PENDING, GAUGE, "tasks_pending", "task_type", "Tasks that wait for a decision.")
METRIC_ROW(TASKS_OLDEST_PENDING, GAUGE, "tasks_oldest_pending_seconds", "workflow", "How long the oldest undecided task of a workflow has waited; without one, no value. Looked at every ten seconds.")
METRIC_ROW(TASKS_TIME_USED, GAUGE, "tasks_time_used_ratio", "workflow", "The largest share of its time for a decision, 0 to 1, that an undecided task of a workflow has used; without one, no value. Looked at every ten seconds.")
METRIC_ROW(GRANTS_ACTIVE, GAUGE, "grants_active", "", "Grants in force.")
METRIC_ROW(DEFINITIONS_CHANGED, COUNTER, "definitions_changed_total", "source,kind", "Definitions of servers that differ from those accepted, by kind: tool, prompt or skill. Each is counted once.")
METRIC_ROW(DEFINITIONS_FLAGGED, COUNTER, "definitions_flagged_total", "source,reason", "Definitions of servers that look harmful, by reason. Each is counted once.")
METRIC_ROW(BLOCKS_ACTIVE, GAUGE, "blocks_active", "", "Blocks in force.")
METRIC_ROW(STORE_BYTES, GAUGE, "store_bytes", "", "Bytes in use in the store, of `limits.store_bytes`. Looked at every ten seconds.")
METRIC_ROW(STORE_LIMIT, GAUGE, "store_limit_bytes", "", "`limits.store_bytes`.")
METRIC_ROW(CEDAR_POLICIES_LOADED, GAUGE, "cedar_policies_loaded", "", "Cedar policies in force.")
METRIC_ROW(CONNECTIONS_ACTIVE, GAUGE, "connections_active", "transport", "Open client connections.")
METRIC_ROW(ACTIVE_REQUESTS, GAUGE, "active_requests", "", "Requests under way.")
METRIC_ROW(UPTIME, GAUGE, "uptime_seconds", "", "Seconds since the start.")
METRIC_ROW(CONFIG_RELOAD_TIMESTAMP, GAUGE, "config_reload_timestamp", "", "Time at which the configuration in force was loaded, in seconds since 1970.")
METRIC_ROW(TLS_EXPIRES, GAUGE, "tls_certificate_expires_timestamp", "port", "Time at which the certificate of the port expires, in seconds since 1970.")
METRIC_ROW(STARTUP_DURATION, GAUGE, "startup_duration_seconds", "", "Seconds from start to ready.")
METRIC_ROW(UPSTREAM_HEALTH, GAUGE, "upstream_health", "source,status", "1 for the present status of the server of each source, once it was tried.")
METRIC_ROW(REQUEST_DURATION, HISTOGRAM, "request_duration_ms", "method,tool_name", "Milliseconds from request to response.", BUCKETS_REQUEST_MS)
METRIC_ROW(CEDAR_EVALUATION_DURATION, HISTOGRAM, "cedar_evaluation_duration_ms", "decision", "Milliseconds of a decision by Cedar policies.", BUCKETS_CEDAR_MS)
METRIC_ROW(UPSTREAM_DURATION, HISTOGRAM, "upstream_duration_ms", "target", "Milliseconds of calls to upstream.", BUCKETS_UPSTREAM_MS)
METRIC_ROW(APPROVAL_WAIT, HISTOGRAM, "approval_wait_duration_s", "channel,outcome", "Seconds from creation to decision.", BUCKETS_WAIT_S)
METRIC_ROW(DECISION_SECONDS, HISTOGRAM, "decision_seconds", "workflow,verb", "Seconds from the creation of a task to its decision by a human.", BUCKETS_WAIT_S)
METRIC_ROW(REQUEST_PAYLOAD, HISTOGRAM, "request_payload_size_bytes", "direction,method", "Size of request bodies.", BUCKETS_BYTES)
/* clang-format on */
