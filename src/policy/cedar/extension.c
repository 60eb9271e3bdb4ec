/* Calls of extension functions: the table, and the functions that are one line each. */
#include "extension.h"

#define MS_PER_SECOND INT64_C(1000)
#define MS_PER_MINUTE (60 * MS_PER_SECOND)
#define MS_PER_HOUR (60 * MS_PER_MINUTE)
#define MS_PER_DAY (24 * MS_PER_HOUR)

static bool give_number(enum cedar_kind kind, int64_t number, struct cedar_value *result)
{
    *result = (struct cedar_value){.kind = kind, .number = number};
    return true;
}

static bool give_bool(bool value, struct cedar_value *result)
{
    *result = cedar_bool(value);
    return true;
}

#define CALL(function)                                                                             \
    static bool function(struct arena *arena, const struct cedar_value *arguments,                 \
                         struct cedar_value *result)

CALL(call_decimal)
{
    int64_t number;
    return extension_parse_decimal(arguments->text, &number) &&
           give_number(CEDAR_DECIMAL, number, result);
}

CALL(call_datetime)
{
    int64_t ms;
    return extension_parse_datetime(arguments->text, &ms) &&
           give_number(CEDAR_DATETIME, ms, result);
}

CALL(call_duration)
{
    int64_t ms;
    return extension_parse_duration(arguments->text, &ms) &&
           give_number(CEDAR_DURATION, ms, result);
}

CALL(call_ip)
{
    struct cedar_ip parsed;
    if (!extension_parse_ip(arguments->text, &parsed))
        return false;
    struct cedar_ip *ip = arena_alloc(arena, sizeof *ip);
    *ip = parsed;
    *result = (struct cedar_value){.kind = CEDAR_IP, .ip = ip};
    return true;
}

CALL(call_is_ipv4)
{
    return give_bool(!arguments->ip->v6, result);
}

CALL(call_is_ipv6)
{
    return give_bool(arguments->ip->v6, result);
}

CALL(call_is_loopback)
{
    return give_bool(ip_is_loopback(arguments->ip), result);
}

CALL(call_is_multicast)
{
    return give_bool(ip_is_multicast(arguments->ip), result);
}

CALL(call_is_in_range)
{
    return give_bool(ip_is_in_range(arguments[0].ip, arguments[1].ip), result);
}

CALL(call_less_than)
{
    return give_bool(arguments[0].number < arguments[1].number, result);
}

CALL(call_less_than_or_equal)
{
    return give_bool(arguments[0].number <= arguments[1].number, result);
}

CALL(call_greater_than)
{
    return give_bool(arguments[0].number > arguments[1].number, result);
}

CALL(call_greater_than_or_equal)
{
    return give_bool(arguments[0].number >= arguments[1].number, result);
}

CALL(call_offset)
{
    int64_t ms;
    return !__builtin_add_overflow(arguments[0].number, arguments[1].number, &ms) &&
           give_number(CEDAR_DATETIME, ms, result);
}

CALL(call_duration_since)
{
    int64_t ms;
    return !__builtin_sub_overflow(arguments[0].number, arguments[1].number, &ms) &&
           give_number(CEDAR_DURATION, ms, result);
}

/* Milliseconds since midnight, before 1970 too. */
static int64_t time_of_day(int64_t ms)
{
    int64_t rest = ms % MS_PER_DAY;
    return rest < 0 ? rest + MS_PER_DAY : rest;
}

CALL(call_to_date)
{
    int64_t ms;
    return !__builtin_sub_overflow(arguments->number, time_of_day(arguments->number), &ms) &&
           give_number(CEDAR_DATETIME, ms, result);
}

CALL(call_to_time)
{
    return give_number(CEDAR_DURATION, time_of_day(arguments->number), result);
}

CALL(call_to_milliseconds)
{
    return give_number(CEDAR_LONG, arguments->number, result);
}

CALL(call_to_seconds)
{
    return give_number(CEDAR_LONG, arguments->number / MS_PER_SECOND, result);
}

CALL(call_to_minutes)
{
    return give_number(CEDAR_LONG, arguments->number / MS_PER_MINUTE, result);
}

CALL(call_to_hours)
{
    return give_number(CEDAR_LONG, arguments->number / MS_PER_HOUR, result);
}

