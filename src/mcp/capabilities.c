/* The `initialize` reply: reading the server's capabilities, and adding the gateway's. */
#include "taskgate/mcp/capabilities.h"

#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"

/* Servers write an offer as `true` (the older drafts) or as an object (the published schema). */
static bool is_offer(struct str value)
{
    enum json_type type = json_type(value);
    return type == JSON_OBJECT || type == JSON_TRUE;
}

static struct str object_or_empty(struct str value)
{
    return json_type(value) == JSON_OBJECT ? value : STR("{}");
}

void mcp_capabilities_detect(struct str result, struct mcp_capabilities *capabilities)
{
    struct str offered = json_member(result, "capabilities");
    struct str tasks = json_member(offered, "tasks");
    struct str requests = json_member(tasks, "requests");
    *capabilities = (struct mcp_capabilities){
        .tasks = is_offer(json_member(requests, "tools/call")) ||
                 is_offer(json_member(requests, "tools.call")) ||
                 is_offer(json_path(requests, "tools", "call")),
        .task_status = is_offer(json_path(offered, "notifications", "tasks", "status")),
        .tasks_list = is_offer(json_member(tasks, "list")),
        .tasks_cancel = is_offer(json_member(tasks, "cancel")),
        .resources = is_offer(json_member(offered, "resources")),
    };
}

/* Writes the object that is to stand in place of `present`. */
typedef void (*object_writer)(struct buffer *out, struct str present);

/* Replaces the member `key` by the output of `write` for the present one. */
static void rewrite_member(struct buffer *text, const char *key, object_writer write)
{
    OWNED_BUFFER(value);
    write(&value, object_or_empty(json_member(buffer_str(text), key)));
    json_set_member(text, key, buffer_str(&value));
}

static void capabilities_write_tools(struct buffer *out, struct str present)
{
    json_write_with_member(out, present, "call", object_or_empty(json_member(present, "call")));
}

/* The older spelling beside the published one: behaviour 5.2. */
static void capabilities_write_requests(struct buffer *out, struct str present)
{
    buffer_append(out, present);
    json_set_member(out, "tools/call", STR("true"));
    rewrite_member(out, "tools", capabilities_write_tools);
}

static void capabilities_write_tasks(struct buffer *out, struct str present)
{
    buffer_append(out, present);
    json_set_member(out, "list", object_or_empty(json_member(present, "list")));
    json_set_member(out, "cancel", object_or_empty(json_member(present, "cancel")));
    rewrite_member(out, "requests", capabilities_write_requests);
}

static void capabilities_write_capabilities(struct buffer *out, struct str present)
{
    buffer_append(out, present);
    rewrite_member(out, "tasks", capabilities_write_tasks);
}

static void drop_status(struct buffer *out, struct str present)
{
    json_write_without_member(out, present, "status");
}

static void drop_status_of_tasks(struct buffer *out, struct str present)
{
    buffer_append(out, present);
    rewrite_member(out, "tasks", drop_status);
}

static void drop_task_status(struct buffer *out, struct str present)
{
    buffer_append(out, present);
    rewrite_member(out, "notifications", drop_status_of_tasks);
}

void mcp_capabilities_inject(struct buffer *out, struct str result,
                             const struct mcp_capabilities *upstream)
{
    OWNED_BUFFER(text);
    buffer_append(&text, result);
    rewrite_member(&text, "capabilities", capabilities_write_capabilities);
    const bool has_status =
        json_path(result, "capabilities", "notifications", "tasks", "status").length > 0;
    if (has_status && !upstream->task_status)
        rewrite_member(&text, "capabilities", drop_task_status);
    buffer_append(out, buffer_str(&text));
}

static void capabilities_write_resources(struct buffer *out, struct str present)
{
    json_write_with_member(out, present, "resources",
                           object_or_empty(json_member(present, "resources")));
}

void mcp_capabilities_offer_resources(struct buffer *out, struct str result)
{
    OWNED_BUFFER(text);
    buffer_append(&text, result);
    rewrite_member(&text, "capabilities", capabilities_write_resources);
    buffer_append(out, buffer_str(&text));
}

bool mcp_client_declares_tasks(struct str params)
{
    return is_offer(json_path(params, "capabilities", "tasks"));
}
