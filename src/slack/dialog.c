/* Views. */
#include "dialog.h"

#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"

#define TYPED_MOST_CHARACTERS_SENT 200
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

static void write_input(struct buffer *out, const char *name, const char *label, bool is_long,
                        int most)
{
    if (out->bytes[out->length - 1] != '[')
        buffer_append_char(out, ',');
    buffer_append_format(out, "{\"type\":\"input\",\"block_id\":\"%s\"", name);
    write_plain(out, "label", label);
    json_add_key(out, "element");
    buffer_append_format(out,
                         "{\"type\":\"plain_text_input\",\"action_id\":\"%s\",\"multiline\":%s,"
                         "\"min_length\":1,\"max_length\":%d}}",
                         name, is_long ? "true" : "false", most);
}

void dialog_write(struct buffer *out, const struct slack_press *press,
                  const struct slack_asked *asked)
{
    const char *verb = press->verb == BALLOT_APPROVE ? "Approve" : "Reject";
    OWNED_BUFFER(context);
    write_context(&context, press);
    buffer_append_char(out, '{');
    json_add_text(out, "trigger_id", press->trigger);
    json_add_key(out, "view");
    buffer_append_text(out, "{\"type\":\"modal\",\"callback_id\":\"" DIALOG_CALLBACK "\"");
    json_add_str(out, "private_metadata", buffer_str(&context));
    write_plain(out, "title", verb);
    write_plain(out, "submit", verb);
    write_plain(out, "close", "Cancel");
    json_add_key(out, "blocks");
    buffer_append_char(out, '[');
    if (asked->typed)
        write_input(out, DIALOG_TYPED, asked->typed, false, TYPED_MOST_CHARACTERS_SENT);
    if (asked->reason)
        write_input(out, DIALOG_REASON, "Reason", true, REASON_MOST_CHARACTERS);
    buffer_append_text(out, "]}}");
}

void dialog_write_line(struct buffer *out, const char *channel, const char *user,
                       const char *thread, const char *text)
{
    buffer_append_char(out, '{');
    json_add_text(out, "channel", channel);
    json_add_text(out, "user", user);
    if (thread)
        json_add_text(out, "thread_ts", thread);
    json_add_text(out, "text", text);
    buffer_append_char(out, '}');
}
