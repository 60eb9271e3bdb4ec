/* Calls as a command reads them from the audit trail, for the tests of that. */
#pragma once

#include "harness.h"
#include "taskgate/core/buffer.h"
#include "taskgate/store/history.h"

static inline bool calls_note(void *context, const struct store_history_call *call)
{
    buffer_append_format(context, "%.*s %.*s\n", STR_ARGS(call->decision),
                         call->has_arguments ? (int)call->arguments.length : 1,
                         call->has_arguments ? call->arguments.bytes : "-");
    return true;
}

/* A line for each call: its decision, and its arguments, or "-" when nobody may read them. */
static inline void calls_expect(const struct store_site *site, int64_t since_ms,
                                const char *expected)
{
    struct buffer text;
    struct error error = {""};
    buffer_init(&text);
    ck_assert_msg(store_history_read(site, since_ms, calls_note, &text, &error), "%s",
                  error.message);
    buffer_append_char(&text, '\0');
    ck_assert_str_eq(text.bytes, expected);
    buffer_finish(&text);
}

static inline struct task *calls_create(struct bench *bench, const char *decision,
                                        const char *arguments)
{
    struct task *task = new_task("auth:ab");
    task_set_text(&task->decision, str_from(decision));
    task_set_text(&task->arguments, str_from(arguments));
    return create_task(bench, task);
}
