/* get_notifications, get_logs, list_servers. */
#include "answer.h"
#include "inbox/inbox.h"
#include "state/tool_catalog.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "tools.h"

#define DEFAULT_LOGS 100

void pseudo_tool_get_notifications(struct call *call, struct str arguments)
{
    char key[CLIENT_KEY_BYTES];
    OWNED_BUFFER(list);
    inbox_key_of_call(call, key);
    size_t count = inbox_take_notifications(call->worker->gateway, str_from(key), &list);
    pseudo_answer_array(call, "notifications", buffer_str(&list), count, STR("No notifications"));
}

void pseudo_tool_get_logs(struct call *call, struct str arguments)
{
    char key[CLIENT_KEY_BYTES];
    OWNED_BUFFER(list);
    OWNED_BUFFER(server);
    OWNED_BUFFER(level);
    size_t limit =
        (size_t)pseudo_argument_number(arguments, "limit", INBOX_MOST_LOGS, DEFAULT_LOGS);
    bool is_other = pseudo_argument_text(arguments, "server", &server) &&
                    !str_equal(buffer_str(&server), str_from(call->source->id));
    pseudo_argument_text(arguments, "level", &level);
    inbox_key_of_call(call, key);
    size_t count = inbox_take_logs(call->worker->gateway, is_other ? STR_EMPTY : str_from(key),
                                   buffer_str(&level), limit, &list);
    pseudo_answer_array(call, "logs", buffer_str(&list), count, STR("No log messages"));
}

/* A session reaches the one server that its path names. The address of that server is not shown: it
 * may hold credentials. */
void pseudo_tool_list_servers(struct call *call, struct str arguments)
{
    const struct config_source *source = call->source;
    OWNED_BUFFER(list);
    OWNED_BUFFER(url);
    int64_t since_ms;
    bool is_reachable =
        catalog_is_reachable(call->worker->gateway->catalog, str_from(source->id), &since_ms);
    buffer_append_format(&url, "/%s/mcp", source->id);
    buffer_append_char(&url, '\0');
    buffer_append_text(&list, "[{");
    json_add_text(&list, "name", source->id);
    json_add_text(&list, "url", url.bytes);
    json_add_text(&list, "status", is_reachable ? "connected" : "disconnected");
    buffer_append_format(&list, ",\"connected\":%s", is_reachable ? "true" : "false");
    if (is_reachable && since_ms > 0)
        json_add_time(&list, "connectedAt", since_ms);
    if (source->description)
        json_add_text(&list, "description", source->description);
    buffer_append_text(&list, "}]");
    pseudo_answer_array(call, "servers", buffer_str(&list), 1, STR_EMPTY);
}
