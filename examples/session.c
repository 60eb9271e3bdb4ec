/* Keeps the sessions of the example server and their notification streams. */
#include "session.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "reply.h"
#include "rpc.h"
#include "server.h"
#include "tools.h"

/* One open GET stream. */
struct listening {
    h2o_linklist_t link; /* in session.streams */
    struct reply *reply;
};

static const char *const level_names[LOG_LEVEL_COUNT] = {
    [LOG_LEVEL_DEBUG] = "debug",   [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_NOTICE] = "notice", [LOG_LEVEL_WARNING] = "warning",
    [LOG_LEVEL_ERROR] = "error",   [LOG_LEVEL_CRITICAL] = "critical",
    [LOG_LEVEL_ALERT] = "alert",   [LOG_LEVEL_EMERGENCY] = "emergency",
};

void sessions_init(struct sessions *sessions)
{
    sessions->count = 0;
    h2o_linklist_init_anchor(&sessions->by_use);
    for (size_t i = 0; i < SESSION_BUCKETS; i++)
        h2o_linklist_init_anchor(&sessions->buckets[i]);
}

void sessions_free(struct sessions *sessions)
{
    for (h2o_linklist_t *link = sessions->by_use.next; link != &sessions->by_use;) {
        struct session *session = H2O_STRUCT_FROM_MEMBER(struct session, by_use, link);
        link = link->next;
        session_end(sessions, session);
    }
}

/* FNV-1a: ids of any shape come in here, not only our own. */
static h2o_linklist_t *bucket_of(struct sessions *sessions, const char *id, size_t length)
{
    uint32_t hash = 2166136261U;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)id[i]) * 16777619U;
    return &sessions->buckets[hash % SESSION_BUCKETS];
}

static bool make_id(char *id)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[SESSION_ID_LENGTH / 2];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return false;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        id[2 * i] = digits[bytes[i] >> 4];
        id[2 * i + 1] = digits[bytes[i] & 15];
    }
    id[SESSION_ID_LENGTH] = '\0';
    return true;
}

struct session *session_begin(struct sessions *sessions, bool elicits, bool samples)
{
    char id[SESSION_ID_LENGTH + 1];
    if (!make_id(id))
        return NULL;

    struct session *session = h2o_mem_alloc(sizeof(*session));
    *session = (struct session){.elicits = elicits, .samples = samples, .least = LOG_LEVEL_INFO};
    memcpy(session->id, id, sizeof(id));
    h2o_linklist_init_anchor(&session->calls);
    h2o_linklist_init_anchor(&session->streams);
    h2o_linklist_insert(&sessions->by_use, &session->by_use);
    h2o_linklist_insert(bucket_of(sessions, id, SESSION_ID_LENGTH), &session->in_bucket);
    if (++sessions->count > SESSION_LIMIT)
        session_end(sessions,
                    H2O_STRUCT_FROM_MEMBER(struct session, by_use, sessions->by_use.next));
    return session;
}

struct session *session_find(struct sessions *sessions, const char *id, size_t length)
{
    h2o_linklist_t *bucket = bucket_of(sessions, id, length);
    for (h2o_linklist_t *link = bucket->next; link != bucket; link = link->next) {
        struct session *session = H2O_STRUCT_FROM_MEMBER(struct session, in_bucket, link);
        if (length == SESSION_ID_LENGTH && memcmp(session->id, id, length) == 0) {
            h2o_linklist_unlink(&session->by_use);
            h2o_linklist_insert(&sessions->by_use, &session->by_use);
            return session;
        }
    }
    return NULL;
}

static void stop_listening(struct listening *listening)
{
    h2o_linklist_unlink(&listening->link);
    free(listening);
}

void session_end(struct sessions *sessions, struct session *session)
{
    tools_end_calls(session);
    for (h2o_linklist_t *link = session->streams.next; link != &session->streams;) {
        struct listening *listening = H2O_STRUCT_FROM_MEMBER(struct listening, link, link);
        struct reply *reply = listening->reply;
        link = link->next;
        stop_listening(listening);
        reply_finish(reply, NULL);
    }
    h2o_linklist_unlink(&session->by_use);
    h2o_linklist_unlink(&session->in_bucket);
    sessions->count--;
    free(session);
}

static void on_listener_gone(void *holder)
{
    stop_listening(holder);
}

void session_listen(struct server *server, struct session *session, h2o_req_t *request)
{
    struct listening *listening = h2o_mem_alloc(sizeof(*listening));
    *listening =
        (struct listening){.reply = reply_hold(server, request, on_listener_gone, listening)};
    h2o_linklist_insert(session->streams.next, &listening->link);
    reply_start_stream(listening->reply);
}

enum log_level session_level(const char *name)
{
    enum log_level level = LOG_LEVEL_DEBUG;
    while (level < LOG_LEVEL_COUNT && strcmp(level_names[level], name) != 0)
        level++;
    return level;
}

void session_log(struct session *session, enum log_level level, const char *logger,
                 const char *event, const char *subject)
{
    if (level < session->least || h2o_linklist_is_empty(&session->streams))
        return;
    /* A message goes to one stream of a session, never to all of them. */
    struct listening *newest =
        H2O_STRUCT_FROM_MEMBER(struct listening, link, session->streams.next);
    json_t *params = json_pack("{s:s, s:s, s:{s:s}}", "level", level_names[level], "logger", logger,
                               "data", event, subject);
    reply_send(newest->reply, rpc_notification("notifications/message", rpc_need(params)));
}

void sessions_log(struct sessions *sessions, enum log_level level, const char *logger,
                  const char *event, const char *subject)
{
    for (h2o_linklist_t *link = sessions->by_use.next; link != &sessions->by_use; link = link->next)
        session_log(H2O_STRUCT_FROM_MEMBER(struct session, by_use, link), level, logger, event,
                    subject);
}
