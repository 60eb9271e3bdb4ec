/* Writing and reading the audit trail. */
#include "audit.h"

#include <string.h>

#include "audit_rows.h"
#include "queue.h"
#include "taskgate/approval/votes.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/canonical.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/store/chain.h"
#include "taskgate/task/recorded_name.h"

#define PAGE_BYTES_MAX ((size_t)1024 * 1024)

/* ---- writing ---- */

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

/* An entry of now about nothing yet; of what an operator does a person is named. */
static struct audit_row audit_entry(const struct batch *batch, const char *event,
                                    struct audit_actor actor, const char *reason)
{
    struct audit_row row = {.at_ms = batch->now_ms};
    ASSERT(*event);
    row.texts[AUDIT_actor_kind] = str_from(actor.kind);
    row.texts[AUDIT_actor_name] = str_from(actor.name);
    row.texts[AUDIT_event] = str_from(event);
    if (strcmp(actor.kind, "operator") == 0)
        row.texts[AUDIT_person] = str_from(actor.name);
    row.texts[AUDIT_reason] = str_from(reason);
    row.texts[AUDIT_via] = str_from(actor.via);
    return row;
}

/* Gives the entry its number and its hash. Nobody else appends within the transaction, so the end
 * of the chain is read once. */
static bool audit_insert(struct batch *batch, struct audit_row *row)
{
    OWNED_BUFFER(text);
    if (!batch->knows_chain)
        batch->knows_chain = audit_rows_end(batch->database, &batch->chain);
    if (!batch->knows_chain)
        return false;
    row->sequence = ++batch->chain.sequence;
    audit_row_write(row, false, &text);
    store_chain_hash(batch->chain.hash, buffer_str(&text), batch->chain.hash);
    row->texts[AUDIT_hash] = str_from(batch->chain.hash);
    return audit_rows_insert(batch->database, row);
}

/* The arguments without what operators must not see. */
static void audit_make_kept(const struct batch *batch, const struct task *task, struct buffer *kept)
{
    struct str arguments = str_from(task->arguments);
    if (batch->redaction->write)
        batch->redaction->write(batch->redaction->context, kept, arguments, task->workflow);
    else
        buffer_append(kept, arguments);
}

static bool append_of_task(struct batch *batch, int64_t at_ms, const struct task *task,
                           const char *event, const char *from, struct audit_actor actor,
                           const char *reason)
{
    bool is_operator = strcmp(actor.kind, "operator") == 0;
    bool has_arguments = is_creation(event) || strcmp(event, AUDIT_EDIT) == 0;
    bool keeps = has_arguments && batch->audit->keep_arguments_ms > 0;
    char tool[RECORDED_NAME_BYTES], principal[RECORDED_NAME_BYTES];
    char kept_digest[DIGEST_HEX_BYTES] = "";
    OWNED_BUFFER(decision);
    OWNED_BUFFER(votes);
    OWNED_BUFFER(kept);
    if (is_creation(event)) /* a grant decides a new task, which has it still */
        audit_row_write_decision(&decision, str_from(task->decision));
    if (is_operator && tells_votes(event))
        write_votes(&votes, task);
    if (keeps) {
        audit_make_kept(batch, task, &kept);
        digest_sha256_hex(buffer_str(&kept), kept_digest);
    }
    struct audit_row row = audit_entry(batch, event, actor, reason);
    struct str *texts = row.texts;
    row.at_ms = at_ms;
    texts[AUDIT_arguments_digest] = str_from(task->arguments_digest);
    texts[AUDIT_decision] = buffer_str(&decision);
    texts[AUDIT_definition_digest] = str_from(task->definition_digest);
    texts[AUDIT_from_state] = str_from(from);
    texts[AUDIT_kept_digest] = str_from(kept_digest);
    texts[AUDIT_policy_digest] = str_from(task->policy_digest);
    texts[AUDIT_principal] = recorded_name(str_from(task->principal), principal);
    texts[AUDIT_request_digest] = str_from(task->request_digest);
    texts[AUDIT_rule] = str_from(task->rule);
    texts[AUDIT_source] = str_from(task->source);
    texts[AUDIT_task_id] = str_from(task->id);
    texts[AUDIT_to_state] = str_from(task_state_name(task->state));
    texts[AUDIT_tool] = recorded_name(str_from(task->tool), tool);
    texts[AUDIT_votes] = buffer_str(&votes);
    texts[AUDIT_workflow] = str_from(task->workflow);
    return audit_insert(batch, &row) &&
           (!keeps || audit_rows_keep(batch->database, row.sequence, buffer_str(&kept),
                                      batch->now_ms + batch->audit->keep_arguments_ms));
}

