/* Writing and reading the audit trail. */
#include "audit.h"

#include <stdlib.h>
#include <string.h>

#include "audit_row.h"
#include "taskgate/approval/votes.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/canonical.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/store/chain.h"
#include "taskgate/store/grants.h"
#include "taskgate/task/recorded_name.h"

#define PAGE_BYTES_MAX ((size_t)1024 * 1024)

/* ---- the end of the chain ---- */

/* Behind the newest row; behind the newest anchor where all rows are gone. */
static bool read_end(struct database *database, struct store_chain *chain)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_AUDIT_END);
    int code = sqlite3_step(row);
    store_chain_init(chain);
    struct str hash = code == SQLITE_ROW ? database_column_bytes(row, 1) : STR_EMPTY;
    if (hash.length == sizeof chain->hash - 1) {
        chain->sequence = sqlite3_column_int64(row, 0);
        memcpy(chain->hash, hash.bytes, hash.length);
    }
    database_release(row);
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

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

/* What decided the call is the gateway's own JSON; a file that somebody edited may hold anything.
 */
static void write_decision(struct buffer *out, struct str decision)
{
    if (decision.length > 0 && json_check(decision, NULL))
        canonical_write(decision, out);
    else if (decision.length > 0)
        canonical_write_text(decision, out);
}

static bool is_creation(const char *event)
{
    return strcmp(event, "create") == 0;
}

/* The arguments without what operators must not see. */
static void make_kept(const struct batch *batch, const struct task *task, struct made_texts *made)
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
    sqlite3_stmt *row = database_statement(batch->database, STATEMENT_AUDIT_KEEP);
    sqlite3_bind_int64(row, 1, sequence);
    database_bind_str(row, 2, buffer_str(&made->kept));
    sqlite3_bind_int64(row, 3, batch->now_ms + batch->audit->keep_arguments_ms);
    return database_run(row);
}

static bool insert(struct batch *batch, const struct audit_row *row, const struct store_chain *end)
{
    struct audit_row whole = *row;
    char hash[DIGEST_HEX_BYTES];
    struct buffer text;
    buffer_init(&text);
    audit_row_write(row, false, &text);
    store_chain_hash(end->hash, buffer_str(&text), hash);
    buffer_finish(&text);
    whole.texts[AUDIT_hash] = str_from(hash);
    sqlite3_stmt *statement = database_statement(batch->database, STATEMENT_AUDIT_INSERT);
    audit_row_bind(&whole, statement);
    return database_run(statement);
}

bool audit_append(struct batch *batch, const struct task *task, const char *event, const char *from,
                  struct audit_actor actor, const char *reason)
{
    struct store_chain end;
    if (!read_end(batch->database, &end))
        return false;
    bool is_operator = strcmp(actor.kind, "operator") == 0;
    bool is_vote = is_operator && tells_votes(event);
    bool keeps = is_creation(event) && batch->audit->keep_arguments_ms > 0;
    struct made_texts made = {.kept_digest = ""};
    buffer_init(&made.decision);
    buffer_init(&made.votes);
    buffer_init(&made.kept);
    if (is_creation(event)) /* a grant decides a new task, which has it still */
        write_decision(&made.decision, str_from(task->decision));
    if (is_vote)
        write_votes(&made.votes, task);
    if (keeps)
        make_kept(batch, task, &made);
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
    bool done = insert(batch, &row, &end) && (!keeps || keep_arguments(batch, row.sequence, &made));
    buffer_finish(&made.decision);
    buffer_finish(&made.votes);
    buffer_finish(&made.kept);
    return done;
}

