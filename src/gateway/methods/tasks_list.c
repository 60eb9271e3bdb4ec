/* tasks/list: ours first, newest first, then upstream's, in pages over both (behaviour 5.11).
 * Upstream's failure leaves ours. */
#include <stdlib.h>
#include <string.h>

#include "call/call.h"
#include "call/client_profile.h"
#include "conversation/question.h"
#include "cursor.h"
#include "methods.h"
#include "server/credential_check.h"
#include "server/http.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/lists.h"

#define PAGE_SIZE 20
#define LIST_MOST_BYTES ((size_t)4 * 1024 * 1024)

/* A page in the making. */
struct listing {
    struct call_part part;
    struct cursor cursor; /* the begin of this page */
    struct cursor next;   /* the begin of the next one */
    bool has_next;
    struct buffer entries; /* JSON texts with commas */
    size_t count;
};

static void drop_listing(struct call *call, void *object)
{
    struct listing *listing = object;
    cursor_finish(&listing->cursor);
    cursor_finish(&listing->next);
    buffer_finish(&listing->entries);
    free(listing);
}

static const struct call_part_kind listing_kind = CALL_PART_KIND(struct listing, drop_listing);

static struct listing *tasks_list_listing_of(const struct call *call)
{
    return call_part_get(call, &listing_kind);
}

static void answer(struct call *call)
{
    struct listing *listing = tasks_list_listing_of(call);
    OWNED_BUFFER(result);
    buffer_append_text(&result, "{\"tasks\":[");
    buffer_append(&result, buffer_str(&listing->entries));
    buffer_append_char(&result, ']');
    if (listing->has_next) {
        buffer_append_text(&result, ",\"nextCursor\":");
        cursor_write(&listing->next, &result);
    }
    buffer_append_char(&result, '}');
    call_answer_result(call, buffer_str(&result));
}

static void begin_entry(struct listing *listing)
{
    if (listing->count++ > 0)
        buffer_append_char(&listing->entries, ',');
}

/* ---- upstream's part ---- */

/* An id of our form is never upstream's: it would be routed here. */
static bool is_listable(struct str task)
{
    OWNED char *id = json_string_text(json_member(task, "taskId"), NULL);
    return id && !task_id_is_ours(str_from(id));
}

static void take_upstream_page(struct listing *listing, struct str result)
{
    struct str tasks = json_member(result, "tasks"), task;
    struct str more = mcp_next_cursor(result);
    size_t position = 0;
    uint64_t seen = 0;
    listing->next.upstream = true;
    while (json_next_element(tasks, &position, &task)) {
        if (seen++ < listing->cursor.skip || !is_listable(task))
            continue;
        if (listing->count == PAGE_SIZE) {
            /* The rest of this page comes with the next one of ours. */
            listing->has_next = true;
            listing->next.skip = seen - 1;
            buffer_append(&listing->next.wrapped, buffer_str(&listing->cursor.wrapped));
            return;
        }
        begin_entry(listing);
        buffer_append(&listing->entries, task);
    }
    if (more.length > 0) {
        listing->has_next = true;
        buffer_append(&listing->next.wrapped, more);
    }
}

static void on_upstream_list(struct call *call, const struct exchange_reply *reply, call_step next)
{
    struct listing *listing = tasks_list_listing_of(call);
    struct str result = json_member(reply->message, "result");
    if (json_type(json_member(result, "tasks")) == JSON_ARRAY)
        take_upstream_page(listing, result);
    else
        log_warn("Upstream's tasks/list failed, only the gateway's tasks are listed",
                 LOG_TEXT("source", call->source->id));
    answer(call);
}

static void ask_upstream(struct call *call)
{
    const struct listing *listing = tasks_list_listing_of(call);
    struct str cursor = listing->cursor.upstream ? buffer_str(&listing->cursor.wrapped) : STR_EMPTY;
    server_ask_page(call, call->method->name, cursor, LIST_MOST_BYTES, on_upstream_list);
}

static void go_on_upstream(struct call *call)
{
    struct listing *listing = tasks_list_listing_of(call);
    if (!call->facts.server.has_tasks ||
        call_gives_session(call)) { /* a modern server lists none */
        answer(call);
    } else if (listing->count == PAGE_SIZE) {
        listing->has_next = true;
        listing->next.upstream = true;
        answer(call);
    } else {
        ask_upstream(call);
    }
}

/* ---- our part ---- */

static void write_task(struct call *call, const struct task *task, struct buffer *out)
{
    struct dialect_view view = {.pending = client_pending_look(call)};
    OWNED_BUFFER(elicitations);
    question_view(call->worker->gateway, task, &view, &elicitations);
    dialect_write_task(out, task, &view);
}

static void tasks_list_on_listed(struct call *call, const struct store_reply *reply)
{
    struct listing *listing = tasks_list_listing_of(call);
    if (reply->status != STORE_OK) {
        call_answer_no_store(call);
        return;
    }
    for (size_t i = 0; i < reply->task_count; i++) {
        begin_entry(listing);
        write_task(call, reply->tasks[i], &listing->entries);
    }
    if (reply->has_more && reply->task_count > 0) {
        listing->has_next = true;
        listing->next.sequence = reply->sequences[reply->task_count - 1];
        answer(call);
    } else {
        go_on_upstream(call);
    }
}

static void list(struct call *call)
{
    struct listing *listing = tasks_list_listing_of(call);
    struct store_task_query query = {
        .owner = str_from(call->owner),
        .session = str_from(call->session),
        .source = str_from(call->source->id),
        /* These clients know nothing of promoted calls, and upstream may have the same ids. */
        .without_promoted = true,
        .behind_sequence = listing->cursor.sequence,
        .limit = PAGE_SIZE,
    };
    bool is_anonymous = strcmp(call->owner, OWNER_ANONYMOUS) == 0;
    if (listing->cursor.upstream || is_anonymous)
        go_on_upstream(call);
    else
        store_task_list(call->worker->gateway->store, &query,
                        call_to_store(call, tasks_list_on_listed));
}

static void verify_list(struct call *call)
{
    credential_check_then(call, list);
}

void tasks_list_handle(struct call *call)
{
    struct listing *listing = memory_alloc(sizeof *listing);
    const struct envelope_member *cursor = &call->envelope.cursor;
    cursor_init(&listing->cursor);
    cursor_init(&listing->next);
    call_part_add(call, &listing->part, &listing_kind);
    if (cursor->raw.length > 0 &&
        (!cursor->text.bytes || !cursor_read(&listing->cursor, cursor->text))) {
        call_answer_error(call, JSONRPC_INVALID_PARAMS, STR("unknown cursor"), NULL);
        return;
    }
    call_with_facts(call, verify_list);
}
