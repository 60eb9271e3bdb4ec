/* Writing and reading the audit trail. */
#include "audit.h"

#include <stdlib.h>
#include <string.h>

#include "audit_rows.h"
#include "queue.h"
#include "taskgate/approval/votes.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/canonical.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/store/chain.h"
#include "taskgate/task/recorded_name.h"

#define PAGE_BYTES_MAX ((size_t)1024 * 1024)

/* ---- writing ---- */

/* Texts that a row has of its own, beside those that it borrows from the task. */
struct made_texts {
    struct buffer decision, votes, kept;
    char kept_digest[DIGEST_HEX_BYTES];
    char tool[RECORDED_NAME_BYTES], principal[RECORDED_NAME_BYTES];
};

static void write_vote(struct buffer *out, const struct ballot_vote *vote)
{
    buffer_append_char(out, '{');
    json_add_time(out, "at", vote->at_ms);
    if (vote->is_emergency) {
        json_add_key(out, "emergency");
        buffer_append_text(out, "true");
    }
    json_add_key(out, "person");
    canonical_write_text(str_from(vote->person.name), out);
    if (vote->reason && *vote->reason) {
        json_add_key(out, "reason");
        canonical_write_text(str_from(vote->reason), out);
    }
    json_add_text(out, "verb", ballot_verb_name(vote->verb));
    buffer_append_char(out, '}');
}

/* All that there are, in the order in which they were given. */
static void write_votes(struct buffer *out, const struct task *task)
{
    struct ballot_votes votes;
    ballot_votes_read(&votes, str_from(task->votes));
    for (size_t i = 0; i < votes.count; i++) {
        buffer_append_char(out, i == 0 ? '[' : ',');
        write_vote(out, &votes.items[i]);
    }
    if (votes.count > 0)
        buffer_append_char(out, ']');
    ballot_votes_finish(&votes);
}

/* The events that votes lead to. */
static bool tells_votes(const char *event)
{
    static const char *const events[] = {"vote", "withdraw", "approve", "reject"};
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        if (strcmp(event, events[i]) == 0)
            return true;
    }
    return false;
}

static bool is_creation(const char *event)
{
    return strcmp(event, "create") == 0;
}

/* The arguments without what operators must not see. */
static void audit_make_kept(const struct batch *batch, const struct task *task,
                            struct made_texts *made)
{
    struct str arguments = str_from(task->arguments);
    if (batch->redaction->write)
        batch->redaction->write(batch->redaction->context, &made->kept, arguments, task->workflow);
    else
        buffer_append(&made->kept, arguments);
    digest_sha256_hex(buffer_str(&made->kept), made->kept_digest);
}

static bool keep_arguments(struct batch *batch, int64_t sequence, const struct made_texts *made)
{
    return audit_rows_keep(batch->database, sequence, buffer_str(&made->kept),
                           batch->now_ms + batch->audit->keep_arguments_ms);
}

/* Nobody else appends within the transaction, so it is read once. */
static bool find_end(struct batch *batch, struct store_chain *end)
{
    if (!batch->knows_chain)
        batch->knows_chain = audit_rows_end(batch->database, &batch->chain);
    *end = batch->chain;
    return batch->knows_chain;
}

static bool audit_insert(struct batch *batch, const struct audit_row *row,
                         const struct store_chain *end)
{
    struct audit_row whole = *row;
    ASSERT_NUMBERS(row->sequence, ==, end->sequence + 1); /* the chain has no gap */
    char hash[DIGEST_HEX_BYTES];
    OWNED_BUFFER(text);
    audit_row_write(row, false, &text);
    store_chain_hash(end->hash, buffer_str(&text), hash);
    whole.texts[AUDIT_hash] = str_from(hash);
    batch->chain.sequence = row->sequence;
    memcpy(batch->chain.hash, hash, sizeof hash);
    return audit_rows_insert(batch->database, &whole);
}

