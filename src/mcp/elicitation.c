/* The form of a question, and the permitted answers. */
#include "taskgate/mcp/elicitation.h"

#include "taskgate/json/text.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static const char *const actions[] = {"accept", "decline", "cancel"};

const char *elicitation_action_name(enum elicitation_action action)
{
    return actions[action];
}

bool elicitation_action_parse(struct str value, enum elicitation_action *action)
{
    for (size_t i = 0; i < COUNT_OF(actions); i++) {
        if (json_string_equals(value, str_from(actions[i]))) {
            *action = (enum elicitation_action)i;
            return true;
        }
    }
    return false;
}

bool elicitation_is_url(struct str params)
{
    return json_string_equals(json_member(params, "mode"), STR("url"));
}

static bool has_text(struct str params, const char *key, struct error *error)
{
    return json_type(json_member(params, key)) == JSON_STRING ||
           error_set(error, "params.%s must be a string", key);
}

bool elicitation_check_request(struct str params, struct error *error)
{
    struct str mode = json_member(params, "mode");
    if (json_type(params) != JSON_OBJECT)
        return error_set(error, "params must be an object");
    if (!has_text(params, "message", error))
        return false;
    if (elicitation_is_url(params))
        return has_text(params, "url", error) && has_text(params, "elicitationId", error);
    if (mode.length > 0 && !json_string_equals(mode, STR("form")))
        return error_set(error, "params.mode must be form or url");
    return json_type(json_member(params, "requestedSchema")) == JSON_OBJECT ||
           error_set(error, "params.requestedSchema must be an object");
}
