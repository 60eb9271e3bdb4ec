/* Reads the Cookie header strictly, for any page of this host may have added to it. */
#include "cookies.h"

#include <inttypes.h>

#include "taskgate/core/owned.h"

#include "site.h"

/* A browser takes a cookie of this prefix from the host itself alone, by https. */
#define HOST_PREFIX "__Host-"

static const char *const names[] = {
    [COOKIE_SESSION] = "taskgate",
    [COOKIE_ATTEMPT] = "taskgate-sign-in",
};

static bool is_value(struct str value)
{
    for (size_t i = 0; i < value.length; i++) {
        char c = value.bytes[i];
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
            return false;
    }
    return value.length == COOKIE_VALUE_BYTES - 1;
}

/* How often the name is there; `value` is that of the last. */
static size_t cookies_find(struct str header, struct str wanted, struct str *value)
{
    size_t count = 0;
    while (header.length > 0) {
        struct str pair, name, text;
        str_cut(header, ';', &pair, &header);
        if (str_cut(str_trim(pair), '=', &name, &text) && str_equal(name, wanted)) {
            *value = text;
            count++;
        }
    }
    return count;
}

static void cookies_write_name(struct buffer *out, const struct config *config, enum cookie cookie)
{
    if (site_is_https(config))
        buffer_append_text(out, HOST_PREFIX);
    buffer_append_text(out, names[cookie]);
}

bool cookie_read(const struct http_exchange *exchange, const struct config *config,
                 enum cookie cookie, struct str *value)
{
    OWNED_BUFFER(name);
    size_t found = 0, count = http_header_count(exchange);
    cookies_write_name(&name, config, cookie);
    for (size_t i = 0; i < count; i++) {
        struct http_header header = http_header_at(exchange, i);
        if (str_equal(header.name, STR("cookie")))
            found += cookies_find(header.value, buffer_str(&name), value);
    }
    return found == 1 && is_value(*value);
}

void cookie_write(struct buffer *out, const struct config *config, enum cookie cookie,
                  const char *value, int64_t max_age_s)
{
    cookies_write_name(out, config, cookie);
    buffer_append_format(out, "=%s; Path=/; Max-Age=%" PRId64 "; HttpOnly; SameSite=Lax%s", value,
                         max_age_s, site_is_https(config) ? "; Secure" : "");
}
