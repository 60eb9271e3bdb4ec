/* A listen's requests to the gateway, and those to the server. */
#include "taskgate/mcp/subscription.h"

#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/task/task.h"

#define TASK_IDS "taskIds"

static bool subscription_is_own(struct str id)
{
    OWNED_BUFFER(text);
    return json_decode_string(id, &text) && task_id_is_ours(buffer_str(&text));
}

const char *mcp_subscription_read(struct str filter, struct mcp_subscription *subscription)
{
    static const char *const keys[] = {"toolsListChanged", TASK_IDS};
    struct str values[2], id;
    json_members(filter, keys, 2, values);
    *subscription = (struct mcp_subscription){.wants_tools = json_type(values[0]) == JSON_TRUE,
                                              .task_ids = values[1]};
    if (values[1].length > 0 && json_type(values[1]) != JSON_ARRAY)
        return "params.notifications.taskIds must be an array of strings";
    for (size_t position = 0; json_next_element(values[1], &position, &id);) {
        if (json_type(id) != JSON_STRING)
            return "params.notifications.taskIds must be an array of strings";
        subscription->own_count += subscription_is_own(id);
    }
    if (subscription->own_count > MCP_SUBSCRIPTION_MOST_TASKS)
        return "params.notifications.taskIds names too many tasks";
    return NULL;
}

/* Whether a member asks for anything. An unknown value may. */
static bool subscription_asks(struct str value)
{
    switch (json_type(value)) {
    case JSON_FALSE:
    case JSON_NULL:
        return false;
    case JSON_ARRAY:
    case JSON_OBJECT:
        return json_count(value) > 0;
    default:
        return true;
    }
}

static void write_other_ids(struct buffer *out, struct str ids)
{
    struct str id;
    bool is_first = true;
    buffer_append_char(out, '[');
    for (size_t position = 0; json_next_element(ids, &position, &id);) {
        if (subscription_is_own(id))
            continue;
        if (!is_first)
            buffer_append_char(out, ',');
        buffer_append(out, id);
        is_first = false;
    }
    buffer_append_char(out, ']');
}

bool mcp_subscription_write_rest(struct buffer *out, struct str filter)
{
    struct str ids = json_member(filter, TASK_IDS), key, value;
    OWNED_BUFFER(others);
    OWNED_BUFFER(rest);
    bool is_asking = false;
    write_other_ids(&others, ids);
    if (json_count(ids) > 0 && json_count(buffer_str(&others)) == 0)
        json_write_without_member(&rest, filter, TASK_IDS);
    else if (json_count(ids) > json_count(buffer_str(&others)))
        json_write_with_member(&rest, filter, TASK_IDS, buffer_str(&others));
    else
        buffer_append(&rest, filter);
    for (size_t position = 0; json_next_member(buffer_str(&rest), &position, &key, &value);)
        is_asking |= subscription_asks(value);
    if (is_asking)
        buffer_append(out, buffer_str(&rest));
    return is_asking;
}

static void subscription_write_ids(struct buffer *out, struct str theirs, struct str own)
{
    struct str id;
    buffer_append_char(out, '[');
    for (size_t position = 0; json_next_element(theirs, &position, &id);) {
        if (subscription_is_own(id))
            continue; /* they are not the server's, whatever it says of them */
        buffer_append(out, id);
        buffer_append_char(out, ',');
    }
    buffer_append(out, own);
    if (own.length == 0 && out->bytes[out->length - 1] == ',')
        out->length--;
    buffer_append_char(out, ']');
}

void mcp_subscription_write_honoured(struct buffer *out, struct str honoured, bool wants_tools,
                                     struct str own)
{
    static const char *const keys[] = {"toolsListChanged", TASK_IDS};
    struct str old[2];
    OWNED_BUFFER(ids);
    if (json_type(honoured) != JSON_OBJECT)
        honoured = STR("{}");
    json_members(honoured, keys, 2, old);
    subscription_write_ids(&ids, old[1], own);
    struct json_change changes[2];
    size_t count = 0;
    if (wants_tools)
        changes[count++] = (struct json_change){keys[0], old[0], STR("true")};
    if (own.length > 0 || old[1].length > 0)
        changes[count++] = (struct json_change){keys[1], old[1], buffer_str(&ids)};
    json_write_changed(out, honoured, changes, count);
}
