/* Life of operations and of a batch's events. */
#include "operation.h"

#include "row.h"
#include "tally.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"

struct operation *operation_create(const struct operation_kind *kind, struct store_call call)
{
    struct operation *operation = memory_alloc(sizeof *operation);
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
    home_destroy((struct store_home *)reply->home);
    tally_destroy((struct store_tally *)reply->tally);
    *reply = (struct store_reply){.status = STORE_OK};
}

static void free_change(struct task_change *change)
{
    free((char *)change->by);
    free((char *)change->reason);
    free((char *)change->status_message);
    free((char *)change->outcome_text.bytes);
    free((char *)change->upstream_task);
    free((char *)change->credentials);
    free((char *)change->request_digest);
}

void operation_destroy(struct operation *operation)
{
    if (!operation)
        return;
    operation_clear_reply(operation);
    task_unref(operation->task);
    free_change(&operation->change);
    free(operation->actor_kind);
    free(operation->actor_name);
    vote_destroy(operation->vote);
    if (operation->electorate.release)
        operation->electorate.release(operation->electorate.context);
    free(operation->id);
    free(operation->owner);
    free(operation->session);
    free(operation->source);
    free(operation->tool);
    free(operation->workflow);
    free(operation->principal);
    if (operation->query && operation->query->release)
        operation->query->release(operation->query->context);
    free(operation->query);
    free(operation->token_digest);
    free(operation->upstream_task);
    free(operation->heir);
    record_destroy(&session_record, operation->session_value);
    record_destroy(&sign_in_record, operation->sign_in);
    record_list_finish(&operation->definitions);
    free(operation->targets);
    free(operation->reason);
    MAGIC_CLEAR(operation);
    free(operation);
}

size_t operation_task_bytes(const struct task *task)
{
    return task->request_length + task->outcome_length + strlen(task->arguments) +
           strlen(task->original_arguments) + strlen(task->meta) + strlen(task->other_params) +
           strlen(task->tool) + strlen(task->progress_token) + strlen(task->mirrored_headers);
}

void operation_set_change(struct operation *operation, const struct task_change *change)
{
    struct task_change *copy = &operation->change;
    *copy = *change;
    copy->by = memory_copy_text(change->by);
    copy->reason = memory_copy_text(change->reason);
    copy->status_message = memory_copy_text(change->status_message);
    copy->upstream_task = memory_copy_text(change->upstream_task);
    copy->credentials = memory_copy_text(change->credentials);
    copy->request_digest = memory_copy_text(change->request_digest);
    copy->outcome_text.bytes = memory_copy_str(change->outcome_text);
}

void batch_add_feed_event(struct batch *batch, struct task *task, const struct task_event *event)
{
    if (batch->event_count == batch->event_capacity) {
        batch->event_capacity = batch->event_capacity ? 2 * batch->event_capacity : 64;
        batch->events =
            memory_grow_array(batch->events, batch->event_capacity, sizeof *batch->events);
    }
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
    while (batch->event_count > keep)
        task_unref(batch->events[--batch->event_count].task);
}

struct store_vote *vote_copy(const struct store_vote *vote)
{
    struct store_vote *copy = memory_alloc(sizeof *copy);
    *copy = *vote;
    person_copy(&copy->voter, &vote->voter);
    copy->reason = memory_copy_text(vote->reason);
    copy->reaction = memory_copy_text(vote->reaction);
    copy->typed = memory_copy_text(vote->typed);
    copy->shown_digest = memory_copy_text(vote->shown_digest);
    copy->claim = NULL; /* an operation of its own */
    if (vote->edit) {
        struct store_edit *edit = memory_alloc(sizeof *edit);
        *edit = *vote->edit;
        edit->arguments = memory_copy_text(vote->edit->arguments);
        edit->request = memory_copy_str(str_slice(vote->edit->request, vote->edit->request_length));
        copy->edit = edit;
    }
    return copy;
}

void vote_destroy(struct store_vote *vote)
{
    if (!vote)
        return;
    if (vote->electorate.release)
        vote->electorate.release(vote->electorate.context);
    person_finish(&vote->voter);
    free((char *)vote->reason);
    free((char *)vote->reaction);
    free((char *)vote->shown_digest);
    free((char *)vote->typed);
    if (vote->edit) {
        free(vote->edit->arguments);
        free(vote->edit->request);
        free((void *)vote->edit);
    }
    free(vote);
}
