/* The required form of single values. */
#include "checks.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/config/glob.h"
#include "taskgate/config/secure_url.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

static bool is_alphanumeric(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Whether all of `text` is letters, digits or one of `others`. */
static bool consists_of(struct str text, const char *others)
{
    for (size_t i = 0; i < text.length; i++) {
        if (!is_alphanumeric(text.bytes[i]) && !strchr(others, text.bytes[i]))
            return false;
    }
    return true;
}

static bool has_space_or_control(struct str text)
{
    for (size_t i = 0; i < text.length; i++) {
        if ((unsigned char)text.bytes[i] <= ' ' || text.bytes[i] == 0x7F)
            return true;
    }
    return false;
}

bool check_not_empty(struct str text, struct error *error)
{
    return str_trim(text).length > 0 || error_set(error, "must not be empty");
}

bool check_name(struct str text, struct error *error)
{
    for (size_t i = 0; i < text.length; i++) {
        if ((unsigned char)text.bytes[i] < ' ' || text.bytes[i] == 0x7F)
            return error_set(error, "the name holds a control character");
    }
    if (text.length > 0 && str_trim(text).length < text.length)
        return error_set(error, "the name begins or ends with white space");
    return check_not_empty(text, error);
}

bool check_certificate_subject(struct str text, struct error *error)
{
    if (!check_name(text, error))
        return false;
    if (text.bytes[0] == '/')
        return error_set(error, "begins with a slash; write it as CN=alice,O=Example");
    if (!memchr(text.bytes, '=', text.length))
        return error_set(error, "is not the subject of a certificate, such as CN=alice");
    for (size_t i = 1; i + 1 < text.length; i++) {
        if (text.bytes[i] == ',' && text.bytes[i - 1] != '\\' && text.bytes[i + 1] == ' ')
            return error_set(error, "has a blank after a comma; write it as CN=alice,O=Example");
    }
    return true;
}

bool check_glob(struct str text, struct error *error)
{
    if (text.length == 0)
        return error_set(error, "the pattern is empty");
    struct glob *glob = glob_compile(text, error);
    glob_destroy(glob);
    return glob != NULL;
}

bool check_source_id(struct str text, struct error *error)
{
    bool is_dots = str_equal(text, STR(".")) || str_equal(text, STR(".."));
    if (text.length && !is_dots && consists_of(text, "._-"))
        return true;
    return error_set(error, "a source ID is letters, digits, \".\", \"_\" and \"-\"");
}

/* host, host:port, [v6] or [v6]:port. */
static bool is_authority(struct str text)
{
    struct str host = text, port = STR_EMPTY;
    bool has_port;
    uint64_t number = 1;
    if (str_starts_with(text, STR("["))) {
        struct str inside, after;
        if (!str_cut(str_slice(text.bytes + 1, text.length - 1), ']', &inside, &after))
            return false;
        unsigned char address[16];
        char *name = memory_copy_str(inside);
        bool is_v6 = inet_pton(AF_INET6, name, address) == 1;
        free(name);
        has_port = str_starts_with(after, STR(":"));
        if (!is_v6 || (after.length && !has_port))
            return false;
        port = has_port ? str_slice(after.bytes + 1, after.length - 1) : STR_EMPTY;
    } else {
        has_port = str_cut(text, ':', &host, &port);
        if (host.length == 0 || !consists_of(host, ".-_"))
            return false;
    }
    return !has_port || (str_to_u64(port, &number) && number >= 1 && number <= 65535);
}

bool check_slack_id(struct str text, struct error *error)
{
    bool is_good = text.length > 1 && strchr("UWS", text.bytes[0]) != NULL;
    for (size_t i = 0; i < text.length; i++) {
        char c = text.bytes[i];
        is_good = is_good && ((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'));
    }
    return is_good || error_set(error, "this is no id of Slack's, such as U012ABCDEF");
}

bool check_slack_user(struct str text, struct error *error)
{
    if (str_starts_with(text, STR("S")))
        return error_set(error, "this is the id of a group in Slack, not of a person");
    return check_slack_id(text, error);
}

bool check_url(struct str text, struct error *error)
{
    struct str rest, authority, path, user, host;
    if (has_space_or_control(text))
        return error_set(error, "the URL holds white space or a control character");
    if (str_starts_with(text, STR("http://")))
        rest = str_slice(text.bytes + 7, text.length - 7);
    else if (str_starts_with(text, STR("https://")))
        rest = str_slice(text.bytes + 8, text.length - 8);
    else
        return error_set(error, "the URL must begin with http:// or https://");
    size_t end = 0;
    while (end < rest.length && !strchr("/?#", rest.bytes[end]))
        end++;
    authority = str_slice(rest.bytes, end);
    path = str_slice(rest.bytes + end, rest.length - end);
    if (memchr(path.bytes ? path.bytes : "", '#', path.length))
        return error_set(error, "the URL has a fragment (\"#…\"), which no server gets");
    if (!str_cut(authority, '@', &user, &host))
        host = authority;
    return is_authority(host) || error_set(error, "the URL has no valid host and port");
}

bool check_endpoint(struct str text, struct error *error)
{
    struct str scheme, host;
    bool is_mail = str_starts_with(text, STR("smtp:")) || str_starts_with(text, STR("smtps:"));
    if (!is_mail)
        return check_url(text, error);
    str_cut(text, ':', &scheme, &host);
    if (str_starts_with(host, STR("//")))
        host = str_slice(host.bytes + 2, host.length - 2);
    return is_authority(host) ||
           error_set(error, "write it as smtp://HOST:PORT or smtps://HOST:PORT, without a path; "
                            "user and password_env are keys of their own");
}

bool check_mail_address(struct str text, struct error *error)
{
    struct str local, domain;
    bool is_good = text.length <= 254 && str_cut(text, '@', &local, &domain) && local.length > 0 &&
                   local.length <= 64 && consists_of(local, "!#$%&'*+-/=?^_`{|}~.") &&
                   domain.length > 0 && consists_of(domain, "-.");
    return is_good || error_set(error, "this is no mail address, such as dba@example.com");
}

bool check_issuer(struct str text, struct error *error)
{
    if (!secure_url_check(text, error))
        return false;
    return !memchr(text.bytes, '?', text.length) || error_set(error, "an issuer has no query");
}

bool check_base_url(struct str text, struct error *error)
{
    if (!secure_url_check(text, error))
        return false;
    return !memchr(text.bytes, '?', text.length) || error_set(error, "the URL has a query");
}

bool check_scope(struct str text, struct error *error)
{
    for (size_t i = 0; i < text.length; i++) {
        char c = text.bytes[i];
        if (c <= ' ' || c >= 0x7F || c == '"' || c == '\\')
            return error_set(error, "a scope has no white space, quotes or backslashes");
    }
    return check_not_empty(text, error);
}

bool check_address(struct str text, struct error *error)
{
    unsigned char address[16];
    OWNED char *name = memory_copy_str(text);
    bool is_address =
        inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
    return is_address ||
           error_set(error,
                     "this is no IP address to listen on, such as 127.0.0.1, 0.0.0.0 or ::1");
}

/* host:port or [v6]:port; the port may be missing in an authority otherwise. */
static bool has_port(struct str text)
{
    size_t digits = 0;
    while (digits < text.length && text.bytes[text.length - digits - 1] >= '0' &&
           text.bytes[text.length - digits - 1] <= '9')
        digits++;
    return digits > 0 && digits < text.length && text.bytes[text.length - digits - 1] == ':';
}

bool check_listen_address(struct str text, struct error *error)
{
    struct str host = text;
    if (is_authority(text) && has_port(text)) {
        while (host.bytes[host.length - 1] != ':')
            host.length--;
        host.length--;
        if (str_starts_with(host, STR("[")) || str_equal(host, STR("localhost")) ||
            check_address(host, error))
            return true;
    }
    return error_set(error, "this is no address and port to listen on, such as 0.0.0.0:7471");
}

bool check_replica_address(struct str text, struct error *error)
{
    struct str scheme = STR("http://");
    struct str authority = str_starts_with(text, scheme)
                               ? str_slice(text.bytes + scheme.length, text.length - scheme.length)
                               : STR_EMPTY;
    return (is_authority(authority) && has_port(authority)) ||
           error_set(error, "write it as http://HOST:PORT, without a path");
}

bool check_replica_id(struct str text, struct error *error)
{
    bool is_good = text.length > 0 && text.length <= 128;
    for (size_t i = 0; is_good && i < text.length; i++)
        is_good = text.bytes[i] > ' ' && text.bytes[i] < 0x7F;
    return is_good || error_set(error, "a replica's name is up to 128 visible ASCII characters "
                                       "without blanks");
}

bool check_host(struct str text, struct error *error)
{
    return is_authority(text) ||
           error_set(error, "this is no host as clients send it, such as gateway.example:7467");
}

bool check_origin(struct str text, struct error *error)
{
    struct str scheme, rest = STR_EMPTY;
    bool has_scheme = str_cut(text, ':', &scheme, &rest) && scheme.length &&
                      consists_of(scheme, "+-.") && str_starts_with(rest, STR("//"));
    if (has_scheme && is_authority(str_slice(rest.bytes + 2, rest.length - 2)))
        return true;
    return error_set(error, "this is no origin, such as https://app.example");
}

bool check_header_name(struct str text, struct error *error)
{
    static const struct str reserved[] = {
        STR("Host"),
        STR("Content-Length"),
        STR("Transfer-Encoding"),
        STR("Connection"),
        STR("Upgrade"),
        STR("TE"),
        STR("Trailer"),
        STR("Keep-Alive"),
        STR("Content-Type"),
        STR("Accept"),
        STR("Accept-Encoding"),
        STR("Mcp-Session-Id"),
        STR("MCP-Protocol-Version"),
        STR("Last-Event-ID"),
        STR("Proxy-Connection"),
        STR("Expect"),
    };
    if (text.length == 0 || !consists_of(text, "!#$%&'*+-.^_`|~"))
        return error_set(error, "this is no name of an HTTP header");
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
        if (str_equal_ignore_case(text, reserved[i]))
            return error_set(error, "the gateway itself sets this header");
    }
    return true;
}

bool check_header_value(struct str text, struct error *error)
{
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.bytes[i];
        if ((c < ' ' && c != '\t') || c == 0x7F)
            return error_set(error, "the value holds a line break or another control character");
    }
    if (str_trim(text).length != text.length || text.length == 0)
        return error_set(error, "the value is empty, or has white space around it");
    return true;
}

bool check_sha256(struct str text, struct error *error)
{
    bool is_hex = text.length == 64;
    for (size_t i = 0; is_hex && i < text.length; i++)
        is_hex = strchr("0123456789abcdefABCDEF", text.bytes[i]) != NULL;
    return is_hex || error_set(error, "a SHA-256 digest is 64 hexadecimal digits");
}

bool check_dot_path(struct str text, struct error *error)
{
    struct str part, rest = text;
    bool has_more;
    do {
        has_more = str_cut(rest, '.', &part, &rest);
        if (part.length == 0)
            return error_set(error, "a path is names joined by \".\", such as card.number");
    } while (has_more);
    return true;
}

/* Clients take names of up to 64 bytes, and put names of their own before ours. */
#define TOOL_PREFIX_MOST 20

bool check_tool_prefix(struct str text, struct error *error)
{
    return (text.length > 0 && text.length <= TOOL_PREFIX_MOST && consists_of(text, "_-")) ||
           error_set(error, "a prefix is up to 20 letters, digits, \"_\" and \"-\"");
}

bool check_variable_name(struct str text, struct error *error)
{
    bool starts_with_digit = text.length && text.bytes[0] >= '0' && text.bytes[0] <= '9';
    return (text.length && !starts_with_digit && consists_of(text, "_")) ||
           error_set(error, "this is no name of an environment variable");
}

#define SHOWN_WORD_MOST 15

/* Two words of capitals or more, each with a number of at most three digits after it, joined by
 * "_". A secret may be of capitals alone, so a single word is not shown, and each of several is
 * shorter than a token.
 */
const char *check_shown_variable(const char *name)
{
    size_t letters = 0, digits = 0;
    if (!strchr(name, '_'))
        return "named here";
    for (const char *c = name; *c; c++) {
        bool is_letter = *c >= 'A' && *c <= 'Z', is_digit = *c >= '0' && *c <= '9';
        bool is_good = is_letter  ? digits == 0 && letters < SHOWN_WORD_MOST
                       : is_digit ? letters > 0 && digits < 3
                                  : *c == '_' && letters > 0;
        if (!is_good)
            return "named here";
        letters = is_letter ? letters + 1 : is_digit ? letters : 0;
        digits = is_digit ? digits + 1 : 0;
    }
    return name;
}

bool parse_bool(struct str text, bool *value)
{
    static const struct {
        struct str name;
        bool value;
    } names[] = {{STR("true"), true}, {STR("false"), false}, {STR("yes"), true},
                 {STR("no"), false},  {STR("on"), true},     {STR("off"), false}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (str_equal_ignore_case(text, names[i].name)) {
            *value = names[i].value;
            return true;
        }
    }
    return false;
}

bool parse_integer(struct str text, int64_t *value)
{
    uint64_t number;
    bool is_negative = str_starts_with(text, STR("-"));
    if (is_negative)
        text = str_slice(text.bytes + 1, text.length - 1);
    if (!str_to_u64(text, &number) || number > INT64_MAX)
        return false;
    *value = is_negative ? -(int64_t)number : (int64_t)number;
    return true;
}

bool parse_bytes(struct str text, int64_t *value, struct error *error)
{
    static const struct {
        struct str name;
        int64_t bytes;
    } units[] = {
        {STR(""), 1},           {STR("b"), 1},           {STR("k"), 1000},
        {STR("kb"), 1000},      {STR("m"), 1000000},     {STR("mb"), 1000000},
        {STR("g"), 1000000000}, {STR("gb"), 1000000000}, {STR("ki"), 1 << 10},
        {STR("kib"), 1 << 10},  {STR("mi"), 1 << 20},    {STR("mib"), 1 << 20},
        {STR("gi"), 1 << 30},   {STR("gib"), 1 << 30},
    };
    text = str_trim(text);
    size_t digits = 0;
    while (digits < text.length && text.bytes[digits] >= '0' && text.bytes[digits] <= '9')
        digits++;
    struct str unit = str_trim(str_slice(text.bytes + digits, text.length - digits));
    int64_t number;
    if (!parse_integer(str_slice(text.bytes, digits), &number))
        return error_set(error, "a size is a number with or without a unit, such as 4MiB");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (!str_equal_ignore_case(unit, units[i].name))
            continue;
        if (__builtin_mul_overflow(number, units[i].bytes, value))
            return error_set(error, "the size is too large");
        return true;
    }
    return error_set(error, "the unit is none of kB, MB, GB, KiB, MiB, GiB");
}
