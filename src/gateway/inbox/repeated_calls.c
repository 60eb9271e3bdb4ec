/* Plain calls that are tasks. */
#include "repeated_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call/request_parts.h"
#include "inbox_internal.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

#define MOST_JOINS 200

struct join {
    struct list node;
    char digest[DIGEST_HEX_BYTES];
    char id[TASK_ID_BYTES];
    bool is_undelivered;
    bool is_shared;         /* other replicas have it, or are to have it */
    int64_t until_ms;       /* monotonic: the outcome may be given out until then; 0: always */
    atomic_size_t *counted; /* its counter while it is there, or NULL */
};

void repeated_call_digest(const char *definition_digest, const char *request_digest,
                          char digest[DIGEST_HEX_BYTES])
{
    OWNED_BUFFER(text);
    buffer_append_format(&text, "%s/%s", definition_digest, request_digest);
    digest_sha256_hex(buffer_str(&text), digest);
}

void repeated_call_digest_left(const struct envelope *envelope, char digest[DIGEST_HEX_BYTES])
{
    char request_digest[DIGEST_HEX_BYTES];
    request_parts_digest(envelope, request_digest);
    repeated_call_digest("left", request_digest, digest);
}

static void drop(struct inbox *client, struct join *join)
{
    list_remove(&join->node);
    client->join_count--;
    if (join->counted)
        atomic_fetch_sub(join->counted, 1);
    free(join);
}

void repeated_calls_finish(struct inbox *client)
{
    LIST_FOR_EACH_SAFE (node, next, &client->joins) {
        drop(client, LIST_ENTRY(node, struct join, node));
    }
}

/* ---- under the lock ---- */

static struct inbox *lock(struct gateway *gateway, struct str key)
{
    pthread_mutex_lock(&gateway->inbox_table->lock);
    return inbox_find(gateway->inbox_table, key);
}

static void unlock(struct gateway *gateway)
{
    pthread_mutex_unlock(&gateway->inbox_table->lock);
}

static struct join *find(struct inbox *client, const char *digest)
{
    if (!client)
        return NULL;
    LIST_FOR_EACH_SAFE (node, next, &client->joins) {
        struct join *join = LIST_ENTRY(node, struct join, node);
        if (strcmp(join->digest, digest) == 0)
            return join;
    }
    return NULL;
}

static struct join *find_same(struct inbox *client, const struct repeated_call *join)
{
    struct join *found = find(client, join->digest);
    return found && strcmp(found->id, join->id) == 0 ? found : NULL;
}

static struct join *add(struct inbox *client, const struct repeated_call *join)
{
    struct join *added = memory_alloc(sizeof *added);
    snprintf(added->digest, sizeof added->digest, "%s", join->digest);
    snprintf(added->id, sizeof added->id, "%s", join->id);
    list_append(&client->joins, &added->node);
    if (++client->join_count > MOST_JOINS)
        drop(client, LIST_ENTRY(client->joins.next, struct join, node));
    return added;
}

/* Calls that are forwarded look for such a one. */
static struct join *add_left(struct gateway *gateway, struct inbox *client,
                             const struct repeated_call *join)
{
    struct join *added = add(client, join);
    added->is_undelivered = added->is_shared = true;
    added->counted = &gateway->inbox_table->left_calls;
    atomic_fetch_add(added->counted, 1);
    return added;
}

/* ---- for callers ---- */

bool repeated_calls_any_left(const struct gateway *gateway)
{
    return atomic_load(&gateway->inbox_table->left_calls) > 0;
}

bool repeated_calls_has(struct gateway *gateway, struct str key)
{
    const struct inbox *client = lock(gateway, key);
    bool has_any = client && client->join_count > 0;
    unlock(gateway);
    return has_any;
}

void repeated_call_leave(struct gateway *gateway, const struct repeated_call *join)
{
    struct inbox *client = lock(gateway, join->key);
    if (client && !find(client, join->digest))
        add_left(gateway, client, join);
    unlock(gateway);
}

bool repeated_call_find(struct gateway *gateway, struct str key, const char *digest,
                        char id[TASK_ID_BYTES], bool *is_undelivered)
{
    const struct join *found = find(lock(gateway, key), digest);
    if (found) {
        memcpy(id, found->id, sizeof found->id);
        *is_undelivered = found->is_undelivered;
    }
    unlock(gateway);
    return found != NULL;
}

bool repeated_call_claim(struct gateway *gateway, const struct repeated_call *join,
                         loop_callback commit, void *context, char other[TASK_ID_BYTES])
{
    struct inbox *client = lock(gateway, join->key);
    const struct join *found = find(client, join->digest);
    if (found)
        memcpy(other, found->id, sizeof found->id);
    else if (client)
        add(client, join);
    if (!found && commit)
        commit(context);
    unlock(gateway);
    return !found;
}

bool repeated_call_forget(struct gateway *gateway, const struct repeated_call *join)
{
    struct inbox *client = lock(gateway, join->key);
    struct join *found = find_same(client, join);
    bool was_shared = found && found->is_shared;
    if (found)
        drop(client, found);
    unlock(gateway);
    return was_shared;
}

bool repeated_call_set_undelivered(struct gateway *gateway, const struct repeated_call *join)
{
    struct join *found = find_same(lock(gateway, join->key), join);
    bool is_news = found && !found->is_shared;
    if (found)
        found->is_undelivered = found->is_shared = true;
    unlock(gateway);
    return is_news;
}

static void doubt(struct join *found, int64_t for_ms)
{
    found->is_undelivered = found->is_shared = true;
    found->until_ms = for_ms > 0 ? clock_monotonic_ms() + for_ms : 0;
}

bool repeated_call_doubt(struct gateway *gateway, const struct repeated_call *join)
{
    struct join *found = find_same(lock(gateway, join->key), join);
    if (found)
        doubt(found, REPEATED_CALL_DOUBT_MS);
    unlock(gateway);
    return found != NULL;
}

void repeated_call_learn(struct gateway *gateway, const struct repeated_call *join, int64_t for_ms,
                         bool is_left)
{
    struct inbox *client = lock(gateway, join->key);
    struct join *found = find(client, join->digest);
    if (client && !found)
        found = is_left ? add_left(gateway, client, join) : add(client, join);
    if (found && strcmp(found->id, join->id) == 0)
        doubt(found, for_ms);
    unlock(gateway);
}

bool repeated_call_take(struct gateway *gateway, const struct repeated_call *join, bool *was_shared)
{
    struct inbox *client = lock(gateway, join->key);
    struct join *found = find_same(client, join);
    bool may_tell = found && found->is_undelivered &&
                    (found->until_ms == 0 || clock_monotonic_ms() < found->until_ms);
    *was_shared = may_tell && found->is_shared;
    if (may_tell)
        drop(client, found);
    unlock(gateway);
    return may_tell;
}

bool repeated_call_forget_task(struct gateway *gateway, struct str key, const char *id,
                               char digest[DIGEST_HEX_BYTES])
{
    struct inbox *client = lock(gateway, key);
    bool was_shared = false;
    if (client) {
        LIST_FOR_EACH_SAFE (node, next, &client->joins) {
            struct join *join = LIST_ENTRY(node, struct join, node);
            if (strcmp(join->id, id) != 0)
                continue;
            was_shared = was_shared || join->is_shared;
            memcpy(digest, join->digest, sizeof join->digest);
            drop(client, join);
        }
    }
    unlock(gateway);
    return was_shared;
}
