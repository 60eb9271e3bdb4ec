/*
 * Answers of the gateway's own tools: the result, then what the client has to be told with every
 * one of them, each in a block of text: the events since the last answer, and what upstream waits
 * for from the client (behaviour 11.7).
 */
#pragma once

#include "call/call.h"

struct pseudo_result {
    struct str text;       /* a first block in words; may be empty */
    struct str json;       /* a block of JSON text; may be empty */
    struct str structured; /* a JSON object, what structuredContent says; empty: none */
    struct str meta;       /* a JSON object; empty: none */
    bool is_error;
    struct str announces;    /* id of a task that the text is about; may be empty */
    bool tells_events;       /* itself, so that they are in no block */
    const struct task *asks; /* the questions of its session are shown, too; or NULL */
    bool is_bare;            /* to a server's tool: neither events nor questions go with it */
};
/* The pending outcome of a call. structuredContent begins with the text as its `message`. */
struct pseudo_pending {
    struct str text; /* a sentence */
    const struct task *task;
    const char *joined;                /* whether an earlier call made it, JSON; NULL: not shown */
    const struct store_reply *working; /* the client's tasks that have not ended */
    bool promises_other; /* the client expects another structured content: an error without any */
};
void pseudo_answer_pending(struct call *call, const struct pseudo_pending *pending);
/* The fixed sentence on a call that has become a task because it was slow. */
void pseudo_write_promoted(const struct call *call, int64_t waited_ms, const char *task_id,
                           struct buffer *out);

/* The same around upstream's own CallToolResult (JSON text). It stays byte for byte when there are
 * no events and no questions. */
void pseudo_write_around(const struct call *call, struct buffer *out, struct str result);

/* Each answers the call. */
void pseudo_answer(struct call *call, const struct pseudo_result *result);
/* With a JSON object as a text and as structuredContent. */
void pseudo_answer_json(struct call *call, struct str json, bool is_error);
/* With an error in words. */
void pseudo_fail(struct call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* With the array of `count` items as a text, or with these words when it is empty, and as `key` of
 * structuredContent. */
void pseudo_answer_array(struct call *call, const char *key, struct str array, size_t count,
                         struct str words);
void pseudo_answer_no_store(struct call *call);
void pseudo_answer_result(struct call *call, struct str result);

/* The open questions at the call's source, as JSON arrays: of its client, and those of the task's
 * owner in the session that made the task, which may be another one; `task` may be NULL. */
void pseudo_write_questions(const struct call *call, bool of_client, const struct task *task,
                            struct buffer *elicitations, struct buffer *samplings);
