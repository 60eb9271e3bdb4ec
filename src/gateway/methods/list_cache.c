/* Lists by what they were asked with, the oldest of them first. */
#include "list_cache.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/digest.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/mcp/cacheable.h"
#include "taskgate/mcp/definition.h"
#include "taskgate/policy/policy.h"

#define MOST_LISTS 1000
#define LIST_BYTES ((size_t)1024 * 1024) /* a longer one is not kept */
#define ALL_BYTES ((size_t)64 * 1024 * 1024)

struct entry {
    struct seen_entry seen; /* first; clients make up cursors of any length: a digest is the key */
    struct list_text *text;
    struct str result; /* in `text` */
};

/* ---- texts ---- */

struct list_text *list_text_create(struct str first, struct str second)
{
    /* Not memory_alloc(): to clear a long text takes as long as to copy it. */
    struct list_text *text =
        memory_grow_array(NULL, sizeof *text + first.length + second.length, 1);
    text->references = 1;
    text->length = first.length + second.length;
    if (first.length > 0)
        memcpy(text->bytes, first.bytes, first.length);
    if (second.length > 0)
        memcpy(text->bytes + first.length, second.bytes, second.length);
    return text;
}

static struct list_text *list_text_ref(struct list_text *text)
{
    __atomic_add_fetch(&text->references, 1, __ATOMIC_RELAXED);
    return text;
}

void list_text_unref(struct list_text *text)
{
    if (text && __atomic_sub_fetch(&text->references, 1, __ATOMIC_ACQ_REL) == 0)
        free(text);
}

static struct str list_text_str(const struct list_text *text)
{
    return str_slice(text->bytes, text->length);
}

/* ---- what is kept ---- */

static struct entry *list_cache_entry_of(struct seen_entry *seen)
{
    return (struct entry *)seen; /* the table's entries are ours */
}

static void list_cache_forgotten(struct seen_entry *seen)
{
    list_text_unref(list_cache_entry_of(seen)->text);
}

struct seen_table *list_cache_create(void)
{
    static const struct seen_table_kind kind = {.entry_bytes = sizeof(struct entry),
                                                .is_exact = true,
                                                .most_bytes = ALL_BYTES,
                                                .forgotten = list_cache_forgotten};
    return seen_table_create(&kind);
}

void list_cache_put(struct seen_table *lists, struct str key, struct str result)
{
    if (result.length > LIST_BYTES)
        return;
    struct list_text *text = list_text_create(result, STR_EMPTY);
    list_cache_put_shared(lists, key, text, list_text_str(text));
    list_text_unref(text);
}

/* A text that several owners share counts for each of them. */
void list_cache_put_shared(struct seen_table *lists, struct str key, struct list_text *text,
                           struct str result)
{
    char digest[DIGEST_HEX_BYTES];
    if (result.length > LIST_BYTES)
        return;
    digest_sha256_hex(key, digest);
    struct seen_shard *shard = seen_table_lock(lists, str_from(digest));
    struct entry *entry =
        list_cache_entry_of(seen_shard_obtain(shard, str_from(digest), MOST_LISTS));
    list_text_unref(entry->text);
    entry->text = list_text_ref(text);
    entry->result = result;
    seen_shard_weigh(shard, &entry->seen, result.length);
    seen_shard_unlock(shard);
}

bool list_cache_get(struct seen_table *lists, struct str key, struct buffer *result)
{
    char digest[DIGEST_HEX_BYTES];
    digest_sha256_hex(key, digest);
    struct seen_shard *shard = seen_table_lock(lists, str_from(digest));
    const struct entry *entry = list_cache_entry_of(seen_shard_look(shard, str_from(digest)));
    if (entry)
        buffer_append(result, entry->result);
    seen_shard_unlock(shard);
    return entry != NULL;
}

/* ---- the list of a call ---- */

void lists_write_key(const struct call *call, struct buffer *key)
{
    buffer_init(key);
    buffer_append_format(key, "%s/%s/%s/%s/%d/", call->source->id, call->owner, call->method->name,
                         call->source->url, (int)call->dialect->era);
    buffer_append(key, call->envelope.cursor.raw);
}

void lists_keep(const struct call *call, struct list_text *text, struct str result)
{
    struct buffer key;
    lists_write_key(call, &key);
    if (text)
        list_cache_put_shared(call->worker->gateway->list_cache, buffer_str(&key), text, result);
    else
        list_cache_put(call->worker->gateway->list_cache, buffer_str(&key), result);
    buffer_finish(&key);
}

/* ---- what clients may keep ---- */

#define RELOADED_FOR_MS 60000

int64_t lists_most_ttl_ms(const struct call *call)
{
    int64_t reloaded_ms = call->worker->gateway->reloaded_ms;
    bool is_fresh =
        reloaded_ms > 0 && loop_now_ms(call->worker->loop) - reloaded_ms < RELOADED_FOR_MS;
    return is_fresh ? 0 : MCP_CACHEABLE_MOST_MS;
}

bool lists_may_show(const struct call *call, enum definition_kind kind, struct str name,
                    struct str entry)
{
    const struct policy *policy = call->snapshot->policy;
    const struct config_source *source = call->source;
    bool is_judged = source->hide_flagged || source->pins[kind] == PIN_APPROVE;
    struct policy_entry seen = {NULL};
    struct mcp_definition definition;
    if (is_judged && entry.length > 0) {
        mcp_definition_read(&definition, kind, entry);
        seen = (struct policy_entry){definition.digest, definition.flags};
    }
    bool may = kind == DEFINITION_PROMPT ? policy_is_prompt_visible(policy, source, name, &seen)
                                         : policy_is_skill_visible(policy, source, name, &seen);
    if (seen.digest)
        mcp_definition_finish(&definition);
    return may;
}

/* ---- when upstream fails ---- */

bool lists_answer_kept(struct call *call, enum lost_reason reason, list_writer write)
{
    const struct call_carrier *carrier = call_carrier_of(call);
    OWNED_BUFFER(key);
    OWNED_BUFFER(kept);
    OWNED_BUFFER(result);
    OWNED_BUFFER(of_client);
    if (reason == LOST_UNREADABLE)
        return false;
    lists_write_key(call, &key);
    bool found = list_cache_get(call->worker->gateway->list_cache, buffer_str(&key), &kept);
    if (found) {
        log_warn("Upstream failed, the list is the one fetched before",
                 LOG_TEXT("source", call->source->id), LOG_TEXT("method", call->method->name));
        write(call, buffer_str(&kept), 0, &result);
        if (carrier->write_result) /* the server's own words were kept */
            carrier->write_result(call, buffer_str(&result), &of_client);
        call_answer_result_of_server(call,
                                     buffer_str(carrier->write_result ? &of_client : &result));
    }
    return found;
}

void lists_fetch(struct call *call, const struct looks *looks)
{
    relay_start(
        call, looks,
        &(struct carried){.silence_ms = call->snapshot->config->times.tools_fetch_timeout_ms});
}
