/*
 * Bodies that are being received. h2o collects a whole request in its socket's buffer, and calls
 * nothing before it is complete. So this file wraps h2o's read callback, and counts the bytes after
 * each read. The connections of all loops share one limit, so one lock guards the counts. A request
 * that comes in one read does not take the lock.
 */
#include "taskgate/http/intake.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "http_internal.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"

/* A body counts as slow only after this time. */
#define SETTLED_MS 1000

struct http_intake {
    pthread_mutex_t lock;
    size_t limit_bytes;
    size_t total_bytes;    /* of all in `receiving` but those that are dropped */
    struct list receiving; /* struct intake_entry.node */
};

struct http_intake *http_intake_create(size_t limit_bytes)
{
    struct http_intake *intake = memory_alloc(sizeof(*intake));
    pthread_mutex_init(&intake->lock, NULL);
    intake->limit_bytes = limit_bytes;
    list_init(&intake->receiving);
    return intake;
}

void http_intake_set_limit(struct http_intake *intake, size_t limit_bytes)
{
    pthread_mutex_lock(&intake->lock);
    intake->limit_bytes = limit_bytes;
    pthread_mutex_unlock(&intake->lock);
}

void http_intake_destroy(struct http_intake *intake)
{
    if (intake == NULL)
        return;
    pthread_mutex_destroy(&intake->lock);
    free(intake);
}

/* ---- the slowest; under the lock ---- */

/* The slower one has fewer bytes a second since its first byte. */
static bool is_slower(const struct intake_entry *a, const struct intake_entry *b, int64_t now_ms)
{
    int64_t age_a = now_ms - a->since_ms, age_b = now_ms - b->since_ms;
    bool is_settled_a = age_a >= SETTLED_MS, is_settled_b = age_b >= SETTLED_MS;
    if (is_settled_a != is_settled_b)
        return is_settled_a;
    return (double)a->bytes * (double)(age_b + 1) < (double)b->bytes * (double)(age_a + 1);
}

static struct intake_entry *find_slowest(struct http_intake *intake)
{
    int64_t now_ms = clock_monotonic_ms();
    struct intake_entry *slowest = NULL;
    LIST_FOR_EACH_SAFE (node, next, &intake->receiving) {
        struct intake_entry *entry = LIST_ENTRY(node, struct intake_entry, node);
        if (!entry->is_dropped && (slowest == NULL || is_slower(entry, slowest, now_ms)))
            slowest = entry;
    }
    return slowest;
}

/* ---- dropping ---- */

static void on_nothing(h2o_socket_t *socket, const char *error)
{
}

static void drop(struct connection *connection)
{
    static const char answer[] = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
                                 "Retry-After: 1\r\nContent-Length: 0\r\n\r\n";
    h2o_socket_t *socket = connection->socket;
    log_warn("Dropped the request whose body came slowest: too many bodies are under way",
             LOG_STR("client", connection_peer(connection)));
    metrics_count(METRIC_LIMITS_REACHED, STR("bodies_bytes"));
    /* Bytes that the kernel does not take at once are not sent. */
    h2o_iovec_t bytes = h2o_iovec_init(answer, sizeof(answer) - 1);
    if (!h2o_socket_is_writing(socket)) /* "100 Continue" */
        h2o_socket_write(socket, &bytes, 1, on_nothing);
    linger_prepare(connection);
    connection->h2o_read(socket, "dropped for the others"); /* closes it */
}

/* Drops a request that another loop has chosen. Runs on the loop of its connection. */
struct delivery {
    struct http_intake *intake;
    struct loop *loop;
};

/* Only its own loop takes an entry out of the list. */
static struct connection *find_dropped(struct http_intake *intake, const struct loop *loop)
{
    struct connection *found = NULL;
    pthread_mutex_lock(&intake->lock);
    LIST_FOR_EACH_SAFE (node, next, &intake->receiving) {
        struct connection *connection = LIST_ENTRY(node, struct connection, intake.node);
        if (connection->intake.is_dropped && connection->server->loop == loop)
            found = connection;
    }
    pthread_mutex_unlock(&intake->lock);
    return found;
}

static void drop_chosen(void *context)
{
    struct delivery *delivery = context;
    struct connection *connection;
    while ((connection = find_dropped(delivery->intake, delivery->loop)) != NULL)
        drop(connection); /* takes it out of the list */
    free(delivery);
}

/* True when the bodies hold too much: one of them is chosen. If it belongs to this loop, it is in
 * `*own`; if not, its own loop gets a message. The list is looked through once for each choice.
 * Bodies that hold much are few. */
