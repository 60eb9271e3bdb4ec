/* Headers that could be read in two ways. */
#include "header_check.h"

#include <string.h>

const char *header_check_repeated_header(const struct http_exchange *exchange)
{
    return http_name_text(http_header_repeated(exchange));
}

static bool is_utf8_name(struct str charset)
{
    bool quoted = charset.length >= 2 && str_starts_with(charset, STR("\"")) &&
                  str_ends_with(charset, STR("\""));
    if (quoted)
        charset = str_slice(charset.bytes + 1, charset.length - 2);
    return str_equal_ignore_case(charset, STR("utf-8")) ||
           str_equal_ignore_case(charset, STR("utf8"));
}

/* A quoted parameter may hide another one from a reader that cuts at semicolons, so all quoted ones
 * are refused. */
static bool is_plain_parameter(struct str parameter)
{
    struct str name, value;
    bool has_value = str_cut(parameter, '=', &name, &value);
    name = str_trim(name);
    value = str_trim(value);
    if (name.length >= 7 && str_equal_ignore_case(str_slice(name.bytes, 7), STR("charset")))
        return name.length == 7 && has_value && is_utf8_name(value);
    return parameter.length == 0 || memchr(parameter.bytes, '"', parameter.length) == NULL;
}

bool header_check_is_plain_json(const struct http_exchange *exchange)
{
    struct str coding = http_header_known(exchange, HTTP_NAME_CONTENT_ENCODING);
    struct str type = http_header_known(exchange, HTTP_NAME_CONTENT_TYPE);
    struct str media, parameters;
    if (coding.length == 0 && str_equal(type, STR("application/json")))
        return true; /* as nearly all are */
    str_cut(type, ';', &media, &parameters);
    if (!str_equal_ignore_case(str_trim(media), STR("application/json")))
        return false;
    while (parameters.length > 0) {
        struct str parameter;
        str_cut(parameters, ';', &parameter, &parameters);
        if (!is_plain_parameter(parameter))
            return false;
    }
    return coding.length == 0 || str_equal_ignore_case(str_trim(coding), STR("identity"));
}
