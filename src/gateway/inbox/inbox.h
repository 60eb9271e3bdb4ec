/*
 * The inbox of a client that knows no tasks, in memory: the events that it has not been told yet,
 * upstream's notifications and log messages, and its calls of await_activity (behaviour 11.8).
 * Shared by all workers behind one short lock. Any thread; a waiter belongs to its loop.
 */
#pragma once

#include <stdint.h>

#include "call/call.h"
#include "call/client_profile.h"
#include "state/tool_catalog.h"
#include "taskgate/core/list.h"
#include "taskgate/core/random.h"
#include "taskgate/core/str.h"

/* Calls of await_activity that one client may have open. */
#define INBOX_MOST_WAITERS 32
/* The most entries of one ring. */
#define INBOX_MOST_EVENTS 1000
#define INBOX_MOST_LOGS 500
#define INBOX_MOST_NOTIFICATIONS 100

enum inbox_event {
    INBOX_ELICITATION_REQUEST,
    INBOX_SAMPLING_REQUEST,
    INBOX_ELICITATION_EXPIRED,
    INBOX_SAMPLING_EXPIRED,
    INBOX_TASK_CREATED, /* its call's answer says so, so it wakes nobody */
    INBOX_TASK_COMPLETED,
    INBOX_TASK_FAILED,
    INBOX_TASK_CANCELLED,
    INBOX_TASK_EXPIRED,
    INBOX_NOTIFICATION,
    INBOX_SERVER_CONNECTED,
    INBOX_SERVER_DISCONNECTED,
    INBOX_SERVER_RECONNECTED,
    INBOX_EVENT_COUNT
};
const char *inbox_event_name(enum inbox_event type);

struct inbox_table *inbox_table_create(void);
void inbox_table_destroy(struct inbox_table *clients); /* NULL is allowed */
/* Forgets events that are too old, and clients that have been idle for too long. */
void inbox_table_sweep(struct inbox_table *clients, int64_t monotonic_ms);
/* True the first time for a source. */
bool inbox_table_warn_once(struct inbox_table *clients, struct str source);
size_t inbox_table_count(struct inbox_table *clients);

/* ---- the key of an inbox: client_key_of_call(), but of one owner. Another token in the session
 * has an inbox of its own, so that it takes nothing out of this one ---- */
void inbox_key_of_call(const struct call *call, char key[]); /* after call_identify() */
void inbox_key_of_task(const struct task *task, char key[]);
/* Of the session (digest) that the server has opened for this call. */
void inbox_key_of_session(const struct call *call, const char *session, char key[]);

/* ---- a client's life; an empty `key` is passed over, here and below ---- */
/* The inbox is in use; makes it if need be. */
void inbox_touch(struct gateway *gateway, struct str key);
/* The inbox ends, and its waiters learn of it. */
void inbox_end(struct gateway *gateway, struct str key);
/* The session ends, and with it the inboxes of all its owners. `key` is the session's. */
void inbox_end_session(struct gateway *gateway, struct str key);

/* ---- what it is to be told; for a client that is not there all this is passed over. `data` and
 * `params` are JSON text ---- */
/* Wakes its waiters, on whichever worker. */
void inbox_add_event(struct gateway *gateway, struct str key, enum inbox_event type,
                     struct str server, struct str data);
/* The same event for every owner in the session; `key` is the session's. */
void inbox_add_session_event(struct gateway *gateway, struct str key, enum inbox_event type,
                             struct str server, struct str data);
/* The same event for every client of the source. */
void inbox_add_source_event(struct gateway *gateway, enum inbox_event type, struct str server,
                            struct str data);
/* Params of a notifications/message. */
void inbox_add_log(struct gateway *gateway, struct str key, struct str server, struct str params);
/* Any other notification; it is an event as well. */
void inbox_add_notification(struct gateway *gateway, struct str key, struct str server,
                            struct str method, struct str params);

/* The client is informed of this task by other means: its task_created is not reported. */
void inbox_drop_creation(struct gateway *gateway, struct str key, struct str task);

/* ---- telling it; what is told is gone. Each writes a JSON array and returns how many ---- */
/* [{id, type, server, data, createdAt}] without the task_created of the task `announced` (may be
 * empty), of which the answer tells itself. */
size_t inbox_take_events(struct gateway *gateway, struct str key, struct str announced,
                         struct buffer *out);
/* [{server, method, timestamp, params}] */
size_t inbox_take_notifications(struct gateway *gateway, struct str key, struct buffer *out);
/* [{server, level, logger, timestamp, data}], the newest `limit` of at least `level` ("": any). */
size_t inbox_take_logs(struct gateway *gateway, struct str key, struct str level, size_t limit,
                       struct buffer *out);

/* ---- waiting: one open call of await_activity ---- */
struct inbox_waiter;

enum inbox_wait {
    INBOX_WAIT_BEGUN,
    INBOX_WAIT_IMMEDIATE, /* there are events; no waiter was made */
    INBOX_WAIT_TOO_MANY,
    INBOX_WAIT_NO_CLIENT, /* it has no inbox */
};
/* `woken` runs on `loop`, once, when there are events or the inbox has ended. */
enum inbox_wait inbox_waiter_begin(struct gateway *gateway, struct str key, struct loop *loop,
                                   loop_callback woken, void *context,
                                   struct inbox_waiter **waiter);
/* [{type: event, server, eventType}, …]: the events that woke it; empty without any. */
size_t inbox_waiter_write_triggers(struct inbox_waiter *waiter, struct str server,
                                   struct buffer *out);
bool inbox_waiter_client_ended(struct inbox_waiter *waiter);
/* From its own loop; `woken` does not run any more. */
void inbox_waiter_end(struct inbox_waiter *waiter);

/*
 * Events about a client's tasks and servers. Any thread.
 */

/* A task was created or has moved; once for the process. */
void inbox_note_task(struct gateway *gateway, const struct task *task, bool created);
/* The same of a task that has failed with the replica where its client was before: the client has
 * an inbox here from now on, and is told unless it was told already. */
void inbox_note_lost_task(struct gateway *gateway, const struct task *task);
/* The source's server answers now, or no longer; not with CATALOG_UNCHANGED. */
void inbox_note_server(struct gateway *gateway, struct str source, enum catalog_change change);
