/* From roles to rights: one table for all routes. */
#include "rights.h"

#include "operator.h"
#include "taskgate/core/assert.h"

/* In the order of the table's columns. */
static const struct {
    enum config_role role;
    const char *missing;
} roles[] = {
    {ROLE_VIEWER, "this token may not read: it lacks the role viewer"},
    {ROLE_APPROVER, "this token may not decide: it lacks the role approver"},
    {ROLE_CALLER, "this token may not call: it lacks the role caller"},
    {ROLE_AUDITOR, "this token may not read the audit trail: it lacks the role auditor"},
};
#define ROLE_COUNT (sizeof roles / sizeof *roles)

#define NO RIGHT_NONE
#define OWN RIGHT_OWN
#define ALL RIGHT_ALL
#define ROUTE(method, path, viewer, approver, caller, auditor, handler)                            \
    [ROUTE_##handler] = {viewer, approver, caller, auditor},
static const enum right rights[][ROLE_COUNT] = {
#include "routes_table.h"
};
#undef ROUTE
#undef NO
#undef OWN
#undef ALL

enum right rights_of(const struct operator_identity *who, enum route_id route)
{
    enum right right = RIGHT_NONE;
    ASSERT_NUMBERS(route, <, sizeof rights / sizeof *rights);
    for (size_t i = 0; i < ROLE_COUNT; i++) {
        if ((who->roles & (unsigned)roles[i].role) != 0 && rights[route][i] > right)
            right = rights[route][i];
    }
    return right;
}

/* Names the first role that would do. */
const char *rights_missing(enum route_id route)
{
    size_t i = 0;
    while (i + 1 < ROLE_COUNT && rights[route][i] == RIGHT_NONE)
        i++;
    return roles[i].missing;
}
