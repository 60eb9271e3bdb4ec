/* Rewrites one response. */
#include "relay_rewrite.h"

#include <string.h>

#include "taskgate/json/text.h"

bool relay_rewrites(const struct relay_options *options)
{
    return options->rewrite || options->replace_error || options->replace_result;
}

bool relay_may_take(const struct relay_options *options, struct str bytes)
{
    return options->take_message && bytes.length > 0 &&
           (options->takes_responses || memmem(bytes.bytes, bytes.length, "\"method\"", 8) != NULL);
}

/* A result shows that the server has accepted the session and the token. An error shows nothing,
 * whatever its HTTP status, and neither does an open stream. `initialize` has no session yet; its
 * own file notes what its result shows. */
static void note_acceptance(struct call *call)
{
    bool is_request = call->envelope.kind == ENVELOPE_REQUEST && call->method;
    if (call->identified && is_request && call->method->treatment != MCP_INITIALIZE)
        call_note_acceptance(call, str_from(call->session));
}

/* Checks the message. */
static bool read_reply(const struct relay_options *options, struct str message,
                       struct relay_reply *reply, struct str *error)
{
    static const char *const keys[] = {"error", "id", "result"};
    const char *const list_keys[] = {options->list, "nextCursor"};
    struct str values[3], list[2] = {STR_EMPTY, STR_EMPTY};
    const struct json_wanted inner = {list_keys, 2, list, 0, NULL},
                             wanted = {keys, 3, values, 2, options->list ? &inner : NULL};
    if (!json_check_members(message, &wanted))
        return false;
    *error = values[0];
    *reply = (struct relay_reply){message, values[1], values[2], list[0], list[1]};
    return true;
}

bool relay_rewrite(struct call *call, const struct relay_options *options, struct str message,
                   struct buffer *out)
{
    struct relay_reply reply;
    struct str error;
    if (options->recall && options->recall(call, message, out)) {
        note_acceptance(call);
        return true;
    }
    if (!read_reply(options, message, &reply, &error))
        return false;
    bool has_our_id = str_equal(reply.id, call->envelope.id);
    if (reply.result.length == 0)
        return has_our_id && error.length > 0 && options->replace_error &&
               options->replace_error(call, error, out);
    if (options->replace_result && options->replace_result(call, &reply, out)) {
        note_acceptance(call);
        return true;
    }
    /* The server may spell our id otherwise. A reply with another request's id was refused before.
     */
    if (!options->rewrite) {
        if (has_our_id) {
            note_acceptance(call);
            buffer_append(out, message);
        }
        return has_our_id;
    }
    note_acceptance(call);
    size_t at = str_offset(message, reply.result), behind = at + reply.result.length;
    buffer_append(out, str_slice(message.bytes, at));
    options->rewrite(call, &reply, out);
    buffer_append(out, str_slice(message.bytes + behind, message.length - behind));
    return true;
}
