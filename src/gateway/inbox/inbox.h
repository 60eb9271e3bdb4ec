/*
 * What the gateway keeps in memory for a client that knows no tasks: the events it has not been
 * told yet, upstream's notifications and log messages, and its calls of await_activity (seed 000
 * "The await_activity Tool"; reference §10.3 – §10.5). Shared by all workers behind one short
 * lock. Any thread, but for waiters, which are their loop's.
 */
#pragma once

#include "internal.h"
#include "request/client_profile.h"

/* Calls of await_activity that one client may have open. */
#define PSEUDO_MOST_WAITERS 32
/* What one ring holds; reference §10.5. */
#define PSEUDO_MOST_EVENTS 1000
#define PSEUDO_MOST_LOGS 500
#define PSEUDO_MOST_NOTIFICATIONS 100

enum pseudo_event {
    PSEUDO_ELICITATION_REQUEST,
    PSEUDO_SAMPLING_REQUEST,
    PSEUDO_ELICITATION_EXPIRED,
    PSEUDO_SAMPLING_EXPIRED,
    PSEUDO_TASK_CREATED, /* by a call whose answer says so: it wakes nobody */
    PSEUDO_TASK_COMPLETED,
    PSEUDO_TASK_FAILED,
    PSEUDO_TASK_CANCELLED,
    PSEUDO_TASK_EXPIRED,
    PSEUDO_NOTIFICATION,
    PSEUDO_SERVER_CONNECTED,
    PSEUDO_SERVER_DISCONNECTED,
    PSEUDO_SERVER_RECONNECTED,
    PSEUDO_EVENT_COUNT
};
const char *pseudo_event_name(enum pseudo_event type);

struct pseudo_clients *pseudo_clients_create(void);
void pseudo_clients_destroy(struct pseudo_clients *clients); /* NULL is allowed */
/* Forgets events that are too old, and clients that have been idle for too long. */
void pseudo_clients_sweep(struct pseudo_clients *clients, int64_t monotonic_ms);
/* True the first time for a source. */
bool pseudo_clients_warn_once(struct pseudo_clients *clients, struct str source);
size_t pseudo_clients_count(struct pseudo_clients *clients);

/* ---- the key of an inbox: client_key_of_call(), but of one owner. Another token in the session
 * has an inbox of its own, so that it takes nothing out of this one ---- */
void inbox_key_of_call(const struct call *call, char key[]); /* after call_identify() */
void inbox_key_of_task(const struct task *task, char key[]);
/* Of the session (digest) that the server has opened for this call. */
void inbox_key_of_session(const struct call *call, const char *session, char key[]);

/* ---- a client's life; an empty `key` is passed over, here and below ---- */
/* It is there and in use; made if need be. */
void pseudo_client_touch(struct gateway *gateway, struct str key);
/* It is gone: its waiters are told so. */
void pseudo_client_end(struct gateway *gateway, struct str key);
/* The session is gone, and with it the inboxes of all its owners. `key` is the session's. */
void pseudo_session_end(struct gateway *gateway, struct str key);

/* ---- what it is to be told; for a client that is not there all this is passed over. `data` and
 * `params` are JSON text ---- */
/* Wakes its waiters, on whichever worker. */
void pseudo_client_event(struct gateway *gateway, struct str key, enum pseudo_event type,
                         struct str server, struct str data);
/* The same event for every owner in the session; `key` is the session's. */
void pseudo_session_event(struct gateway *gateway, struct str key, enum pseudo_event type,
                          struct str server, struct str data);
/* The same event for every client of the source. */
void pseudo_source_event(struct gateway *gateway, enum pseudo_event type, struct str server,
                         struct str data);
/* Params of a notifications/message. */
void pseudo_client_log(struct gateway *gateway, struct str key, struct str server,
                       struct str params);
/* Any other notification; it is an event as well. */
void pseudo_client_notification(struct gateway *gateway, struct str key, struct str server,
                                struct str method, struct str params);

/* ---- telling it; what is told is gone. Each writes a JSON array and returns how many ---- */
/* [{id, type, server, data, createdAt}] without the task_created of the task `announced` (may be
 * empty), of which the answer tells itself. */
size_t pseudo_client_take_events(struct gateway *gateway, struct str key, struct str announced,
                                 struct buffer *out);
/* [{server, method, timestamp, params}] */
size_t pseudo_client_take_notifications(struct gateway *gateway, struct str key,
                                        struct buffer *out);
/* [{server, level, logger, timestamp, data}], the newest `limit` of at least `level` ("": any). */
size_t pseudo_client_take_logs(struct gateway *gateway, struct str key, struct str level,
                               size_t limit, struct buffer *out);

/* ---- waiting: one open call of await_activity ---- */
struct pseudo_waiter;

enum pseudo_wait {
    PSEUDO_WAIT_BEGUN,
    PSEUDO_WAIT_IMMEDIATE, /* there is something to tell; no waiter was made */
    PSEUDO_WAIT_TOO_MANY,
    PSEUDO_WAIT_NO_CLIENT, /* nothing is kept for it */
};
/* `woken` runs on `loop`, once, when there is something to tell or the client has ended. */
enum pseudo_wait pseudo_waiter_begin(struct gateway *gateway, struct str key, struct loop *loop,
                                     loop_callback woken, void *context,
                                     struct pseudo_waiter **waiter);
/* [{type: event, server, eventType}, …]: what woke it; empty when nothing did. */
size_t pseudo_waiter_write_triggers(struct pseudo_waiter *waiter, struct str server,
                                    struct buffer *out);
bool pseudo_waiter_client_ended(struct pseudo_waiter *waiter);
/* From its own loop; `woken` does not run any more. */
void pseudo_waiter_end(struct pseudo_waiter *waiter);
