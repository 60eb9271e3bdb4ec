/* Views. */
#include "dialog.h"

#include "taskgate/json/members.h"

#define REASON_MOST_CHARACTERS 500 /* at most 2,000 bytes, as the API takes */

static void write_context(struct buffer *out, const struct slack_press *press)
{
    buffer_append_char(out, '{');
    json_add_text(out, "task", press->task_id);
    if (press->shown_digest)
        json_add_text(out, "digest", press->shown_digest);
    json_add_text(out, "verb", ballot_verb_name(press->verb));
    json_add_text(out, "channel", press->channel);
    json_add_text(out, "ts", press->ts);
    buffer_append_char(out, '}');
}

static void write_plain(struct buffer *out, const char *key, const char *text)
{
    json_add_key(out, key);
    buffer_append_text(out, "{\"type\":\"plain_text\"");
    json_add_text(out, "text", text);
    buffer_append_char(out, '}');
}

void dialog_write(struct buffer *out, const struct slack_press *press)
{
    const char *verb = press->verb == BALLOT_APPROVE ? "Approve" : "Reject";
    struct buffer context;
    buffer_init(&context);
    write_context(&context, press);
    buffer_append_char(out, '{');
    json_add_text(out, "trigger_id", press->trigger);
    json_add_key(out, "view");
    buffer_append_text(out, "{\"type\":\"modal\",\"callback_id\":\"" DIALOG_CALLBACK "\"");
    json_add_key(out, "private_metadata");
    buffer_append_json_string(out, buffer_str(&context));
    write_plain(out, "title", verb);
    write_plain(out, "submit", verb);
    write_plain(out, "close", "Cancel");
    json_add_key(out, "blocks");
    buffer_append_text(out, "[{\"type\":\"input\",\"block_id\":\"" DIALOG_REASON "\"");
    write_plain(out, "label", "Reason");
    json_add_key(out, "element");
    buffer_append_format(out,
                         "{\"type\":\"plain_text_input\",\"action_id\":\"" DIALOG_REASON
                         "\",\"multiline\":true,\"min_length\":1,\"max_length\":%d}}]}}",
                         REASON_MOST_CHARACTERS);
    buffer_finish(&context);
}

void dialog_write_line(struct buffer *out, const struct slack_press *press, const char *text)
{
    buffer_append_char(out, '{');
    json_add_text(out, "channel", press->channel);
    json_add_text(out, "user", press->user);
    json_add_text(out, "text", text);
    buffer_append_char(out, '}');
}
