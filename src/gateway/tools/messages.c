/* get_notifications, get_logs, list_servers. */
#include "answer.h"
#include "inbox/inbox.h"
#include "state/tool_catalog.h"
#include "taskgate/json/members.h"
#include "tools.h"

#define DEFAULT_LOGS 100

/* Answers with the array as a text, or with words when it is empty, and with `key` of an object. */
static void answer_array(struct call *call, const char *key, struct str array, size_t count,
                         struct str words)
{
    struct buffer structured = {0};
    buffer_append_format(&structured, "{\"%s\":%.*s}", key, STR_ARGS(array));
    pseudo_answer(call, &(struct pseudo_result){.text = count > 0 ? STR_EMPTY : words,
                                                .json = count > 0 ? array : STR_EMPTY,
                                                .structured = buffer_str(&structured)});
    buffer_finish(&structured);
}

void pseudo_tool_get_notifications(struct call *call, struct str arguments)
{
    char key[CLIENT_KEY_BYTES];
    struct buffer list = {0};
    inbox_key_of_call(call, key);
    size_t count = inbox_take_notifications(call->worker->gateway, str_from(key), &list);
    answer_array(call, "notifications", buffer_str(&list), count, STR("No notifications"));
    buffer_finish(&list);
}

void pseudo_tool_get_logs(struct call *call, struct str arguments)
{
    char key[CLIENT_KEY_BYTES];
    struct buffer list = {0}, server = {0}, level = {0};
    size_t limit =
        (size_t)pseudo_argument_number(arguments, "limit", INBOX_MOST_LOGS, DEFAULT_LOGS);
    bool is_other = pseudo_argument_text(arguments, "server", &server) &&
                    !str_equal(buffer_str(&server), str_from(call->source->id));
    pseudo_argument_text(arguments, "level", &level);
    inbox_key_of_call(call, key);
    size_t count = inbox_take_logs(call->worker->gateway, is_other ? STR_EMPTY : str_from(key),
                                   buffer_str(&level), limit, &list);
    answer_array(call, "logs", buffer_str(&list), count, STR("No log messages"));
    buffer_finish(&level);
    buffer_finish(&server);
    buffer_finish(&list);
}

/* A session reaches the one server that its path names. The address of that server is not shown: it
 * may hold credentials. */
void pseudo_tool_list_servers(struct call *call, struct str arguments)
{
    const struct config_source *source = call->source;
    struct buffer list = {0}, url = {0};
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
    answer_array(call, "servers", buffer_str(&list), 1, STR_EMPTY);
    buffer_finish(&url);
    buffer_finish(&list);
}
