/* Reads the JSON body of a request: to any endpoint, and that of a decision. */
#include "body.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/config/duration.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"

#include "reply.h"

bool body_is_json(const struct request *request, bool may_be_missing)
{
    struct str content_type = http_header(request->exchange, "content-type");
    bool is_missing = !content_type.bytes && http_body(request->exchange).length == 0;
    struct str type, parameters;
    str_cut(content_type, ';', &type, &parameters);
    if (str_equal_ignore_case(str_trim(type), STR("application/json")) ||
        (is_missing && may_be_missing))
        return true;
    reply_error(request->exchange, REPLY_UNSUPPORTED_MEDIA_TYPE,
                "the body must be application/json", NULL);
    return false;
}

bool body_key_is(struct str key, const char *name)
{
    return json_string_equals(str_slice(key.bytes - 1, key.length + 2), str_from(name));
}

/* ---- that of a decision ---- */

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

bool decision_body_read_digest(struct str value, char **digest, struct error *error)
{
    size_t length;
    if (json_type(value) == JSON_NULL)
        return true;
    free(*digest);
    *digest = json_string_text(value, &length);
    if (*digest && length == DIGEST_HEX_BYTES - 1 &&
        strspn(*digest, "0123456789abcdefABCDEF") == length) {
        for (char *c = *digest; *c; c++)
            *c = (char)tolower((unsigned char)*c);
        return true;
    }
    return error_set(error, "requestDigest must have 64 hexadecimal digits");
}

bool decision_body_read_typed(struct str value, char **typed, struct error *error)
{
    if (json_type(value) == JSON_NULL)
        return true;
    free(*typed);
    *typed = json_plain_text(value);
    return *typed || error_set(error, "typed must be a string");
}

static bool read_flag(struct str value, bool *flag, struct error *error)
{
    *flag = json_type(value) == JSON_TRUE;
    return *flag || json_type(value) == JSON_FALSE ||
           error_set(error, "emergency must be true or false");
}

static bool decision_body_read_calls(struct str value, int64_t *calls)
{
    uint64_t number;
    if (!str_to_u64(value, &number) || number < 1 || number > INT64_MAX)
        return false;
    *calls = (int64_t)number;
    return true;
}

static bool read_duration(struct str value, int64_t *ms)
{
    struct error ignored;
    size_t length;
    OWNED char *text = json_string_text(value, &length);
    return text && duration_parse(str_slice(text, length), ms, &ignored) && *ms > 0;
}

/* Exactly {"for", "calls"}; behaviour 9.10. */
static bool read_grant(struct str value, struct ballot_wish *grant, struct error *error)
{
    struct str duration = json_member(value, "for"), calls = json_member(value, "calls");
    return (json_type(value) == JSON_OBJECT && json_count(value) == 2 &&
            read_duration(duration, &grant->for_ms) &&
            decision_body_read_calls(calls, &grant->calls)) ||
           error_set(error, "grant must be such as {\"for\": \"1h\", \"calls\": 20}");
}

static bool decision_body_read_arguments(struct str value, char **arguments, struct error *error)
{
    if (json_type(value) != JSON_OBJECT)
        return error_set(error, "arguments must be the whole object of arguments");
    *arguments = memory_copy_str(value);
    return true;
}

/* An unknown member is refused rather than skipped: under a wrong name the reason would be
 * missing from the audit trail for ever. */
static bool read_member(struct str key, struct str value, bool is_approval,
                        struct decision_body *body, struct error *error)
{
    if (body_key_is(key, "reason"))
        return decision_body_read_reason(value, &body->reason, error);
    if (body_key_is(key, "requestDigest"))
        return decision_body_read_digest(value, &body->shown_digest, error);
    if (is_approval && body_key_is(key, "typed"))
        return decision_body_read_typed(value, &body->typed, error);
    if (is_approval && body_key_is(key, "emergency"))
        return read_flag(value, &body->is_emergency, error);
    if (is_approval && body_key_is(key, "grant"))
        return read_grant(value, &body->grant, error);
    if (is_approval && body_key_is(key, "arguments"))
        return decision_body_read_arguments(value, &body->arguments, error);
    return error_set(
        error, "the body has an unknown member; it may have only %s",
        is_approval
            ? "\"reason\", \"requestDigest\", \"typed\", \"emergency\", \"grant\" and \"arguments\""
            : "\"reason\" and \"requestDigest\"");
}

static bool decision_body_read_members(struct str text, bool is_approval,
                                       struct decision_body *body, struct error *error)
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
        if (!read_member(key, value, is_approval, body, error))
            return false;
    }
    return true;
}

bool decision_body_read(const struct request *request, bool is_approval, struct decision_body *body)
{
    struct error error = {""};
    *body = (struct decision_body){.reason = NULL};
    if (!body_is_json(request, true))
        return false;
    if (decision_body_read_members(http_body(request->exchange), is_approval, body, &error))
        return true;
    reply_error(request->exchange, REPLY_INVALID_REQUEST, error.message, NULL);
    free(body->reason);
    free(body->shown_digest);
    free(body->typed);
    free(body->arguments);
    *body = (struct decision_body){.reason = NULL};
    return false;
}
