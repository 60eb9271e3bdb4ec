/* A grant as operators see it. */
#include "grant_json.h"

#include "taskgate/approval/ballot.h"
#include "taskgate/config/duration.h"
#include "taskgate/json/members.h"
#include "taskgate/notify/redact.h"
#include "taskgate/notify/shown.h"

static void grant_json_add_duration(struct buffer *out, const char *key, int64_t ms)
{
    char text[64];
    duration_format(ms, text);
    json_add_text(out, key, text);
}

static void grant_json_add_arguments(struct buffer *out, const struct store_grant *grant,
                                     const struct config *config)
{
    json_add_key(out, "arguments");
    if (*grant->arguments)
        redact_write(out, str_from(grant->arguments), config, grant->workflow);
    else
        buffer_append_text(out, "null");
}

static void add_terms_and_givers(struct buffer *out, const struct store_grant *grant)
{
    struct ballot ballot;
    ballot_read(&ballot, str_from(grant->terms), str_from(grant->votes));
    json_add_key(out, "vary");
    ballot_names_write(out, &ballot.terms.grants.vary);
    json_add_key(out, "givers");
    buffer_append_char(out, '[');
    for (size_t i = 0; i < ballot.votes.count; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        buffer_append_json_string(out, str_from(ballot.votes.items[i].person.name));
    }
    buffer_append_char(out, ']');
    ballot_finish(&ballot);
}

void grant_json_write(struct buffer *out, const struct store_grant *grant,
                      const struct config *config)
{
    bool has_ended = grant->ended_ms > 0;
    buffer_append_char(out, '{');
    json_add_text(out, "id", grant->id);
    json_add_text(out, "state", has_ended ? "ended" : "active");
    json_add_text(out, "task", grant->task_id);
    json_add_text(out, "source", grant->source);
    json_add_text(out, "tool", grant->tool);
    json_add_text(out, "principal", grant->principal);
    json_add_text(out, "principalBy", shown_principal_by(grant->owner));
    json_add_text(out, "workflow", grant->workflow);
    json_add_text_or_null(out, "rule", grant->rule);
    grant_json_add_arguments(out, grant, config);
    add_terms_and_givers(out, grant);
    json_add_text_or_null(out, "reason", grant->reason);
    grant_json_add_duration(out, "for", grant->for_ms);
    json_add_number(out, "calls", grant->calls);
    json_add_number(out, "used", grant->used);
    /* A row that somebody else wrote may have any numbers. */
    bool is_counted = grant->used >= 0 && grant->used <= grant->calls;
    json_add_number(out, "left", has_ended || !is_counted ? 0 : grant->calls - grant->used);
    json_add_time(out, "createdAt", grant->created_ms);
    json_add_time(out, "until", grant->until_ms);
    json_add_time(out, "endedAt", grant->ended_ms);
    json_add_text_or_null(out, "endCause", grant->end_cause);
    json_add_text_or_null(out, "endedBy", grant->ended_by);
    json_add_text_or_null(out, "endReason", grant->end_reason);
    buffer_append_char(out, '}');
}