bool audit_append(struct batch *batch, const struct task *task, const char *event, const char *from,
                  struct audit_actor actor, const char *reason)
{
    struct store_chain end;
    if (!find_end(batch, &end))
        return false;
    bool is_operator = strcmp(actor.kind, "operator") == 0;
    bool is_vote = is_operator && tells_votes(event);
    bool has_arguments = is_creation(event) || strcmp(event, AUDIT_EDIT) == 0;
    bool keeps = has_arguments && batch->audit->keep_arguments_ms > 0;
    struct made_texts made = {.kept_digest = ""};
    buffer_init(&made.decision);
    buffer_init(&made.votes);
    buffer_init(&made.kept);
    if (is_creation(event)) /* a grant decides a new task, which has it still */
        audit_row_write_decision(&made.decision, str_from(task->decision));
    if (is_vote)
        write_votes(&made.votes, task);
    if (keeps)
        audit_make_kept(batch, task, &made);
    struct audit_row row = {.sequence = end.sequence + 1, .at_ms = task->updated_ms};
    struct str *texts = row.texts;
    texts[AUDIT_actor_name] = str_from(actor.name);
    texts[AUDIT_actor_kind] = str_from(actor.kind);
    texts[AUDIT_arguments_digest] = str_from(task->arguments_digest);
    texts[AUDIT_decision] = buffer_str(&made.decision);
    texts[AUDIT_definition_digest] = str_from(task->definition_digest);
    texts[AUDIT_event] = str_from(event);
    texts[AUDIT_from_state] = str_from(from);
    texts[AUDIT_kept_digest] = str_from(made.kept_digest);
    texts[AUDIT_person] = is_operator ? str_from(actor.name) : STR_EMPTY;
    texts[AUDIT_policy_digest] = str_from(task->policy_digest);
    texts[AUDIT_principal] = recorded_name(str_from(task->principal), made.principal);
    texts[AUDIT_reason] = str_from(reason);
    texts[AUDIT_request_digest] = str_from(task->request_digest);
    texts[AUDIT_rule] = str_from(task->rule);
    texts[AUDIT_source] = str_from(task->source);
    texts[AUDIT_task_id] = str_from(task->id);
    texts[AUDIT_to_state] = str_from(task_state_name(task->state));
    texts[AUDIT_tool] = recorded_name(str_from(task->tool), made.tool);
    texts[AUDIT_via] = str_from(actor.via);
    texts[AUDIT_votes] = buffer_str(&made.votes);
    texts[AUDIT_workflow] = str_from(task->workflow);
    bool done =
        audit_insert(batch, &row, &end) && (!keeps || keep_arguments(batch, row.sequence, &made));
    buffer_finish(&made.decision);
    buffer_finish(&made.votes);
    buffer_finish(&made.kept);
    return done;
}

bool audit_has(struct batch *batch, const struct task *task, const char *event, bool *has)
{
    enum row_result result =
        rows_exist(batch->database, STATEMENT_AUDIT_HAS, VALUES(TEXT(task->id), TEXT(event)));
    *has = result == ROW_FOUND;
    return result != ROW_FAILED;
}

bool audit_append_note(struct batch *batch, const struct store_audit_note *note)
{
    struct store_chain end;
    char person[RECORDED_NAME_BYTES];
    if (!find_end(batch, &end))
        return false;
    struct audit_row row = {.sequence = end.sequence + 1, .at_ms = batch->now_ms};
    struct str *texts = row.texts;
    texts[AUDIT_actor_kind] = STR("operator");
    texts[AUDIT_actor_name] = texts[AUDIT_person] = recorded_name(str_from(note->person), person);
    texts[AUDIT_event] = str_from(note->event);
    texts[AUDIT_reason] = str_from(note->reason);
    texts[AUDIT_via] = str_from(note->via);
    return audit_insert(batch, &row, &end);
}

bool audit_append_grant(struct batch *batch, const struct audit_grant_entry *entry)
{
    const struct store_grant *grant = entry->grant;
    struct store_chain end;
    char tool[RECORDED_NAME_BYTES], principal[RECORDED_NAME_BYTES];
    if (!find_end(batch, &end))
        return false;
    bool is_operator = strcmp(entry->actor.kind, "operator") == 0;
    struct audit_row row = {.sequence = end.sequence + 1, .at_ms = batch->now_ms};
    struct str *texts = row.texts;
    texts[AUDIT_actor_kind] = str_from(entry->actor.kind);
    texts[AUDIT_actor_name] = str_from(entry->actor.name);
    texts[AUDIT_definition_digest] = str_from(grant->definition_digest);
    texts[AUDIT_event] = str_from(entry->event);
    texts[AUDIT_person] = is_operator ? str_from(entry->actor.name) : STR_EMPTY;
    texts[AUDIT_principal] = recorded_name(str_from(grant->principal), principal);
    texts[AUDIT_reason] = str_from(entry->reason);
    texts[AUDIT_rule] = str_from(grant->rule);
    texts[AUDIT_source] = str_from(grant->source);
    texts[AUDIT_task_id] = str_from(grant->task_id);
    texts[AUDIT_tool] = recorded_name(str_from(grant->tool), tool);
    texts[AUDIT_workflow] = str_from(grant->workflow);
    return audit_insert(batch, &row, &end);
}

bool audit_append_block(struct batch *batch, const struct store_block *block, const char *event,
                        struct audit_actor actor, const char *reason)
{
    struct store_chain end;
    char principal[RECORDED_NAME_BYTES];
    if (!find_end(batch, &end))
        return false;
    bool is_operator = strcmp(actor.kind, "operator") == 0;
    struct audit_row row = {.sequence = end.sequence + 1, .at_ms = batch->now_ms};
    struct str *texts = row.texts;
    texts[AUDIT_actor_kind] = str_from(actor.kind);
    texts[AUDIT_actor_name] = str_from(actor.name);
    texts[AUDIT_event] = str_from(event);
    texts[AUDIT_person] = is_operator ? str_from(actor.name) : STR_EMPTY;
    texts[AUDIT_principal] = recorded_name(str_from(block->principal), principal);
    texts[AUDIT_reason] = str_from(reason);
    texts[AUDIT_source] = str_from(block->source);
    texts[AUDIT_task_id] = str_from(block->task_id);
    return audit_insert(batch, &row, &end);
}

