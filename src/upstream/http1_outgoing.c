/*
 * Requests that go out together at the end of a round. A server that sleeps is woken once for all
 * of them, and one system call looks at several connections before they are used again.
 */
#include <assert.h>

#include "http1_internal.h"

/* Heads that were larger together are given back. */
#define KEPT_HEADS_BYTES ((size_t)256 * 1024)

static void send_all(void *context);

void http1_outgoing_init(struct http1_client *client)
{
    list_init(&client->outgoing);
    buffer_init(&client->request_heads);
    loop_round_end_init(&client->send_outgoing, client->loop, send_all, client);
}

void http1_outgoing_finish(struct http1_client *client)
{
    loop_round_end_finish(&client->send_outgoing);
    buffer_finish(&client->request_heads);
}

struct buffer *http1_outgoing_heads(struct http1_client *client)
{
    return &client->request_heads;
}

void http1_outgoing_add(struct http1_client *client, struct http1_call *call, size_t head_begin)
{
    call->head_begin = head_begin;
    call->head_length = client->request_heads.length - head_begin;
    list_append(&client->outgoing, &call->deferred);
    loop_round_end_schedule(&client->send_outgoing);
}

static struct http1_call *call_at(struct list *node)
{
    return http1_call_from(LIST_ENTRY(node, struct http1_call, deferred));
}

static struct http1_call *first_of(const struct list *calls)
{
    return call_at(calls->next);
}

static size_t look_at_first(const struct list *from, struct http1_call *calls[HTTP1_TOGETHER])
{
    size_t count = 0;
    for (struct list *node = from->next; node != from && count < HTTP1_TOGETHER; node = node->next)
        calls[count++] = call_at(node);
    return count;
}

/* One that has no connection may end here, and its owner may cancel others and start new ones. */
static void go_out(struct http1_client *client, struct http1_call *call)
{
    list_remove(&call->deferred);
    struct str heads = buffer_str(&client->request_heads);
    assert(call->head_begin + call->head_length <= heads.length);
    call->events->go_out(call, str_slice(heads.bytes + call->head_begin, call->head_length));
}

/* The heads that are used go; those of calls that were started meanwhile stay. */
static void drop_heads(struct http1_client *client)
{
    struct buffer *heads = &client->request_heads;
    size_t used =
        list_is_empty(&client->outgoing) ? heads->length : first_of(&client->outgoing)->head_begin;
    buffer_drop(heads, used);
    LIST_FOR_EACH_SAFE (node, next, &client->outgoing)
        call_at(node)->head_begin -= used;
    if (heads->length == 0 && heads->capacity > KEPT_HEADS_BYTES)
        buffer_finish(heads);
}

/* A call that is started meanwhile goes out at the next end of a round. */
static void send_all(void *context)
{
    struct http1_client *client = http1_client_from(context);
    struct http1_call *calls[HTTP1_TOGETHER];
    struct list taken;
    list_init(&taken);
    list_append(&client->outgoing, &taken);
    list_remove(&client->outgoing);
    while (!list_is_empty(&taken)) {
        size_t count = look_at_first(&taken, calls);
        http1_connections_reuse(calls, count);
        for (size_t i = 0; i < count && !list_is_empty(&taken); i++)
            go_out(client, first_of(&taken));
    }
    drop_heads(client);
}
