/* The little of RFC 9110 §12.5 that two formats and one coding need: names and their weights. */
#include "accept.h"

/* Thousandths: "1" is 1000, "0.25" is 250; a malformed weight counts as 1000. */
static unsigned parse_weight(struct str text)
{
    unsigned weight = 0, place = 1000;
    for (size_t i = 0; i < text.length && place > 0; i++) {
        char c = text.bytes[i];
        if (i == 1 && c == '.')
            continue;
        if (c < '0' || c > '9')
            return 1000;
        weight += (unsigned)(c - '0') * place;
        place /= 10;
    }
    return text.length == 0 || weight > 1000 ? 1000 : weight;
}

static unsigned weight_of(struct str parameters)
{
    struct str parameter, name, value;
    while (parameters.length > 0) {
        str_cut(parameters, ';', &parameter, &parameters);
        str_cut(str_trim(parameter), '=', &name, &value);
        if (str_equal_ignore_case(name, STR("q")))
            return parse_weight(value);
    }
    return 1000;
}

bool accept_open_metrics(struct str accept)
{
    unsigned open_metrics = 0, text = 0;
    while (accept.length > 0) {
        struct str item, type, parameters;
        str_cut(accept, ',', &item, &accept);
        str_cut(item, ';', &type, &parameters);
        unsigned weight = weight_of(parameters);
        if (str_equal_ignore_case(str_trim(type), STR("application/openmetrics-text")))
            open_metrics = weight > open_metrics ? weight : open_metrics;
        else if (str_equal_ignore_case(str_trim(type), STR("text/plain")))
            text = weight > text ? weight : text;
    }
    return open_metrics > 0 && open_metrics >= text;
}

bool accept_gzip(struct str accept_encoding)
{
    bool is_named = false, is_allowed = false;
    while (accept_encoding.length > 0) {
        struct str item, coding, parameters;
        str_cut(accept_encoding, ',', &item, &accept_encoding);
        str_cut(item, ';', &coding, &parameters);
        bool is_gzip = str_equal_ignore_case(str_trim(coding), STR("gzip"));
        /* The asterisk means those that are not named. */
        if (is_gzip || (!is_named && str_equal(str_trim(coding), STR("*"))))
            is_allowed = weight_of(parameters) > 0;
        is_named = is_named || is_gzip;
    }
    return is_allowed;
}
