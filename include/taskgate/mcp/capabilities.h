/*
 * The `initialize` reply of the legacy era: the server's capabilities, and the reply for the
 * client. All bytes but the injected ones stay. Source: behaviour 5.2; the demands of clients:
 * tests/unit/mcp/clients_test.c.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

struct mcp_capabilities {
    bool tasks;       /* tools can be called as tasks, in any spelling: requests["tools/call"] or
                         ["tools.call"] true or an object, requests.tools.call an object or true */
    bool task_status; /* notifications.tasks.status, true or an object */
    bool tasks_list, tasks_cancel;
    bool resources;
    bool lacks_sessions; /* the reply opened none; not part of `result`: the caller sets it */
};

/* `result` is the JSON text of an InitializeResult that json_check() has accepted, here and
 * below. Any thread. */
void mcp_capabilities_detect(struct str result, struct mcp_capabilities *capabilities);
/* Writes `result` with the superset of both forms injected: tasks.list and tasks.cancel as objects,
 * tasks.requests with "tools/call": true beside tools: {call: {}}; objects that upstream has there
 * stay, anything else there (SDK clients refuse it) becomes {}. notifications.tasks.status is left
 * out when `upstream`, as detected, does not offer it (false is no offer); every other member
 * stays. */
void mcp_capabilities_inject(struct buffer *out, struct str result,
                             const struct mcp_capabilities *upstream);
/* Writes `result` with capabilities.resources an object; one that is there stays. */
void mcp_capabilities_offer_resources(struct buffer *out, struct str result);
/* Whether the client's `initialize` params declare capabilities.tasks. */
bool mcp_client_declares_tasks(struct str params);
