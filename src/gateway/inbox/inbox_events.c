/* Events of tasks and servers (reference §10.4). */
#include "inbox_events.h"
#include "state/tool_catalog.h"

#include <inttypes.h>
#include <string.h>

#include "call/client_profile.h"
#include "inbox.h"
#include "task_summary.h"
#include "taskgate/json/members.h"

/* A longer result or argument is left out, because the client can ask for the task. */
#define MOST_BYTES ((size_t)16 * 1024)

static bool event_of(const struct task *task, bool created, enum inbox_event *type)
{
    *type = INBOX_TASK_CREATED;
    switch (task->state) {
    case TASK_PENDING:
    case TASK_APPROVED:
    case TASK_EXECUTING:
        return created;
    case TASK_COMPLETED:
        *type = INBOX_TASK_COMPLETED;
        break;
    case TASK_FAILED:
    case TASK_REJECTED:
        *type = INBOX_TASK_FAILED;
        break;
    case TASK_CANCELLED:
        *type = INBOX_TASK_CANCELLED;
        break;
    case TASK_EXPIRED:
        *type = INBOX_TASK_EXPIRED;
        break;
    }
    return true;
}

static void write_data(struct buffer *out, const struct task *task, enum inbox_event type)
{
    buffer_append_char(out, '{');
    json_add_text(out, "taskId", task->id);
    json_add_text(out, "toolName", task->tool);
    if (type == INBOX_TASK_CREATED && strlen(task->arguments) <= MOST_BYTES)
        buffer_append_format(out, ",\"args\":%s", task->arguments);
    if (task->outcome == TASK_OUTCOME_RESULT && task->outcome_text &&
        task->outcome_length <= MOST_BYTES) {
        json_add_key(out, "result");
        buffer_append(out, str_slice(task->outcome_text, task->outcome_length));
    }
    if (type == INBOX_TASK_FAILED || type == INBOX_TASK_EXPIRED) {
        struct buffer error = {0};
        task_summary_write_error(&error, task);
        json_add_key(out, "error");
        buffer_append_json_string(out, buffer_str(&error));
        buffer_finish(&error);
    }
    if (type == INBOX_TASK_EXPIRED)
        buffer_append_format(out, ",\"ttl\":%" PRId64, task->ttl_ms);
    buffer_append_char(out, '}');
}

void inbox_note_task(struct gateway *gateway, const struct task *task, bool created)
{
    enum inbox_event type;
    char key[CLIENT_KEY_BYTES];
    struct buffer data = {0};
    if (!event_of(task, created, &type))
        return;
    inbox_key_of_task(task, key);
    if (type == INBOX_TASK_FAILED &&
        inbox_has_event(gateway, str_from(key), type, str_from(task->id)))
        return; /* an adoption comes as a change and as a lost task, in any order */
    write_data(&data, task, type);
    inbox_add_event(gateway, str_from(key), type, str_from(task->source), buffer_str(&data));
    buffer_finish(&data);
}

void inbox_note_lost_task(struct gateway *gateway, const struct task *task)
{
    char key[CLIENT_KEY_BYTES];
    inbox_key_of_task(task, key);
    inbox_touch(gateway, str_from(key));
    inbox_note_task(gateway, task, false);
}

void inbox_note_server(struct gateway *gateway, struct str source, enum catalog_change change)
{
    static const enum inbox_event events[] = {
        [CATALOG_CONNECTED] = INBOX_SERVER_CONNECTED,
        [CATALOG_DISCONNECTED] = INBOX_SERVER_DISCONNECTED,
        [CATALOG_RECONNECTED] = INBOX_SERVER_RECONNECTED,
    };
    inbox_add_source_event(gateway, events[change], source, STR("{}"));
}