bool audit_has(struct batch *batch, const struct task *task, const char *event, bool *has)
{
    sqlite3_stmt *row = database_statement(batch->database, STATEMENT_AUDIT_HAS);
    database_bind_text(row, 1, task->id);
    database_bind_text(row, 2, event);
    int code = sqlite3_step(row);
    *has = code == SQLITE_ROW;
    database_release(row);
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

bool audit_append_note(struct batch *batch, const struct store_audit_note *note)
{
    struct store_chain end;
    char person[RECORDED_NAME_BYTES];
    if (!read_end(batch->database, &end))
        return false;
    struct audit_row row = {.sequence = end.sequence + 1, .at_ms = batch->now_ms};
    struct str *texts = row.texts;
    texts[AUDIT_actor_kind] = STR("operator");
    texts[AUDIT_actor_name] = texts[AUDIT_person] = recorded_name(str_from(note->person), person);
    texts[AUDIT_event] = str_from(note->event);
    texts[AUDIT_reason] = str_from(note->reason);
    texts[AUDIT_via] = str_from(note->via);
    return insert(batch, &row, &end);
}

bool audit_append_grant(struct batch *batch, const struct audit_grant_entry *entry)
{
    const struct store_grant *grant = entry->grant;
    struct store_chain end;
    char tool[RECORDED_NAME_BYTES], principal[RECORDED_NAME_BYTES];
    if (!read_end(batch->database, &end))
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
    return insert(batch, &row, &end);
}

static bool run_note(struct batch *batch, struct operation *operation)
{
    const struct store_audit_note note = {operation->source, operation->owner, operation->session,
                                          operation->reason};
    return audit_append_note(batch, &note);
}

/* ---- a trail from before there was a chain ---- */

static bool seal_row(struct batch *batch, struct audit_row *row, struct store_chain *end)
{
    struct buffer decision, text;
    buffer_init(&decision);
    buffer_init(&text);
    write_decision(&decision, row->texts[AUDIT_decision]);
    row->texts[AUDIT_decision] = buffer_str(&decision);
    audit_row_write(row, false, &text);
    store_chain_hash(end->hash, buffer_str(&text), end->hash);
    end->sequence = row->sequence;
    sqlite3_stmt *update = database_statement(batch->database, STATEMENT_AUDIT_SEAL);
    sqlite3_bind_int64(update, 1, row->sequence);
    database_bind_text(update, 2, end->hash);
    database_bind_str(update, 3, row->texts[AUDIT_decision]);
    bool done = database_run(update);
    buffer_finish(&decision);
    buffer_finish(&text);
    return done;
}

/* SQLITE_DONE: there is no further one. */
static int seal_next(struct batch *batch, struct store_chain *end)
{
    struct audit_row row;
    sqlite3_stmt *next = database_statement(batch->database, STATEMENT_AUDIT_NEXT);
    sqlite3_bind_int64(next, 1, end->sequence);
    int code = sqlite3_step(next);
    if (code == SQLITE_ROW) {
        audit_row_read(&row, next);
        code = seal_row(batch, &row, end) ? SQLITE_ROW : SQLITE_ERROR;
    }
    database_release(next);
    return code;
}

bool audit_seal(struct batch *batch)
{
    struct store_chain end;
    int64_t sealed = 0;
    int code;
    /* All rows of before are sealed in one transaction, so the newest tells for all. */
    if (!read_end(batch->database, &end))
        return false;
    if (end.sequence > 0)
        return true;
    if (!database_simple(batch->database, STATEMENT_AUDIT_UNLOCK))
        return false;
    while ((code = seal_next(batch, &end)) == SQLITE_ROW)
        sealed++;
    if (sealed > 0)
        log_info("Audit rows of an older version were chained", LOG_NUMBER("rows", sealed));
    return code == SQLITE_DONE && database_simple(batch->database, STATEMENT_AUDIT_LOCK);
}

static bool run_seal(struct batch *batch, struct operation *operation)
{
    (void)operation;
    return audit_seal(batch);
}

/* ---- reading ---- */

static struct store_audit_entry read_entry(sqlite3_stmt *row)
{
    return (struct store_audit_entry){
        .sequence = sqlite3_column_int64(row, 0),
        .at_ms = sqlite3_column_int64(row, 1),
        .task_id = database_take_text(row, 2),
        .event = database_take_text(row, 3),
        .from_state = database_take_text(row, 4),
        .to_state = database_take_text(row, 5),
        .actor_kind = database_take_text(row, 6),
        .actor_name = database_take_text(row, 7),
        .reason = database_take_text(row, 8),
    };
}

static bool run_list(struct batch *batch, struct operation *operation)
{
    sqlite3_stmt *row = database_statement(batch->database, STATEMENT_AUDIT_LIST);
    database_bind_text(row, 1, operation->id);
    struct store_audit_entry *entries = NULL;
    size_t count = 0, capacity = 0;
    int code;
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        if (count == capacity) {
            capacity = capacity ? 2 * capacity : 8;
            entries = memory_grow_array(entries, capacity, sizeof *entries);
        }
        entries[count++] = read_entry(row);
    }
    database_release(row);
    operation->reply.audit = entries;
    operation->reply.audit_count = count;
    return code == SQLITE_DONE;
}

