/* Rows of the inbox. */
#include "row_json.h"

#include "taskgate/core/digest.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "taskgate/notify/brief.h"
#include "taskgate/notify/shown.h"

#include "vote_json.h"

void row_json_name(struct buffer *out, const struct task *task, struct str risk)
{
    const struct str parts[] = {str_from(task->owner), str_from(task->source), str_from(task->tool),
                                str_from(task->workflow), risk};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        buffer_append(out, parts[i]);
        buffer_append_char(out, '\0');
    }
}

void row_json_key(const struct task *task, char key[DIGEST_HEX_BYTES])
{
    char plain[DIGEST_HEX_BYTES];
    OWNED_BUFFER(name);
    row_json_name(&name, task, brief_risk(task).risk);
    digest_sha256_hex(buffer_str(&name), plain);
    digest_keyed_hex(plain, key);
}

/* The digest of a hidden value would tell it to somebody who tries all values. */
static void add_request_digest(struct buffer *out, const struct task *task, bool has_hidden)
{
    char keyed[DIGEST_HEX_BYTES];
    if (has_hidden && *task->request_digest)
        digest_keyed_hex(task->request_digest, keyed);
    json_add_text_or_null(out, "requestDigest",
                          has_hidden && *task->request_digest ? keyed : task->request_digest);
}

/* All members, without the last bracket. */
static void add_members(struct buffer *out, const struct task *task, const struct row_stack *stack,
                        const struct task_view *view)
{
    OWNED_BUFFER(made);
    struct brief brief;
    bool is_current = brief_is_current(task, view->config);
    if (!is_current)
        brief_write(&made, task, view->config);
    brief_read(&brief, is_current ? str_from(task->brief) : buffer_str(&made));
    buffer_append_format(out, "{\"stack\":\"%s\",\"count\":%zu", stack->key, stack->count);
    json_add_text(out, "id", task->id);
    json_add_text(out, "source", task->source);
    json_add_text(out, "tool", task->tool);
    json_add_text(out, "principal", task->principal);
    json_add_text(out, "principalBy", shown_principal_by(task->owner));
    json_add_text_or_null(out, "workflow", task->workflow);
    buffer_append_char(out, ',');
    buffer_append(out, brief.members);
    add_request_digest(out, task, brief.has_hidden);
    json_add_time(out, "createdAt", task->created_ms);
    json_add_time(out, "decideBy", task->decide_by_ms);
    vote_json_add_row(out, task, view);
}

void row_json_write(struct buffer *out, const struct task *task, const struct row_stack *stack,
                    const struct task_view *view)
{
    add_members(out, task, stack, view);
    buffer_append_char(out, '}');
}

void row_json_write_event(struct buffer *out, const struct task *task, const struct task_view *view)
{
    struct row_stack stack = {.count = 1};
    row_json_key(task, stack.key);
    add_members(out, task, &stack, view);
    json_add_text(out, "state", task_state_name(task->state));
    json_add_text_or_null(out, "decidedBy", task->decided_by);
    json_add_time(out, "decidedAt", task->decided_ms);
    json_add_text_or_null(out, "reason", task->reason);
    json_add_text(out, "statusMessage", task->status_message);
    buffer_append_char(out, '}');
}
