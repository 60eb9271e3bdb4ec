/* Rewrites one response. */
#include "relay_rewrite.h"

#include <string.h>

#include "taskgate/json/text.h"

bool relay_rewrites(const struct relay_options *options)
{
    return options->rewrite || options->replace_error;
}

bool relay_may_take(const struct relay_options *options, struct str bytes)
{
    return options->take_message && bytes.length > 0 &&
           memmem(bytes.bytes, bytes.length, "\"method\"", 8) != NULL;
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

bool relay_rewrite(struct call *call, const struct relay_options *options, struct str message,
                   struct buffer *out)
{
    if (!json_check(message, NULL) || json_type(message) != JSON_OBJECT)
        return false;
    struct str result = json_member(message, "result"), error = json_member(message, "error");
    bool has_our_id = str_equal(json_member(message, "id"), call->envelope.id);
    if (result.length == 0)
        return has_our_id && error.length > 0 && options->replace_error &&
               options->replace_error(call, error, out);
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
    struct buffer rewritten;
    buffer_init(&rewritten);
    options->rewrite(call, result, &rewritten);
    json_write_with_member(out, message, "result", buffer_str(&rewritten));
    buffer_finish(&rewritten);
    return true;
}
