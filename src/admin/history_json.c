/* The outcomes of the other calls of a task's tool. */
#include "history_json.h"

#include <inttypes.h>

#include "taskgate/json/members.h"

static void add_counts(struct buffer *out, const struct store_tally_counts *counts)
{
    buffer_append_format(out,
                         "\"approved\":%" PRId64 ",\"rejected\":%" PRId64 ",\"expired\":%" PRId64
                         ",\"failed\":%" PRId64,
                         counts->approved, counts->rejected, counts->expired, counts->failed);
}

static void add_last(struct buffer *out, const struct store_tally *tally)
{
    if (!tally->has_last) {
        buffer_append_text(out, "null");
        return;
    }
    buffer_append_format(out, "{\"outcome\":\"%s\"", task_state_name(tally->state));
    json_add_time(out, "at", tally->decided_ms);
    json_add_text(out, "person", tally->person);
    json_add_text_or_null(out, "reason", tally->reason);
    buffer_append_char(out, '}');
}

void history_json_add(struct buffer *out, const struct store_tally *tally)
{
    json_add_key(out, "history");
    if (!tally) {
        buffer_append_text(out, "null");
        return;
    }
    buffer_append_format(out, "{\"days\":%d,", STORE_TALLY_DAYS);
    add_counts(out, &tally->all);
    buffer_append_text(out, ",\"caller\":{");
    add_counts(out, &tally->owner);
    buffer_append_text(out, "},\"last\":");
    add_last(out, tally);
    buffer_append_text(out, ",\"same\":");
    if (tally->same_approved > 0) {
        buffer_append_format(out, "{\"approved\":%" PRId64, tally->same_approved);
        json_add_time(out, "at", tally->same_ms);
        buffer_append_text(out, "}}");
    } else {
        buffer_append_text(out, "null}");
    }
}
