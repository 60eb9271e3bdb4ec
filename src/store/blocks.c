/* Making, listing and ending blocks. */
#include "effects.h"

#include <stdio.h>
#include <stdlib.h>

#include "audit.h"
#include "queue.h"
#include "task_operations.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/random.h"
#include "taskgate/store/blocks.h"

/* ---- those in force ---- */

static bool find_active(struct batch *batch, struct record_list *list)
{
    if (!rows_list(batch->database, STATEMENT_BLOCK_ACTIVE, NO_VALUES, list))
        return false;
    batch->replica->has_blocks = list->count > 0;
    return true;
}

static bool blocks_note(struct batch *batch, const struct store_block *block, const char *event,
                        struct audit_actor actor, const char *reason)
{
    id_list_add(&batch->changed, str_from(block->id));
    OWNED char *text =
        memory_format("%s: %s%s%s", block->id, block->scope, *reason ? "; " : "", reason);
    return audit_append_block(batch, block, event, actor, text);
}

/* ---- its tasks ---- */

static struct task_change blocks_change_of(const struct task *task, const struct store_block *block)
{
    if (task->state == TASK_PENDING)
        return (struct task_change){
            .to = TASK_REJECTED, .by = block->person, .reason = block->reason};
    return (struct task_change){.to = TASK_CANCELLED,
                                .status_message = "Cancelled: its caller is blocked"};
}

static bool blocks_stop(struct batch *batch, const char *id, const struct store_block *block)
{
    struct task *task = NULL;
    struct error error;
    const struct audit_actor actor = {"operator", block->person, NULL};
    enum row_result result = task_operations_load(batch, str_from(id), &task);
    bool is_open =
        result == ROW_FOUND && (task->state == TASK_PENDING || task->state == TASK_APPROVED);
    if (is_open) { /* one that has just expired stays expired */
        const struct task_change change = blocks_change_of(task, block);
        result = task_operations_move(batch, task, &change, actor, &error);
    }
    task_unref(task);
    return result != ROW_FAILED;
}

static bool stop_all(struct batch *batch, const struct store_block *block)
{
    struct id_list list = {.count = 0};
    bool done = rows_ids(
        batch->database, STATEMENT_BLOCK_TASKS,
        VALUES(TEXT(block->scope), TEXT(block->owner), TEXT(block->source), TEXT(block->client)),
        &list);
    for (size_t i = 0; done && i < list.count; i++)
        done = blocks_stop(batch, list.ids[i], block);
    free(list.ids);
    return done;
}

bool blocks_apply(struct batch *batch, struct task *task, bool *is_blocked)
{
    const struct store_block_caller caller = {str_from(task->owner), str_from(task->source),
                                              str_from(task->client_name)};
    struct record_list list = {&block_record};
    *is_blocked = false;
    if (!batch->replica->has_blocks)
        return true;
    bool done = find_active(batch, &list);
    const struct store_block *blocks = list.items;
    bool is_open = task->state == TASK_PENDING || task->state == TASK_APPROVED;
    for (size_t i = 0; is_open && done && i < list.count && !*is_blocked; i++) {
        const struct store_block *block = &blocks[i];
        if (block->until_ms <= batch->now_ms || !store_block_fits(block, &caller))
            continue;
        const struct task_change change = blocks_change_of(task, block);
        done = task_operations_decide_new(batch, task, &change,
                                          (struct audit_actor){"operator", block->person, NULL});
        *is_blocked = true;
    }
    record_list_finish(&list);
    return done;
}

/* ---- ending ---- */

static bool block_end(struct batch *batch, const struct store_block *block, const char *person,
                      const char *reason)
{
    const struct audit_actor actor =
        person ? (struct audit_actor){"operator", person, NULL} : AUDIT_GATEWAY;
    log_info("Block ended", LOG_TEXT("block", block->id), LOG_TEXT("scope", block->scope),
             LOG_TEXT("by", person ? person : ""));
    return rows_write(batch->database, STATEMENT_BLOCK_END,
                      VALUES(TEXT(block->id), NUMBER(batch->now_ms), TEXT(person))) &&
           blocks_note(batch, block, person ? "unblock" : "block_expired", actor,
                       reason ? reason : "");
}

static bool block_sweep(struct batch *batch, int64_t *next_ms, size_t *left)
{
    struct record_list list = {&block_record};
    bool done = find_active(batch, &list);
    const struct store_block *blocks = list.items;
    *next_ms = INT64_MAX;
    *left = list.count;
    for (size_t i = 0; done && i < list.count; i++) {
        int64_t until_ms = blocks[i].until_ms;
        if (until_ms <= batch->now_ms) {
            done = block_end(batch, &blocks[i], NULL, NULL);
            --*left;
        } else if (until_ms < *next_ms) {
            *next_ms = until_ms;
        }
    }
    record_list_finish(&list);
    return done;
}

bool blocks_sweep(struct batch *batch, int64_t *next_ms)
{
    size_t left;
    return block_sweep(batch, next_ms, &left);
}

/* ---- operations ---- */

static void blocks_give(struct operation *operation, const struct record_list *list)
{
    operation->reply.blocks = list->items;
    operation->reply.block_count = list->count;
}

