/* Reads the JSON body of a request to any endpoint. */
#include "body.h"

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
