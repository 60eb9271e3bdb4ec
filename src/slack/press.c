/* From a signed form to a press. */
#include "taskgate/slack/press.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/digest.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/notify/slack_posted.h"

#define WINDOW_S (SLACK_PRESS_WINDOW_MS / 1000)

/* ---- the signature ---- */

bool slack_press_is_signed(struct str secret, struct str timestamp, struct str signature,
                           struct str body, int64_t now_ms)
{
    char hex[DIGEST_HEX_BYTES], expected[3 + DIGEST_HEX_BYTES];
    OWNED_BUFFER(text);
    uint64_t seconds;
    if (!str_to_u64(timestamp, &seconds) || seconds > INT64_MAX / 1000)
        return false;
    int64_t age_s = now_ms / 1000 - (int64_t)seconds;
    if (age_s > WINDOW_S || age_s < -WINDOW_S)
        return false;
    buffer_append_format(&text, "v0:%.*s:", STR_ARGS(timestamp));
    buffer_append(&text, body);
    digest_hmac_sha256_hex(secret, buffer_str(&text), hex);
    str_join(expected, sizeof expected, STR("v0="), str_from(hex));
    return str_equal_constant_time(signature, str_from(expected));
}

/* ---- the form ---- */

/* The only field that Slack sends. */
static bool find_payload(struct str form, struct buffer *payload)
{
    struct str field, name, value;
    while (form.length > 0) {
        str_cut(form, '&', &field, &form);
        str_cut(field, '=', &name, &value);
        if (str_equal(name, STR("payload")))
            return buffer_append_url_decoded(payload, value);
    }
    return false;
}

/* ---- the payload ---- */

static void press_read_verb(struct slack_press *press, struct str value, const char *approve,
                            const char *reject)
{
    if (json_string_equals(value, str_from(approve)))
        press->verb = BALLOT_APPROVE;
    else if (json_string_equals(value, str_from(reject)))
        press->verb = BALLOT_REJECT;
    else
        press->kind = SLACK_PRESS_OTHER;
}

/* "ID DIGEST", or "ID" alone, of a message of an older version. */
static void press_read_value(struct slack_press *press, struct str value)
{
    struct str id, digest;
    OWNED char *text = json_plain_text(value);
    if (!text)
        return;
    str_cut(str_from(text), ' ', &id, &digest);
    press->task_id = memory_copy_str(id);
    press->shown_digest = digest.length > 0 ? memory_copy_str(digest) : NULL;
}

static void read_button(struct slack_press *press, struct str payload)
{
    size_t position = 0;
    struct str action;
    if (!json_next_element(json_member(payload, "actions"), &position, &action))
        return;
    press->kind = SLACK_PRESS_BUTTON;
    press->channel = json_plain_text(json_path(payload, "container", "channel_id"));
    press->ts = json_plain_text(json_path(payload, "container", "message_ts"));
    press->bot = json_plain_text(json_path(payload, "message", "bot_id"));
    press_read_value(press, json_member(action, "value"));
    press->trigger = json_plain_text(json_member(payload, "trigger_id"));
    press_read_verb(press, json_member(action, "action_id"), SLACK_ACTION_APPROVE,
                    SLACK_ACTION_REJECT);
}

/* The context that the dialog was opened with comes back as it was, under Slack's signature. */
static void read_dialog(struct slack_press *press, struct str payload)
{
    struct str view = json_member(payload, "view");
    OWNED char *kept = json_plain_text(json_member(view, "private_metadata"));
    struct str context = str_from(kept);
    if (json_string_equals(json_member(view, "callback_id"), STR(DIALOG_CALLBACK)) &&
        json_check(context, NULL)) {
        press->kind = SLACK_PRESS_DIALOG;
        press->channel = json_plain_text(json_member(context, "channel"));
        press->ts = json_plain_text(json_member(context, "ts"));
        press->task_id = json_plain_text(json_member(context, "task"));
        press->shown_digest = json_plain_text(json_member(context, "digest"));
        press->reason = json_plain_text(
            json_path(view, "state", "values", DIALOG_REASON, DIALOG_REASON, "value"));
        press->typed = json_plain_text(
            json_path(view, "state", "values", DIALOG_TYPED, DIALOG_TYPED, "value"));
        press_read_verb(press, json_member(context, "verb"), "approve", "reject");
    }
}

static bool press_is_whole(const struct slack_press *press)
{
    return press->kind == SLACK_PRESS_OTHER ||
           (press->team && press->user && press->channel && press->ts && press->task_id);
}

bool slack_press_read(struct slack_press *press, struct str form, struct error *error)
{
    OWNED_BUFFER(text);
    struct error cause = {""};
    bool is_good = false;
    *press = (struct slack_press){.kind = SLACK_PRESS_OTHER};
    bool is_form = find_payload(form, &text);
    struct str payload = buffer_str(&text);
    if (!is_form) {
        error_set(error, "the body must be a form with the field payload");
    } else if (!json_check(payload, &cause)) {
        error_set(error, "the payload is not JSON: %s", cause.message);
    } else {
        struct str type = json_member(payload, "type");
        press->team = json_plain_text(json_path(payload, "team", "id"));
        press->user = json_plain_text(json_path(payload, "user", "id"));
        press->app = json_plain_text(json_member(payload, "api_app_id"));
        if (json_string_equals(type, STR("block_actions")))
            read_button(press, payload);
        else if (json_string_equals(type, STR("view_submission")))
            read_dialog(press, payload);
        is_good = press_is_whole(press) || error_set(error, "the payload lacks a member");
    }
    if (!is_good)
        slack_press_finish(press);
    return is_good;
}

void slack_press_finish(struct slack_press *press)
{
    free(press->team);
    free(press->app);
    free(press->user);
    free(press->bot);
    free(press->channel);
    free(press->ts);
    free(press->task_id);
    free(press->shown_digest);
    free(press->trigger);
    free(press->reason);
    free(press->typed);
    *press = (struct slack_press){.kind = SLACK_PRESS_OTHER};
}