static bool read_start(struct batch *batch, struct store_audit_page *page)
{
    sqlite3_stmt *row = database_statement(batch->database, STATEMENT_AUDIT_START);
    int code = sqlite3_step(row);
    if (code == SQLITE_ROW) {
        page->has_start = true;
        audit_anchor_read(row, &page->start);
    }
    database_release(row);
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

/* What is no JSON any more is left out: somebody edited the file, and verify tells. */
static bool add_kept(struct batch *batch, int64_t sequence, struct buffer *kept)
{
    sqlite3_stmt *row = database_statement(batch->database, STATEMENT_AUDIT_KEPT);
    sqlite3_bind_int64(row, 1, sequence);
    int code = sqlite3_step(row);
    struct str arguments = code == SQLITE_ROW ? database_column_bytes(row, 0) : STR_EMPTY;
    if (arguments.length > 0 && json_check(arguments, NULL)) {
        buffer_append_format(kept, "%s\"%lld\":", kept->length > 0 ? "," : "", (long long)sequence);
        buffer_append(kept, arguments);
    }
    database_release(row);
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

static bool run_page(struct batch *batch, struct operation *operation)
{
    struct store_audit_page *page = memory_alloc(sizeof *page);
    struct audit_row row;
    struct buffer rows, kept;
    size_t count = 0;
    bool is_read = true;
    int code;
    buffer_init(&rows);
    buffer_init(&kept);
    page->last_sequence = operation->sequence;
    sqlite3_stmt *statement = database_statement(batch->database, STATEMENT_AUDIT_PAGE);
    sqlite3_bind_int64(statement, 1, operation->sequence);
    sqlite3_bind_int64(statement, 2, (int64_t)operation->limit + 1);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW && count < operation->limit &&
           rows.length + kept.length < PAGE_BYTES_MAX) {
        audit_row_read(&row, statement);
        if (count++ > 0)
            buffer_append_char(&rows, ',');
        audit_row_write(&row, true, &rows);
        page->last_sequence = row.sequence;
        if (operation->with_arguments && row.texts[AUDIT_kept_digest].length > 0)
            is_read = is_read && add_kept(batch, row.sequence, &kept);
    }
    page->has_more = code == SQLITE_ROW;
    database_release(statement);
    page->rows = buffer_take(&rows, &page->rows_length);
    page->kept = buffer_take(&kept, NULL);
    operation->reply.audit_page = page;
    return is_read && (code == SQLITE_ROW || code == SQLITE_DONE) && read_start(batch, page);
}

const struct operation_kind operation_audit_list = {"audit list", false, run_list};
const struct operation_kind operation_audit_page = {"audit page", false, run_page};
const struct operation_kind operation_audit_note = {"audit note", true, run_note};
const struct operation_kind operation_audit_seal = {"audit seal", true, run_seal};
