/* Checks a server's request for a message of a model. */
#include "taskgate/mcp/sampling.h"

#include "taskgate/json/text.h"

static bool is_message(struct str message)
{
    struct str role = json_member(message, "role");
    enum json_type content = json_type(json_member(message, "content"));
    return (json_string_equals(role, STR("user")) || json_string_equals(role, STR("assistant"))) &&
           (content == JSON_OBJECT || content == JSON_ARRAY);
}

bool sampling_check_request(struct str params, struct error *error)
{
    struct str messages = json_member(params, "messages"), message;
    size_t position = 0;
    if (json_type(params) != JSON_OBJECT)
        return error_set(error, "params must be an object");
    if (json_type(messages) != JSON_ARRAY)
        return error_set(error, "params.messages must be an array");
    while (json_next_element(messages, &position, &message)) {
        if (!is_message(message))
            return error_set(error, "each of params.messages must have a role and content");
    }
    return json_type(json_member(params, "maxTokens")) == JSON_NUMBER ||
           error_set(error, "params.maxTokens must be a number");
}
