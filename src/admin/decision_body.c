/* Reads the body of a decision. */
#include "decision_body.h"

#include <stdlib.h>

#include "taskgate/json/text.h"

#include "body.h"
#include "reply.h"

#define REASON_MAX_BYTES 2000

bool decision_body_read_reason(struct str value, char **reason, struct error *error)
{
    size_t length;
    if (json_type(value) == JSON_NULL)
        return true;
    *reason = json_string_text(value, &length);
    if (!*reason)
        return error_set(error, "reason must be a string");
    if (length > REASON_MAX_BYTES)
        return error_set(error, "reason is longer than %d bytes", REASON_MAX_BYTES);
    if (str_from(*reason).length != length)
        return error_set(error, "reason holds a NUL character");
    return true;
}

static bool read_flag(struct str value, bool *flag, struct error *error)
{
    *flag = json_type(value) == JSON_TRUE;
    return *flag || json_type(value) == JSON_FALSE ||
           error_set(error, "emergency must be true or false");
}

/* An unknown member is refused rather than skipped: under a wrong name the reason would be
 * missing from the audit trail for ever. */
static bool read_members(struct str text, bool takes_emergency, struct decision_body *body,
                         struct error *error)
{
    struct error cause;
    size_t position = 0;
    struct str key, value;
    if (str_trim(text).length == 0)
        return true;
    if (!json_check(text, &cause))
        return error_set(error, "the body is not JSON: %s", cause.message);
    if (json_type(text) != JSON_OBJECT)
        return error_set(error, "the body must be an object, such as {\"reason\": \"…\"}");
    while (json_next_member(text, &position, &key, &value)) {
        bool is_good;
        if (body_key_is(key, "reason"))
            is_good = decision_body_read_reason(value, &body->reason, error);
        else if (takes_emergency && body_key_is(key, "emergency"))
            is_good = read_flag(value, &body->is_emergency, error);
        else
            is_good = error_set(error, "the body has an unknown member; it may have only %s",
                                takes_emergency ? "\"reason\" and \"emergency\"" : "\"reason\"");
        if (!is_good)
            return false;
    }
    return true;
}

bool decision_body_read(const struct request *request, bool takes_emergency,
                        struct decision_body *body)
{
    struct error error = {""};
    *body = (struct decision_body){NULL, false};
    if (!body_is_json(request, true))
        return false;
    if (read_members(http_body(request->exchange), takes_emergency, body, &error))
        return true;
    reply_error(request->exchange, REPLY_INVALID_REQUEST, error.message, NULL);
    free(body->reason);
    body->reason = NULL;
    return false;
}
