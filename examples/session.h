/*
 * Sessions: the facts that a client sent when it connected, and its open streams.
 */
#ifndef EXAMPLE_SESSION_H
#define EXAMPLE_SESSION_H

#include <h2o.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SESSION_ID_LENGTH 32
#define SESSION_LIMIT 10000
#define SESSION_BUCKETS 256

struct server;
struct reply;

enum log_level {
    LOG_LEVEL_DEBUG,
    LOG_LEVEL_INFO,
    LOG_LEVEL_NOTICE,
    LOG_LEVEL_WARNING,
    LOG_LEVEL_ERROR,
    LOG_LEVEL_CRITICAL,
    LOG_LEVEL_ALERT,
    LOG_LEVEL_EMERGENCY,
    LOG_LEVEL_COUNT
};

struct session {
    h2o_linklist_t by_use;    /* in sessions.by_use, least recently used first */
    h2o_linklist_t in_bucket; /* in its bucket */
    char id[SESSION_ID_LENGTH + 1];
    bool elicits; /* the client can ask its human by form */
    bool samples; /* the client can ask its model */
    enum log_level least;
    h2o_linklist_t calls;   /* struct call: tool calls that are not answered yet */
    h2o_linklist_t streams; /* struct listening: open GET streams, newest first */
};

struct sessions {
    h2o_linklist_t by_use;
    h2o_linklist_t buckets[SESSION_BUCKETS];
    size_t count;
};

void sessions_init(struct sessions *sessions);
void sessions_free(struct sessions *sessions);

/* A new session with an unguessable id. When there are too many, the one that was
 * idle longest ends. NULL: no random bytes to be had. */
struct session *session_begin(struct sessions *sessions, bool elicits, bool samples);

/* NULL: unknown. The session becomes the most recently used. */
struct session *session_find(struct sessions *sessions, const char *id, size_t length);

/* Ends its calls and streams, and frees it. */
void session_end(struct sessions *sessions, struct session *session);

/* Answers a GET with the session's stream of notifications. */
void session_listen(struct server *server, struct session *session, h2o_req_t *request);

/* The level of that name, or LOG_LEVEL_COUNT. */
enum log_level session_level(const char *name);

/* Sends the log message {event: subject} on one session's stream, or every session's, to
 * those that want that level. */
void session_log(struct session *session, enum log_level level, const char *logger,
                 const char *event, const char *subject);
void sessions_log(struct sessions *sessions, enum log_level level, const char *logger,
                  const char *event, const char *subject);

#endif
