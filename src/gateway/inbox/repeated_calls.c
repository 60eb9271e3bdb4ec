/* Plain calls that are tasks. */
#include "repeated_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inbox_internal.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/canonical.h"

#define MOST_JOINS 200

struct join {
    struct list node;
    char digest[DIGEST_HEX_BYTES];
    char id[TASK_ID_BYTES];
    bool is_undelivered;
    atomic_size_t *counted; /* where it is counted while it is there, or NULL */
};

void pseudo_join_digest(struct str tool, const char *definition_digest,
                        const char *arguments_digest, char digest[DIGEST_HEX_BYTES])
{
    struct buffer text;
    buffer_init(&text);
    buffer_append_format(&text, "%s/%s/", definition_digest, arguments_digest);
    buffer_append(&text, tool);
    digest_sha256_hex(buffer_str(&text), digest);
    buffer_finish(&text);
}

void pseudo_join_digest_left(struct str tool, struct str arguments, char digest[DIGEST_HEX_BYTES])
{
    char arguments_digest[DIGEST_HEX_BYTES];
    canonical_digest(arguments, arguments_digest);
    pseudo_join_digest(tool, "left", arguments_digest, digest);
}

static void drop(struct pseudo_client *client, struct join *join)
{
    list_remove(&join->node);
    client->join_count--;
    if (join->counted)
        atomic_fetch_sub(join->counted, 1);
    free(join);
}

void pseudo_joins_finish(struct pseudo_client *client)
{
    LIST_FOR_EACH_SAFE (node, next, &client->joins) {
        drop(client, LIST_ENTRY(node, struct join, node));
    }
}

/* ---- under the lock ---- */

static struct pseudo_client *lock(struct gateway *gateway, struct str key)
{
    pthread_mutex_lock(&gateway->pseudo_clients->lock);
    return pseudo_client_find(gateway->pseudo_clients, key);
}

static void unlock(struct gateway *gateway)
{
    pthread_mutex_unlock(&gateway->pseudo_clients->lock);
}

static struct join *find(struct pseudo_client *client, const char *digest)
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

static struct join *find_same(struct pseudo_client *client, const struct pseudo_join *join)
{
    struct join *found = find(client, join->digest);
    return found && strcmp(found->id, join->id) == 0 ? found : NULL;
}

static struct join *add(struct pseudo_client *client, const struct pseudo_join *join)
{
    struct join *added = memory_alloc(sizeof *added);
    snprintf(added->digest, sizeof added->digest, "%s", join->digest);
    snprintf(added->id, sizeof added->id, "%s", join->id);
    list_append(&client->joins, &added->node);
    if (++client->join_count > MOST_JOINS)
        drop(client, LIST_ENTRY(client->joins.next, struct join, node));
    return added;
}

/* ---- for callers ---- */

bool pseudo_joins_any_left(const struct gateway *gateway)
{
    return atomic_load(&gateway->pseudo_clients->left_calls) > 0;
}

void pseudo_join_leave(struct gateway *gateway, const struct pseudo_join *join)
{
    struct pseudo_client *client = lock(gateway, join->key);
    if (client && !find(client, join->digest)) {
        struct join *added = add(client, join);
        added->is_undelivered = true;
        added->counted = &gateway->pseudo_clients->left_calls;
        atomic_fetch_add(added->counted, 1);
    }
    unlock(gateway);
}

bool pseudo_join_find(struct gateway *gateway, struct str key, const char *digest,
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

bool pseudo_join_claim(struct gateway *gateway, const struct pseudo_join *join,
                       loop_callback commit, void *context, char other[TASK_ID_BYTES])
{
    struct pseudo_client *client = lock(gateway, join->key);
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

void pseudo_join_forget(struct gateway *gateway, const struct pseudo_join *join)
{
    struct pseudo_client *client = lock(gateway, join->key);
    struct join *found = find_same(client, join);
    if (found)
        drop(client, found);
    unlock(gateway);
}

void pseudo_join_set_undelivered(struct gateway *gateway, const struct pseudo_join *join)
{
    struct join *found = find_same(lock(gateway, join->key), join);
    if (found)
        found->is_undelivered = true;
    unlock(gateway);
}

bool pseudo_join_take(struct gateway *gateway, const struct pseudo_join *join)
{
    struct pseudo_client *client = lock(gateway, join->key);
    struct join *found = find_same(client, join);
    bool may_tell = found && found->is_undelivered;
    if (may_tell)
        drop(client, found);
    unlock(gateway);
    return may_tell;
}

void pseudo_join_forget_task(struct gateway *gateway, struct str key, const char *id)
{
    struct pseudo_client *client = lock(gateway, key);
    if (client) {
        LIST_FOR_EACH_SAFE (node, next, &client->joins) {
            struct join *join = LIST_ENTRY(node, struct join, node);
            if (strcmp(join->id, id) == 0)
                drop(client, join);
        }
    }
    unlock(gateway);
}