static bool blocks_load(struct batch *batch, struct operation *operation, const char *id)
{
    struct record_list list = {&block_record};
    bool done = rows_list(batch->database, STATEMENT_BLOCK_GET, VALUES(TEXT(id)), &list);
    blocks_give(operation, &list);
    if (list.count == 0)
        operation->reply.status = STORE_NOT_FOUND;
    return done;
}

static bool blocks_insert(struct batch *batch, struct operation *operation, const struct task *task)
{
    char id[STORE_BLOCK_ID_BYTES], uuid[RANDOM_UUID_BYTES];
    random_uuid(uuid);
    snprintf(id, sizeof id, STORE_BLOCK_ID_PREFIX "%s", uuid);
    const struct store_block block = {
        .id = id,
        .task_id = (char *)task->id,
        .scope = (char *)operation->block.scope,
        .owner = task->owner,
        .source = task->source,
        .client = task->client_name,
        .principal = task->principal,
        .reason = (char *)operation->block.reason,
        .person = (char *)operation->block.person,
        .created_ms = batch->now_ms,
        .until_ms = batch->now_ms + operation->block.for_ms,
    };
    const struct audit_actor actor = {"operator", block.person, NULL};
    log_warn("Caller blocked", LOG_TEXT("block", id), LOG_TEXT("scope", block.scope),
             LOG_TEXT("task", task->id), LOG_TEXT("by", block.person));
    batch->replica->has_blocks = true;
    return rows_insert(batch->database, STATEMENT_BLOCK_INSERT, &block_record, &block) &&
           blocks_note(batch, &block, "block", actor, block.reason) && stop_all(batch, &block) &&
           grants_end_blocked(batch, &block) && blocks_load(batch, operation, id);
}

static bool run_blocks_create(struct batch *batch, struct operation *operation)
{
    struct task *task = NULL;
    int64_t next_ms;
    size_t count;
    if (!block_sweep(batch, &next_ms, &count))
        return false;
    enum row_result result = task_operations_load(batch, str_from(operation->id), &task);
    bool done = result != ROW_FAILED;
    if (result != ROW_FOUND)
        operation->reply.status = STORE_NOT_FOUND;
    else if (count >= STORE_BLOCKS_MOST)
        operation->reply.status = STORE_LIMIT_TOTAL;
    else
        done = blocks_insert(batch, operation, task);
    task_unref(task);
    return done;
}

static bool run_blocks_list(struct batch *batch, struct operation *operation)
{
    struct record_list list = {&block_record};
    bool done = rows_list(
        batch->database, STATEMENT_BLOCK_PAGE,
        VALUES(NUMBER(operation->page.from > 0 ? operation->page.from : INT64_MAX),
               NUMBER(operation->page.in_force_only), NUMBER((int64_t)operation->page.limit + 1)),
        &list);
    operation_end_page(operation, &list, operation->page.limit);
    blocks_give(operation, &list);
    return done;
}

static bool run_blocks_get(struct batch *batch, struct operation *operation)
{
    return blocks_load(batch, operation, operation->id);
}

static bool run_lift(struct batch *batch, struct operation *operation)
{
    struct store_reply *reply = &operation->reply;
    int64_t next_ms;
    if (!blocks_sweep(batch, &next_ms) || !blocks_load(batch, operation, operation->id))
        return false;
    if (reply->block_count == 0)
        return true;
    if (reply->blocks[0].ended_ms > 0) {
        reply->status = STORE_CONFLICT;
        return true;
    }
    if (!block_end(batch, &reply->blocks[0], operation->end.person, operation->end.reason))
        return false;
    operation_clear_reply(operation);
    return blocks_load(batch, operation, operation->id);
}

/* ---- the calls ---- */

static const struct operation_kind operation_block_create = {"block", true, run_blocks_create,
                                                             NULL};
static const struct operation_kind operation_block_list = {"block list", false, run_blocks_list,
                                                           NULL};
static const struct operation_kind operation_block_get = {"block get", false, run_blocks_get, NULL};
static const struct operation_kind operation_block_lift = {"block lift", true, run_lift, NULL};

void store_block_create(struct store *store, const struct store_block_wish *wish,
                        struct store_call call)
{
    struct operation *operation = operation_create(&operation_block_create, call);
    operation->id = operation_keep(operation, wish->task_id);
    operation->block.scope = store_block_scope_name(wish->scope);
    operation->block.for_ms = wish->for_ms;
    operation->block.reason = operation_keep_text(operation, wish->reason);
    operation->block.person = operation_keep_text(operation, wish->person);
    store_queue(store, operation);
}

void store_block_list(struct store *store, bool in_force_only, int64_t before_sequence,
                      size_t limit, struct store_call call)
{
    store_queue_page(store, &operation_block_list, in_force_only, before_sequence, limit, call);
}

void store_block_get(struct store *store, struct str id, struct store_call call)
{
    store_queue_get(store, &operation_block_get, id, call);
}

void store_block_lift(struct store *store, struct str id, const char *person, const char *reason,
                      struct store_call call)
{
    store_queue_end(store, &operation_block_lift, id, person, reason, call);
}