CALL(call_to_days)
{
    return give_number(CEDAR_LONG, arguments->number / MS_PER_DAY, result);
}

#define FUNCTION(name, kind, call)                                                                 \
    {                                                                                              \
        {name, sizeof(name) - 1}, false, 1, {kind}, call                                           \
    }
#define METHOD(name, kind, call)                                                                   \
    {                                                                                              \
        {name, sizeof(name) - 1}, true, 1, {kind}, call                                            \
    }
#define METHOD_OF_TWO(name, kind, other, call)                                                     \
    {                                                                                              \
        {name, sizeof(name) - 1}, true, 2, {kind, other}, call                                     \
    }

static const struct extension extensions[] = {
    FUNCTION("ip", CEDAR_STRING, call_ip),
    FUNCTION("decimal", CEDAR_STRING, call_decimal),
    FUNCTION("datetime", CEDAR_STRING, call_datetime),
    FUNCTION("duration", CEDAR_STRING, call_duration),
    METHOD("isIpv4", CEDAR_IP, call_is_ipv4),
    METHOD("isIpv6", CEDAR_IP, call_is_ipv6),
    METHOD("isLoopback", CEDAR_IP, call_is_loopback),
    METHOD("isMulticast", CEDAR_IP, call_is_multicast),
    METHOD_OF_TWO("isInRange", CEDAR_IP, CEDAR_IP, call_is_in_range),
    METHOD_OF_TWO("lessThan", CEDAR_DECIMAL, CEDAR_DECIMAL, call_less_than),
    METHOD_OF_TWO("lessThanOrEqual", CEDAR_DECIMAL, CEDAR_DECIMAL, call_less_than_or_equal),
    METHOD_OF_TWO("greaterThan", CEDAR_DECIMAL, CEDAR_DECIMAL, call_greater_than),
    METHOD_OF_TWO("greaterThanOrEqual", CEDAR_DECIMAL, CEDAR_DECIMAL, call_greater_than_or_equal),
    METHOD_OF_TWO("offset", CEDAR_DATETIME, CEDAR_DURATION, call_offset),
    METHOD_OF_TWO("durationSince", CEDAR_DATETIME, CEDAR_DATETIME, call_duration_since),
    METHOD("toDate", CEDAR_DATETIME, call_to_date),
    METHOD("toTime", CEDAR_DATETIME, call_to_time),
    METHOD("toMilliseconds", CEDAR_DURATION, call_to_milliseconds),
    METHOD("toSeconds", CEDAR_DURATION, call_to_seconds),
    METHOD("toMinutes", CEDAR_DURATION, call_to_minutes),
    METHOD("toHours", CEDAR_DURATION, call_to_hours),
    METHOD("toDays", CEDAR_DURATION, call_to_days),
};

const struct extension *extension_find(struct str name)
{
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++)
        if (str_equal(extensions[i].name, name))
            return &extensions[i];
    return NULL;
}

bool extension_call(const struct extension *extension, struct arena *arena,
                    const struct cedar_value *arguments, size_t count, struct cedar_value *result,
                    struct cedar_failure *failure)
{
    *failure = (struct cedar_failure){.name = extension->name};
    if (count != extension->arity) {
        failure->code = CEDAR_FAILURE_ARITY;
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (arguments[i].kind == extension->takes[i])
            continue;
        failure->code = CEDAR_FAILURE_TYPE;
        failure->expected = 1U << extension->takes[i];
        failure->found = arguments[i].kind;
        return false;
    }
    failure->code = CEDAR_FAILURE_CALL;
    return extension->call(arena, arguments, result);
}

bool cedar_call(struct cedar_heap *heap, struct str function, const struct cedar_value *arguments,
                size_t count, struct cedar_value *result, struct error *error)
{
    const struct extension *extension = extension_find(function);
    if (!extension)
        return error_set(error, "there is no function \"%.*s\"", STR_ARGS(function));
    struct cedar_failure failure;
    if (extension_call(extension, &heap->arena, arguments, count, result, &failure))
        return true;
    struct buffer message;
    buffer_init(&message);
    cedar_failure_write(&failure, &message);
    error_set(error, "%.*s", STR_ARGS(buffer_str(&message)));
    buffer_finish(&message);
    return false;
}
