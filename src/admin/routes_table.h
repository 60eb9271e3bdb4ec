/*
 * Every route. OPEN_ROUTE(method, path, any_host, handler) needs no role; probes come by pod
 * address, so that any Host will do. ROUTE(method, path, viewer, approver, caller, auditor,
 * handler) has the rights of each role there. NO: nothing. OWN: with calls of their own. ALL: with
 * all calls. Several roles give the most that one of them gives. Included more than once; no guard
 * on purpose. docs/identity.md says the same, and a test walks both.
 */
/* clang-format off */
#ifndef ROUTE
#error "define ROUTE before including this table"
#endif
#ifdef OPEN_ROUTE
OPEN_ROUTE("GET",  "/health",                 true,  probes_health)
OPEN_ROUTE("GET",  "/health/idle",            true,  idle_wait)
OPEN_ROUTE("GET",  "/ready",                  true,  probes_ready)
OPEN_ROUTE("GET",  "/metrics",                true,  probes_metrics)
OPEN_ROUTE("GET",  "/",                       false, page_serve)
OPEN_ROUTE("GET",  "/login",                  false, sign_in_begin)
OPEN_ROUTE("GET",  "/login/callback",         false, sign_in_return)
OPEN_ROUTE("POST", "/logout",                 false, sign_out)
OPEN_ROUTE("POST", "/slack/interactions",     false, slack_interactions_take)
OPEN_ROUTE("GET",  "/api/v1/sign-in",         false, sign_in_describe)
#endif
/*                                              viewer approver caller auditor */
ROUTE("GET",  "/api/v1/whoami",                 ALL,   ALL,     ALL,   ALL,    whoami_get)
ROUTE("POST", "/api/v1/calls",                  NO,    NO,      ALL,   NO,     calls_create)
ROUTE("GET",  "/api/v1/inbox",                  ALL,   ALL,     NO,    ALL,    inbox_list)
ROUTE("GET",  "/api/v1/tasks",                  ALL,   ALL,     NO,    ALL,    tasks_list)
ROUTE("GET",  "/api/v1/tasks/{id}",             ALL,   ALL,     OWN,   ALL,    tasks_get)
ROUTE("GET",  "/api/v1/tasks/{id}/result",      ALL,   ALL,     OWN,   ALL,    results_get)
ROUTE("POST", "/api/v1/tasks/{id}/approve",     NO,    ALL,     NO,    NO,     decisions_approve)
ROUTE("POST", "/api/v1/tasks/{id}/reject",      NO,    ALL,     NO,    NO,     decisions_reject)
ROUTE("POST", "/api/v1/tasks/{id}/withdraw",    NO,    ALL,     NO,    NO,     decisions_withdraw)
ROUTE("POST", "/api/v1/decisions",              NO,    ALL,     NO,    NO,     decisions_many)
ROUTE("POST", "/api/v1/tasks/{id}/cancel",      NO,    ALL,     OWN,   NO,     cancel_task)
ROUTE("GET",  "/api/v1/grants",                 ALL,   ALL,     NO,    ALL,    grants_list)
ROUTE("POST", "/api/v1/grants/{id}/revoke",     NO,    ALL,     NO,    NO,     grants_revoke)
ROUTE("GET",  "/api/v1/blocks",                 ALL,   ALL,     NO,    ALL,    blocks_list)
ROUTE("POST", "/api/v1/blocks",                 NO,    ALL,     NO,    NO,     blocks_create)
ROUTE("POST", "/api/v1/blocks/{id}/lift",       NO,    ALL,     NO,    NO,     blocks_lift)
ROUTE("GET",  "/api/v1/definitions",            ALL,   ALL,     NO,    ALL,    definitions_list)
ROUTE("POST", "/api/v1/definitions/accept",     NO,    ALL,     NO,    NO,     definitions_accept)
ROUTE("GET",  "/api/v1/audit",                  NO,    NO,      NO,    ALL,    audit_list)
ROUTE("GET",  "/api/v1/events",                 ALL,   ALL,     NO,    ALL,    events_open)
/* clang-format on */
