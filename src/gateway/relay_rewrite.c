/* Rewriting one response. */
#include "relay_rewrite.h"

#include "taskgate/json/text.h"

bool relay_rewrites(const struct relay_options *options)
{
    return options->rewrite || options->replace_error;
}

bool relay_rewrite(struct call *call, const struct relay_options *options, struct str message,
                   struct buffer *out)
{
    if (!json_check(message, NULL) || json_type(message) != JSON_OBJECT)
        return false;
    struct str result = json_member(message, "result"), error = json_member(message, "error");
    if (!str_equal(json_member(message, "id"), call->envelope.id))
        return false;
    if (result.length == 0)
        return error.length > 0 && options->replace_error &&
               options->replace_error(call, error, out);
    if (!options->rewrite) {
        buffer_append(out, message);
        return true;
    }
    struct buffer rewritten;
    buffer_init(&rewritten);
    options->rewrite(call, result, &rewritten);
    json_write_with_member(out, message, "result", buffer_str(&rewritten));
    buffer_finish(&rewritten);
    return true;
}
