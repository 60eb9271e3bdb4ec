/* Life of operations and of a batch's events. */
#include "operation.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"

struct operation *operation_create(const struct operation_kind *kind, struct store_call call)
{
    struct operation *operation = memory_alloc(sizeof *operation);
    ASSERT(kind && kind->run);
    MAGIC_SET(operation, OPERATION_MAGIC);
    operation->kind = kind;
    operation->call = call;
    return operation;
}

static void free_deliveries(const struct store_delivery *deliveries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        task_unref(deliveries[i].task);
        free(deliveries[i].reference);
        free(deliveries[i].anchor);
    }
    free((void *)deliveries);
}

static void free_records(const struct record *record, const void *items, size_t count)
{
    struct record_list list = {record, (void *)items, count, count};
    record_list_finish(&list);
}

static void free_home(struct store_home *home)
{
    if (!home)
        return;
    free((char *)home->replica);
    free((char *)home->address);
    free(home);
}

static void free_tally(struct store_tally *tally)
{
    if (!tally)
        return;
    free(tally->person);
    free(tally->reason);
    free(tally);
}

void operation_clear_reply(struct operation *operation)
{
    struct store_reply *reply = &operation->reply;
    task_unref(reply->task);
    for (size_t i = 0; i < reply->task_count; i++)
        task_unref(reply->tasks[i]);
    free(reply->tasks);
    free(reply->sequences);
    record_destroy(&session_record, (void *)reply->session);
    record_destroy(&sign_in_record, (void *)reply->sign_in);
    free_records(&entry_record, reply->audit, reply->audit_count);
    if (reply->audit_page) {
        free(reply->audit_page->rows);
        free(reply->audit_page->kept);
    }
    free((void *)reply->audit_page);
    free_deliveries(reply->deliveries, reply->delivery_count);
    free_records(&grant_record, reply->grants, reply->grant_count);
    free_records(&block_record, reply->blocks, reply->block_count);
    free_records(&definition_record, reply->definitions, reply->definition_count);
    free_records(&message_record, reply->messages, reply->message_count);
    free_home((struct store_home *)reply->home);
    free_tally((struct store_tally *)reply->tally);
    *reply = (struct store_reply){.status = STORE_OK};
}

void operation_end_page(struct operation *operation, struct record_list *list, size_t limit)
{
    struct store_reply *reply = &operation->reply;
    char *items = list->items;
    ASSERT(list->record->has_sequence);
    ASSERT_NUMBERS(list->count, <=, limit + 1);
    reply->has_more = list->count > limit;
    if (reply->has_more)
        record_finish(list->record, items + --list->count * list->record->bytes);
    /* A record with a sequence begins with it. */
    reply->last_sequence =
        list->count > 0 ? *(int64_t *)(void *)(items + (list->count - 1) * list->record->bytes) : 0;
}

static void operation_destroy(struct operation *operation)
{
    if (!operation)
        return;
    operation_clear_reply(operation);
    if (operation->kind->finish)
        operation->kind->finish(operation);
    for (size_t i = 0; i < operation->text_count; i++)
        free(operation->texts[i]);
    MAGIC_CLEAR(operation);
    free(operation);
}

const char *operation_keep(struct operation *operation, struct str text)
{
    ASSERT_NUMBERS(operation->text_count, <, OPERATION_TEXTS_MOST);
    return operation->texts[operation->text_count++] = memory_copy_str(text);
}

const char *operation_keep_text(struct operation *operation, const char *text)
{
    return text ? operation_keep(operation, str_from(text)) : NULL;
}

static void operation_deliver(void *context)
{
    struct operation *operation = operation_from(context);
    operation->call.callback(operation->call.context, &operation->reply);
    operation_destroy(operation);
}

void operation_answer(struct operation *operation)
{
    if (operation->call.callback)
        loop_post(operation->call.loop, operation_deliver, operation);
    else
        operation_destroy(operation);
}

size_t operation_task_bytes(const struct task *task)
{
    return task->request_length + task->outcome_length + strlen(task->arguments) +
           strlen(task->original_arguments) + strlen(task->meta) + strlen(task->other_params) +
           strlen(task->tool) + strlen(task->progress_token) + strlen(task->mirrored_headers);
}

void batch_add_feed_event(struct batch *batch, struct task *task, const struct task_event *event)
{
    if (batch->event_count == batch->event_capacity) {
        batch->event_capacity = batch->event_capacity ? 2 * batch->event_capacity : 64;
        batch->events =
            memory_grow_array(batch->events, batch->event_capacity, sizeof *batch->events);
    }
    ASSERT_NUMBERS(batch->event_count, <, batch->event_capacity);
    struct task_event *added = &batch->events[batch->event_count++];
    *added = *event;
    added->task = task_ref(task);
}

void batch_add_event(struct batch *batch, struct task *task, bool created)
{
    batch_add_feed_event(batch, task, &(struct task_event){.created = created, .is_own = true});
}

void batch_drop_events(struct batch *batch, size_t keep)
{
    ASSERT_NUMBERS(keep, <=, batch->event_count);
    while (batch->event_count > keep)
        task_unref(batch->events[--batch->event_count].task);
}
