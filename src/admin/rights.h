/* The rights of each role on each route: routes_table.h, in C. Any thread. */
#pragma once

struct operator_identity;

/* With which calls something may be done; more is larger. */
enum right { RIGHT_NONE, RIGHT_OWN, RIGHT_ALL };

/* A route that needs a role, by its handler. */
enum route_id {
#define ROUTE(method, path, viewer, approver, caller, auditor, handler) ROUTE_##handler,
#include "routes_table.h"
#undef ROUTE
};

/* The most that the roles of somebody give on a route. */
enum right rights_of(const struct operator_identity *who, enum route_id route);
/* An answer to somebody without a right there. */
const char *rights_missing(enum route_id route);