static bool choose(struct http_intake *intake, const struct loop *loop, struct connection **own)
{
    *own = NULL;
    pthread_mutex_lock(&intake->lock);
    bool is_too_much = intake->total_bytes > intake->limit_bytes;
    struct intake_entry *entry = is_too_much ? find_slowest(intake) : NULL;
    if (entry != NULL) {
        struct connection *connection = LIST_ENTRY(entry, struct connection, intake);
        entry->is_dropped = true;
        intake->total_bytes -= entry->bytes;
        if (connection->server->loop == loop) {
            *own = connection;
        } else {
            struct delivery *delivery = memory_alloc(sizeof(*delivery));
            *delivery = (struct delivery){intake, connection->server->loop};
            /* Under the lock the entry is still in the list, so its loop still runs. */
            loop_post(connection->server->loop, drop_chosen, delivery);
        }
    }
    pthread_mutex_unlock(&intake->lock);
    return entry != NULL;
}

/* ---- counting ---- */

static void count(struct connection *connection, size_t bytes)
{
    struct intake_entry *entry = &connection->intake;
    struct http_intake *intake = connection->server->options.intake;
    pthread_mutex_lock(&intake->lock);
    if (!entry->is_counted) {
        entry->is_counted = true;
        entry->since_ms = clock_monotonic_ms();
        list_append(&intake->receiving, &entry->node);
    }
    if (!entry->is_dropped)
        intake->total_bytes += bytes - entry->bytes;
    entry->bytes = bytes;
    pthread_mutex_unlock(&intake->lock);
}

void intake_leave(struct connection *connection)
{
    struct intake_entry *entry = &connection->intake;
    struct http_intake *intake = connection->server->options.intake;
    if (!entry->is_counted)
        return;
    pthread_mutex_lock(&intake->lock);
    list_remove(&entry->node);
    if (!entry->is_dropped)
        intake->total_bytes -= entry->bytes;
    pthread_mutex_unlock(&intake->lock);
    *entry = (struct intake_entry){.bytes = 0};
}

/* May close the connection, and others of this loop. */
static void look(struct connection *connection)
{
    struct http_intake *intake = connection->server->options.intake;
    const struct loop *loop = connection->server->loop;
    size_t bytes = connection->socket->input->size;
    struct connection *chosen;
    bool drops_itself = false;
    if (bytes == 0 && !connection->intake.is_counted)
        return;
    count(connection, bytes);
    while (choose(intake, loop, &chosen)) {
        if (chosen == connection)
            drops_itself = true; /* once it is not used any more */
        else if (chosen != NULL)
            drop(chosen);
    }
    if (drops_itself)
        drop(connection);
}

/* ---- the read callback ---- */

static void on_read(h2o_socket_t *socket, const char *error)
{
    struct connection *connection = socket->on_close.data;
    bool is_open = true;
    connection->is_open = &is_open;
    socket->_cb.read = connection->h2o_read;
    connection->h2o_read(socket, error);
    if (!is_open)
        return;
    connection->is_open = NULL;
    intake_wrap(connection);
}

void intake_wrap(struct connection *connection)
{
    h2o_socket_t *socket = connection->socket;
    if (connection->server->options.intake == NULL || socket == NULL ||
        connection->exchange != NULL || socket->_cb.read == NULL)
        return;
    if (connection->h2o_read == NULL)
        connection->h2o_read = socket->_cb.read; /* h2o has just accepted it */
    if (socket->_cb.read != connection->h2o_read)
        return; /* h2o does something else, or it is done already */
    socket->_cb.read = on_read;
    look(connection);
}

static void on_round_end(void *context)
{
    struct http_server *server = http_server_from(context);
    while (!list_is_empty(&server->resting)) {
        struct connection *connection =
            LIST_ENTRY(server->resting.next, struct connection, resting);
        list_remove(&connection->resting);
        intake_wrap(connection);
    }
}

void intake_open(struct http_server *server)
{
    list_init(&server->resting);
    loop_round_end_init(&server->round_end, server->loop, on_round_end, server);
}

/* h2o sets its own callback again after it has freed its memory of the request. */
void intake_wrap_later(struct connection *connection)
{
    struct http_server *server = connection->server;
    if (server->options.intake == NULL || connection->socket == NULL)
        return;
    if (list_is_empty(&connection->resting))
        list_append(&server->resting, &connection->resting);
    loop_round_end_schedule(&server->round_end);
}
