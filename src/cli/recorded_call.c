/* From lines and rows to calls. */
#include "recorded_call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/store/history.h"
#include "taskgate/task/recorded_name.h"

#include "consultation.h"
#include "options.h"
#include "store_place.h"
#include "verified_caller.h"

/* ---- common to the log and the trail ---- */

/* Decoded texts of one call; the next call overwrites them. */
struct texts {
    char *items[8];
    size_t count;
};

static void recorded_call_finish_texts(struct texts *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        free(texts->items[i]);
    texts->count = 0;
}

static struct str recorded_call_text_of(struct texts *texts, struct str object, const char *key)
{
    size_t length = 0;
    char *text = json_string_text(json_member(object, key), &length);
    if (!text)
        return STR_EMPTY;
    texts->items[texts->count++] = text;
    return str_slice(text, length);
}

static int64_t recorded_call_number_of(struct str object, const char *key, int64_t otherwise)
{
    uint64_t number;
    bool good = str_to_u64(json_member(object, key), &number) && number <= INT64_MAX;
    return good ? (int64_t)number : otherwise;
}

static struct policy_hints hints_of(struct str annotations)
{
    struct policy_hints hints = {0};
    for (unsigned i = 0; i < HINT_COUNT; i++) {
        enum json_type type =
            json_type(json_member(annotations, policy_hint_name((enum policy_hint)i)));
        if (type == JSON_TRUE || type == JSON_FALSE)
            hints.given |= 1U << i;
        if (type == JSON_TRUE)
            hints.truth |= 1U << i;
    }
    return hints;
}

/* False if the object has no decision or no tool. */
static bool recorded_call_read_decision(struct recorded_call *call, struct texts *texts,
                                        struct verified_caller *caller, struct str object)
{
    struct str outcome = recorded_call_text_of(texts, object, "outcome");
    call->tool = recorded_call_text_of(texts, object, "tool");
    call->source = recorded_call_text_of(texts, object, "source");
    call->workflow = recorded_call_text_of(texts, object, "workflow");
    call->rule = recorded_call_text_of(texts, object, "rule");
    call->rule_index = recorded_call_number_of(object, "rule_index", -1);
    call->unknown = UNKNOWN_ARGUMENTS;
    if (json_type(json_member(object, "principal")) == JSON_STRING) {
        call->principal.owner = recorded_call_text_of(texts, object, "principal");
        call->principal.client_name = recorded_call_text_of(texts, object, "client_name");
        call->principal.client_version = recorded_call_text_of(texts, object, "client_version");
        call->hints = hints_of(json_member(object, "annotations"));
        call->verified = verified_caller_read(caller, object);
    } else {
        call->unknown |= UNKNOWN_CALLER;
    }
    bool is_named = call->tool.length && call->tool.length <= RECORDED_NAME_BYTES_MAX;
    return is_named && call->source.length && verdict_outcome_parse(outcome, &call->outcome);
}

static void recorded_call_pass_on(struct recorded_calls *calls, struct recorded_call *call,
                                  struct str decision)
{
    struct texts texts = {.count = 0};
    struct verified_caller caller = {.subject = NULL};
    struct str arguments = call->arguments;
    if (!recorded_call_read_decision(call, &texts, &caller, decision)) {
        calls->unnamed += call->calls;
    } else {
        if (arguments.length)
            call->unknown &= ~(unsigned)UNKNOWN_ARGUMENTS;
        calls->visit(calls->context, call);
    }
    recorded_call_finish_texts(&texts);
    verified_caller_finish(&caller);
}

/* ---- the log ---- */

static const struct {
    struct str message;
    const char *decision; /* member that has it; NULL: the line itself */
} lines[] = {
    {STR(RECORDED_CALLS), NULL},
    {STR(RECORDED_CALL), NULL},
    {STR(RECORDED_TASK), "decision"},
};

static bool recorded_call_read_time(struct str line, int64_t *at_ms)
{
    char *text = json_string_text(json_member(line, "time"), NULL);
    bool good = text && consultation_read_time(text, at_ms);
    free(text);
    return good;
}

/* Whether the gateway wrote the line. Other lines may stand between: output before the log is open,
 * and lines of a collector. */
static bool read_line(struct recorded_calls *calls, struct str line, size_t number)
{
    struct recorded_call call = {.line = number};
    if (json_type(line) != JSON_OBJECT || !json_check(line, NULL) ||
        !recorded_call_read_time(line, &call.at_ms))
        return false;
    struct str message = json_member(line, "msg");
    if (call.at_ms < calls->since_ms)
        return true;
    call.calls = recorded_call_number_of(line, "calls", 1);
    if (json_string_equals(message, STR(RECORDED_OTHERS)))
        calls->unnamed += call.calls;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct str decision = lines[i].decision ? json_member(line, lines[i].decision) : line;
        if (!json_string_equals(message, lines[i].message) || json_type(decision) != JSON_OBJECT)
            continue; /* a task without a decision: another line has its call */
        char *id = json_string_text(json_member(line, "task"), NULL);
        call.id = str_from(id);
        recorded_call_pass_on(calls, &call, decision);
        free(id);
    }
    return true;
}

bool recorded_calls_read_log(const char *path, struct recorded_calls *calls)
{
    bool is_input = strcmp(path, "-") == 0, any = false;
    FILE *file = is_input ? stdin : fopen(path, "re");
    char *line = NULL;
    size_t capacity = 0, number = 0;
    ssize_t length = 0;
    if (!file) {
        options_complain("%s cannot be read: %s", path, strerror(errno));
        return false;
    }
    errno = 0;
    while ((length = getline(&line, &capacity, file)) >= 0)
        any = read_line(calls, str_trim(str_slice(line, (size_t)length)), ++number) || any;
    bool failed = ferror(file);
    if (failed)
        options_complain("%s cannot be read: %s", path, strerror(errno));
    else if (!any)
        options_complain("%s has no line of the gateway's log", path);
    free(line);
    if (!is_input)
        fclose(file);
    return any && !failed;
}

/* ---- the store ---- */

static bool recorded_call_visit_row(void *context, const struct store_history_call *row)
{
    struct recorded_call call = {.id = row->task_id, .calls = 1, .at_ms = row->at_ms};
    if (row->has_arguments && json_check(row->arguments, NULL))
        call.arguments = row->arguments;
    recorded_call_pass_on(context, &call,
                          json_check(row->decision, NULL) ? row->decision : STR_EMPTY);
    return true;
}

bool recorded_calls_read_store(const char *place, struct recorded_calls *calls)
{
    struct error error = {""};
    const struct store_site site = store_place_site(place);
    if (store_history_read(&site, calls->since_ms, recorded_call_visit_row, calls, &error))
        return true;
    options_complain("%s", error.message);
    return false;
}