bool audit_append_definition(struct batch *batch, const struct store_definition *definition,
                             const char *person)
{
    struct store_chain end;
    char tool[RECORDED_NAME_BYTES], name[RECORDED_NAME_BYTES];
    if (!find_end(batch, &end))
        return false;
    struct audit_row row = {.sequence = end.sequence + 1, .at_ms = batch->now_ms};
    struct str *texts = row.texts;
    texts[AUDIT_actor_kind] = STR("operator");
    texts[AUDIT_actor_name] = texts[AUDIT_person] = recorded_name(str_from(person), name);
    texts[AUDIT_definition_digest] = str_from(definition->digest);
    texts[AUDIT_event] = STR("definition_accepted");
    texts[AUDIT_reason] = str_from(definition->kind);
    texts[AUDIT_source] = str_from(definition->source);
    texts[AUDIT_tool] = recorded_name(str_from(definition->name), tool);
    return audit_insert(batch, &row, &end);
}

static bool run_audit_note(struct batch *batch, struct operation *operation)
{
    return audit_append_note(batch, &operation->audit);
}

/* ---- reading ---- */

static bool run_audit_list(struct batch *batch, struct operation *operation)
{
    struct record_list list = {&entry_record};
    bool done =
        rows_list(batch->database, STATEMENT_AUDIT_LIST, VALUES(TEXT(operation->id)), &list);
    operation->reply.audit = list.items;
    operation->reply.audit_count = list.count;
    return done;
}

struct page {
    struct batch *batch;
    const struct operation *operation;
    struct store_audit_page *page;
    struct buffer rows, kept;
    size_t count;
    bool has_failed;
};

/* Text that is no JSON any more is left out: somebody edited the file, and verify tells. */
static bool add_kept(struct page *page, int64_t sequence)
{
    struct batch *batch = page->batch;
    OWNED char *text = NULL;
    enum row_result result = audit_rows_kept(batch->database, sequence, &text);
    if (result == ROW_FOUND && json_check(str_from(text), NULL)) {
        buffer_append_format(&page->kept, "%s\"%lld\":", page->kept.length > 0 ? "," : "",
                             (long long)sequence);
        buffer_append_text(&page->kept, text);
    }
    return result != ROW_FAILED;
}

static bool add_row(void *context, const struct audit_row *row)
{
    struct page *page = context;
    page->page->has_more = page->count == page->operation->page.limit ||
                           page->rows.length + page->kept.length >= PAGE_BYTES_MAX;
    if (page->page->has_more)
        return false;
    if (page->count++ > 0)
        buffer_append_char(&page->rows, ',');
    audit_row_write(row, true, &page->rows);
    page->page->last_sequence = row->sequence;
    if (page->operation->page.with_arguments && row->texts[AUDIT_kept_digest].length > 0)
        page->has_failed = page->has_failed || !add_kept(page, row->sequence);
    return true;
}

static bool run_page(struct batch *batch, struct operation *operation)
{
    struct store_audit_page *answer = memory_alloc(sizeof *answer);
    struct page page = {.batch = batch, .operation = operation, .page = answer};
    buffer_init(&page.rows);
    buffer_init(&page.kept);
    answer->last_sequence = operation->page.from;
    bool is_read = audit_rows_page(batch->database, operation->page.from, operation->page.limit + 1,
                                   add_row, &page);
    answer->rows = buffer_take(&page.rows, &answer->rows_length);
    answer->kept = buffer_take(&page.kept, NULL);
    operation->reply.audit_page = answer;
    enum row_result start = audit_rows_anchor_start(batch->database, &answer->start);
    answer->has_start = start == ROW_FOUND;
    return is_read && !page.has_failed && start != ROW_FAILED;
}

/* ---- the calls ---- */

static const struct operation_kind operation_audit_list = {"audit list", false, run_audit_list,
                                                           NULL};
static const struct operation_kind operation_audit_page = {"audit page", false, run_page, NULL};
static const struct operation_kind operation_audit_note = {"audit note", true, run_audit_note,
                                                           NULL};

void store_audit_note(struct store *store, const struct store_audit_note *note,
                      struct store_call call)
{
    struct operation *operation = operation_create(&operation_audit_note, call);
    operation->audit.event = operation_keep_text(operation, note->event);
    operation->audit.person = operation_keep_text(operation, note->person);
    operation->audit.via = operation_keep_text(operation, note->via);
    operation->audit.reason = operation_keep_text(operation, note->reason);
    store_queue(store, operation);
}

void store_audit_list(struct store *store, struct str task_id, struct store_call call)
{
    struct operation *operation = operation_create(&operation_audit_list, call);
    operation->id = operation_keep(operation, task_id);
    store_queue(store, operation);
}

void store_audit_page(struct store *store, int64_t after, size_t limit, bool with_arguments,
                      struct store_call call)
{
    struct operation *operation = operation_create(&operation_audit_page, call);
    operation->page.from = after;
    operation->page.limit = limit;
    operation->page.with_arguments = with_arguments;
    store_queue(store, operation);
}