bool audit_append(struct batch *batch, const struct task *task, const char *event, const char *from,
                  struct audit_actor actor, const char *reason)
{
    return append_of_task(batch, task->updated_ms, task, event, from, actor, reason);
}

bool audit_append_now(struct batch *batch, const struct task *task, const char *event,
                      struct audit_actor actor, const char *reason)
{
    const char *state = task_state_name(task->state);
    return append_of_task(batch, batch->now_ms, task, event, state, actor, reason);
}

bool audit_has(struct batch *batch, const struct task *task, const char *event, bool *has)
{
    enum row_result result =
        rows_exist(batch->database, STATEMENT_AUDIT_HAS, VALUES(TEXT(task->id), TEXT(event)));
    *has = result == ROW_FOUND;
    return result != ROW_FAILED;
}

/* An entry of what an operator does, under the name that is recorded. */
static struct audit_row operator_entry(const struct batch *batch,
                                       const struct store_audit_note *note,
                                       char person[RECORDED_NAME_BYTES])
{
    struct audit_actor actor = {"operator", note->person, note->via};
    struct audit_row row = audit_entry(batch, note->event, actor, note->reason);
    row.texts[AUDIT_actor_name] = row.texts[AUDIT_person] =
        recorded_name(str_from(note->person), person);
    return row;
}

bool audit_append_note(struct batch *batch, const struct store_audit_note *note)
{
    char person[RECORDED_NAME_BYTES];
    struct audit_row row = operator_entry(batch, note, person);
    return audit_insert(batch, &row);
}

bool audit_append_grant(struct batch *batch, const struct store_grant *grant, const char *event,
                        struct audit_actor actor, const char *reason)
{
    char tool[RECORDED_NAME_BYTES], principal[RECORDED_NAME_BYTES];
    struct audit_row row = audit_entry(batch, event, actor, reason);
    struct str *texts = row.texts;
    texts[AUDIT_definition_digest] = str_from(grant->definition_digest);
    texts[AUDIT_principal] = recorded_name(str_from(grant->principal), principal);
    texts[AUDIT_rule] = str_from(grant->rule);
    texts[AUDIT_source] = str_from(grant->source);
    texts[AUDIT_task_id] = str_from(grant->task_id);
    texts[AUDIT_tool] = recorded_name(str_from(grant->tool), tool);
    texts[AUDIT_workflow] = str_from(grant->workflow);
    return audit_insert(batch, &row);
}

bool audit_append_block(struct batch *batch, const struct store_block *block, const char *event,
                        struct audit_actor actor, const char *reason)
{
    char principal[RECORDED_NAME_BYTES];
    struct audit_row row = audit_entry(batch, event, actor, reason);
    row.texts[AUDIT_principal] = recorded_name(str_from(block->principal), principal);
    row.texts[AUDIT_source] = str_from(block->source);
    row.texts[AUDIT_task_id] = str_from(block->task_id);
    return audit_insert(batch, &row);
}

bool audit_append_definition(struct batch *batch, const struct store_definition *definition,
                             const char *person)
{
    char tool[RECORDED_NAME_BYTES], name[RECORDED_NAME_BYTES];
    const struct store_audit_note note = {
        .event = "definition_accepted", .person = person, .reason = definition->kind};
    struct audit_row row = operator_entry(batch, &note, name);
    row.texts[AUDIT_definition_digest] = str_from(definition->digest);
    row.texts[AUDIT_source] = str_from(definition->source);
    row.texts[AUDIT_tool] = recorded_name(str_from(definition->name), tool);
    return audit_insert(batch, &row);
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
